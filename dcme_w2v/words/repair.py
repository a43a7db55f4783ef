"""Reads files of word vectors with faults, and leaves out or corrects the faulty rows.

`dcme-w2v convert --invalid` uses it, for faults that `dcme_w2v.words.check` finds: words with
separators (GloVe 840B), headers that do not match, bytes that are not UTF-8, numbers that are NaN,
duplicates, truncated ends. It reads row by row, slower than `dcme_w2v.formats.vectors.vectors_io`.
"""

from __future__ import annotations

import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.errors import FormatError
from dcme_w2v.files.opening import CorpusFile, open_regular
from dcme_w2v.formats.vectors.detect import kind_of_file
from dcme_w2v.formats.vectors.safetensors import open_safetensors
from dcme_w2v.formats.vectors.vectors_io import joined, map_npy, vocabulary_path
from dcme_w2v.formats.vectors.vectors_reader import BLOCK, open_rows
from dcme_w2v.formats.word_list import Words
from dcme_w2v.numeric.arrays import F32

from .neighbors import squared_lengths
from .vectors import Vectors

_PART = 4096  # rows that are stored together
_SAMPLE = 200  # lines that decide the dimension
_SEPARATORS = re.compile(r"[ \t\n\r\v\f\0]+")
Row = tuple[bytes, F32 | None]  # word and numbers; None if they are not numbers


def load_repaired(path: str, invalid: str) -> tuple[Vectors, Counter[str]]:
    """Return the rows of a file without faults, and how many were left out or corrected.

    Parameters
    ----------
    path : str
        Text, binary, npy or safetensors.
    invalid : {"skip", "replace"}
        ``skip`` leaves out rows with a fault. ``replace`` corrects what it can: separators in a
        word become ``_``, invalid UTF-8 U+FFFD, numbers that are not finite 0; vectors too long
        for float32 get length 1. Rows of another dimension, empty words and duplicates (except the
        first) are left out in any case.

    Returns
    -------
    vectors : Vectors
        Without counts.
    faults : Counter
        Number of rows by what was done.

    Raises
    ------
    FormatError
        No row is left, or it is not a file of word vectors.
    """
    faults: Counter[str] = Counter()
    found: dict[str, None] = {}
    parts: list[F32] = []
    for word, numbers in _rows_of(path, faults):
        name = _repaired_word(word, invalid, faults)
        row = None if name is None else _repaired_row(numbers, invalid, faults)
        if name is None or row is None:
            continue
        if name in found:
            faults["duplicate words left out"] += 1
            continue
        at = len(found) % _PART
        if at == 0:
            parts.append(np.empty((_PART, len(row)), dtype=np.float32))
        parts[-1][at] = row
        found[name] = None
    if not found:
        raise FormatError(f"{path}: no row is without faults; run dcme-w2v check {path}")
    parts[-1] = parts[-1][: (len(found) - 1) % _PART + 1]
    return Vectors(Words.from_words(found), joined(parts, parts[0].shape[1])), faults


def _repaired_word(word: bytes, invalid: str, faults: Counter[str]) -> str | None:
    """Return a word that can be written; None if its row is left out."""
    try:
        name = word.decode()
    except UnicodeDecodeError:
        if invalid == "skip":
            faults["invalid UTF-8 left out"] += 1
            return None
        faults["invalid UTF-8 replaced"] += 1
        name = word.decode("utf-8", "replace")
    if not _SEPARATORS.sub("", name):
        faults["empty words left out"] += 1
        return None
    if _SEPARATORS.search(name) is None:
        return name
    if invalid == "skip":
        faults["words with separators left out"] += 1
        return None
    faults["separators in words replaced"] += 1
    return _SEPARATORS.sub("_", name)


