"""Faults of a file of word vectors: counts them, or leaves out or corrects the rows."""

from __future__ import annotations

import io
import itertools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v._core.vectors import check_words, find_duplicates
from dcme_w2v.errors import FormatError
from dcme_w2v.files.opening import CorpusFile, open_regular
from dcme_w2v.formats.npy import read_npy
from dcme_w2v.formats.vectors.fasttext import load_words, open_model
from dcme_w2v.formats.vectors.safetensors import open_safetensors
from dcme_w2v.formats.vectors.static_folder import is_static_folder, load_static_folder
from dcme_w2v.formats.vectors.vectors_io import (
    blocks_of,
    check_pair,
    checked_matrix,
    joined,
    load_pair,
    vocabulary_path,
)
from dcme_w2v.formats.vectors.vectors_reader import (
    BLOCK,
    DUPLICATE,
    FAULT_NAMES,
    LENGTH,
    RowReader,
    kind_of_file,
    no_faults,
    open_rows,
    words_of,
)
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, I64
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.platform import PathLike

from .neighbors import squared_lengths
from .vectors import Vectors

UNREADABLE = "unreadable"
ROW_COUNT = "wrong number of rows"
TRAILING = "trailing junk"
FINITE = FAULT_NAMES.index("NaN or infinite number")


@dataclass(frozen=True)
class Fault:
    """One kind of fault: its count and first position."""

    kind: str
    count: int
    place: str
    detail: str = ""