def _repaired_row(numbers: F32 | None, invalid: str, faults: Counter[str]) -> F32 | None:
    if numbers is None:
        faults["rows that are not numbers left out"] += 1
        return None
    if np.isfinite(squared_lengths(numbers[None])[0]):
        return numbers
    finite = np.isfinite(numbers)
    what = "vectors of infinite length" if finite.all() else "NaN or infinite numbers"
    if invalid == "skip":
        faults[f"{what} left out"] += 1
        return None
    if finite.all():
        faults[f"{what} scaled to length 1"] += 1
        exact = numbers.astype(np.float64)  # its length is finite
        return np.asarray(exact / np.linalg.norm(exact), dtype=np.float32)
    faults[f"{what} replaced by 0"] += 1
    return _repaired_row(np.where(finite, numbers, np.float32(0)), invalid, faults)


# ---- rows ----


def _rows_of(path: str, faults: Counter[str]) -> Iterator[Row]:
    kind = kind_of_file(path)
    if kind == "npy":
        return _npy_rows(path)
    if kind == "safetensors":
        return _tensor_rows(path)
    with open_rows(path) as reader:  # detects the format
        binary, promised, dim = reader.binary, reader.promised, reader.dim
    if binary:
        return _binary_rows(path, promised or 0, dim, faults)
    return _text_rows(path, promised is not None, faults)


def _npy_rows(path: str) -> Iterator[Row]:
    """Yield as many rows as there are both words and vectors."""
    matrix = map_npy(Path(path))
    with open_regular(vocabulary_path(path)) as lines:
        for line, row in zip(lines, matrix, strict=False):
            yield re.sub(rb" [0-9]+\r?\n?$", b"", line).rstrip(b"\r\n"), np.array(row)


def _tensor_rows(path: str) -> Iterator[Row]:
    tensors = open_safetensors(path)
    words = tensors.words
    for number in range(len(words)):
        yield words.raw(number), tensors.rows(slice(number, number + 1))[0]


def _text_rows(path: str, header: bool, faults: Counter[str]) -> Iterator[Row]:
    """Yield the rows of a text file: the last numbers of each line, and the word before them."""
    with CorpusFile(path) as file:
        lines: io.BufferedReader[Any] = io.BufferedReader(file, BLOCK)
        if header:
            lines.readline(BLOCK)
        sample = list(itertools.islice(_lines(lines), _SAMPLE))
        dim = _dimension_of(sample)
        for line in itertools.chain(sample, _lines(lines)):
            fields = line.rsplit(None, dim) if line.strip() else []
            if _is_of_another_dimension(line, fields, dim):
                faults["rows of another dimension left out"] += 1
                continue
            word = fields[0] if len(fields) > dim else b""
            yield word, _numbers(fields[-dim:])


def _is_of_another_dimension(line: bytes, fields: list[bytes], dim: int) -> bool:
    """Return whether a line has not `dim` numbers behind a word, which may have separators."""
    if len(fields) <= dim:  # dim: a line that starts with a separator has an empty word
        return len(fields) < dim or not line[:1].isspace()
    more = fields[0].split()[1:]
    return bool(more) and _numbers(more) is not None  # more numbers, not a word of several parts


def _lines(file: io.BufferedReader[Any]) -> Iterator[bytes]:
    while line := file.readline(BLOCK):
        yield line.rstrip(b"\r\n")


def _dimension_of(lines: Iterable[bytes]) -> int:
    """Return the most common number of fields behind the first."""
    widths = Counter(len(line.split()) - 1 for line in lines if line.strip())
    return max(1, widths.most_common(1)[0][0]) if widths else 1


def _numbers(fields: list[bytes]) -> F32 | None:
    try:
        with np.errstate(over="ignore"):
            return np.array(fields, dtype=np.float64).astype(np.float32)
    except ValueError:
        return None


def _binary_rows(path: str, count: int, dim: int, faults: Counter[str]) -> Iterator[Row]:
    """Yield the rows of a binary file, up to the first that is truncated."""
    with CorpusFile(path) as file:
        rows = io.BufferedReader(file, BLOCK)
        rows.readline(BLOCK)
        for number in range(count):
            word = bytearray()
            while (letter := rows.read(1)) not in (b" ", b"") and len(word) < BLOCK:
                word += letter
            data = rows.read(4 * dim)
            if len(data) < 4 * dim:
                faults["truncated rows left out"] += count - number
                return
            yield bytes(word).lstrip(b"\n"), np.frombuffer(data, dtype="<f4").copy()