@dataclass
class Report:
    """The content and faults of a file of word vectors."""

    file: str
    format: str | None = None
    rows: int = 0
    dimension: int = 0
    faults: list[Fault] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON output."""
        return {**asdict(self), "ok": not self.faults}


def check_vectors(path: PathLike) -> Report:
    r"""Read a file of word vectors and report all its faults.

    Parameters
    ----------
    path : path
        Text or binary, also compressed, npy with its .vocab, safetensors, a model of fastText, or
        a folder of static embeddings; ``-`` is standard input.

    Returns
    -------
    Report
        With no faults where `Vectors.load` would read the file, `save_vectors` could have written
        it, and cosines can be computed. A file that cannot be read as vectors at all has the one
        fault "unreadable".

    Examples
    --------
    >>> from pathlib import Path
    >>> import dcme_w2v as dw
    >>> _ = Path("v.txt").write_text("2 2\ntea 1 0\ntea 2 nan\n")
    >>> [(fault.kind, fault.count) for fault in dw.check_vectors("v.txt").faults]
    [('NaN or infinite number', 1), ('duplicate word', 1)]
    """
    report = Report(os.fspath(path))
    try:
        static = is_static_folder(path)
        kind = None if static else kind_of_file(path)
        if static:
            report.format = "static embeddings"
            report.rows, report.dimension = load_static_folder(path).matrix.shape
        elif kind == "npy":
            _check_npy(report, Path(path))
        elif kind == "safetensors":
            _check_safetensors(report, Path(path))
        elif kind == "fasttext":
            report.format, model = "fasttext", open_model(path)
            report.rows, report.dimension = load_words(model, path, None)[1].shape
        else:
            with open_rows(path) as reader:
                _check_rows(report, reader)
    except FormatError as error:
        report.faults.append(Fault(UNREADABLE, 1, report.file, error.message))
    return report


class _Tally(dict[int, Fault]):
    """Sums of the faults of the parts of a file, by kind."""

    def add(self, kind: int, count: int, place: str, detail: str = "") -> None:
        """Add faults of a kind, the first of which is at `place`."""
        before = self.get(kind, Fault(FAULT_NAMES[kind], 0, place, detail))
        self[kind] = replace(before, count=before.count + count)

    def listed(self) -> list[Fault]:
        """Return the kinds that occurred."""
        return [self[kind] for kind in sorted(self)]


def _check_rows(report: Report, reader: RowReader) -> None:
    report.format = "binary" if reader.binary else "text"
    report.dimension = reader.dim
    tally, beyond = _Tally(), _Tally()
    parts = []
    end = 0  # end of the rows that the header declares
    for part in reader.parts(keep=False):
        announced = reader.promised is None or part.first < reader.promised
        for kind in np.flatnonzero(part.faults[:, 0]).tolist():
            place = reader.position_in(part, kind)
            (tally if announced else beyond).add(kind, int(part.faults[kind, 0]), place)
        if announced:
            parts.append(part)
            end = part.offset + len(part.block)
    report.rows = reader.rows
    _add_words(tally, words_of(parts), no_faults(), reader.row_place, "row")
    report.faults += tally.listed()
    _check_end(report, reader, whole=not beyond, end=end)


def _check_end(report: Report, reader: RowReader, *, whole: bool, end: int) -> None:
    """Compare the rows with the header; `whole`: all data after the declared rows are rows."""
    promised = reader.promised
    if promised is None:
        return
    if reader.rows > promised and not (whole and reader.left == 0):
        report.rows = promised
        place = reader.place(promised, end)
        report.faults.append(Fault(TRAILING, 1, place, f"row {promised} is followed by other data"))
    elif reader.rows >= promised and reader.left:
        place = reader.place(reader.rows, end)
        report.faults.append(Fault(TRAILING, 1, place, f"{reader.left} bytes"))
    elif reader.rows != promised:
        detail = f"{promised} in the header, {reader.rows} in the file"
        if reader.left:
            detail += f" and {reader.left} bytes of another"
        report.faults.append(Fault(ROW_COUNT, 1, f"{reader.path}:1", detail))


def _check_npy(report: Report, path: Path) -> None:
    report.format = "npy"
    pair = load_pair(path)
    matrix, words, faults = pair.matrix, pair.words, pair.faults
    report.rows, report.dimension = matrix.shape
    vocabulary = vocabulary_path(path)
    _check_arrays(
        report, blocks_of(matrix), words, faults, lambda row: f"{vocabulary}:{row + 1}", "line"
    )
    if len(words) != len(matrix):
        detail = f"{len(words)} words for {len(matrix)} rows"
        report.faults.append(Fault(ROW_COUNT, 1, str(vocabulary), detail))
    if not report.faults:
        check_pair(path, pair)
    assert isinstance(matrix, np.memmap)
    end = matrix.offset + matrix.nbytes
    if left := path.stat().st_size - end:
        report.faults.append(Fault(TRAILING, 1, f"{path}: byte {end}", f"{left} bytes"))


def _check_safetensors(report: Report, path: Path) -> None:
    report.format = "safetensors"
    tensors = open_safetensors(path)
    words, faults = tensors.words, no_faults()
    report.rows, report.dimension = tensors.vectors.shape
    check_words(words.text, words.offsets, faults)
    blocks = ((rows.start, tensors.rows(rows)) for rows in blocks_of_rows(report.rows))
    _check_arrays(report, blocks, words, faults, lambda row: f"{path}: row {row + 1}", "row")


def _check_arrays(
    report: Report,
    blocks: Iterable[tuple[int, F32]],
    words: Words,
    faults: I64,
    place: Callable[[int], str],
    unit: str,
) -> None:
    """Report the faults of vectors that are all in memory, and of their words."""
    tally = _Tally()
    with np.errstate(over="ignore", invalid="ignore"):
        for first, block in blocks:
            good = np.isfinite(block).all(axis=1)
            long = good & ~np.isfinite(squared_lengths(block))
            for kind, faulty in ((FINITE, ~good), (LENGTH, long)):
                if faulty.any():
                    row = first + int(np.argmax(faulty)) + 1
                    tally.add(kind, int(faulty.sum()), f"{report.file}: row {row}")
    _add_words(tally, words, faults, place, unit)
    report.faults += tally.listed()


def _add_words(
    tally: _Tally,
    words: Words,
    faults: I64,
    place: Callable[[int], str],
    unit: str,
) -> None:
    """Add faults of words, and duplicates; `unit` is the noun for rows."""
    earlier = find_duplicates(words.text, words.offsets, faults)
    for kind in np.flatnonzero(faults[:, 0]).tolist():
        count, row, _ = faults[kind].tolist()
        shown = ascii(words.raw(row).decode("utf-8", "backslashreplace"))
        detail = f"{shown} is in {unit} {earlier + 1} too" if kind == DUPLICATE else ""
        tally.add(kind, count, place(row), detail)


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
    matrix = checked_matrix(Path(path), read_npy(path))
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
        widths = Counter(len(line.split()) - 1 for line in sample if line.strip())
        dim = max(1, widths.most_common(1)[0][0]) if widths else 1
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
