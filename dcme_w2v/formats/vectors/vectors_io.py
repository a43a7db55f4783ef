"""Files of word vectors: safetensors, which is mapped, word2vec's text and binary."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dcme_w2v._core.codec import check_words, find_duplicates, write_rows
from dcme_w2v.errors import FormatError, UsageError, warn
from dcme_w2v.files.atomic import (
    NOT_TEXT,
    atomic_write,
    uncompressed_name,
)
from dcme_w2v.numeric.arrays import F32, I64, U8, ChunkedArray, unit_vectors
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.platform import PathLike

from ..artifact import check_model_target, load_model, save_model, words_arrays
from ..vocabulary import Vocabulary, Words, check_lengths
from .manifest import read_manifest, write_manifest
from .vectors_reader import (
    DUPLICATE,
    FAULT_NAMES,
    MAX_DIM,
    Part,
    RowReader,
    no_faults,
    open_rows,
    words_of,
)


def combined(input: F32, output: F32, vectors: str) -> F32:
    """Return the word vectors that some rows of both tables make.

    Parameters
    ----------
    input, output : ndarray of float32, shape (n, d)
    vectors : {"sum", "input", "context", "unit-sum"}
        ``unit-sum`` is the sum of both scaled to unit length; rows of zeros stay.

    Returns
    -------
    ndarray of float32, shape (n, d)
    """
    if vectors == "input":
        return input
    if vectors == "context":
        return output
    return input + output if vectors == "sum" else unit_vectors(input) + unit_vectors(output)


@dataclass(frozen=True)
class CombinedRows:
    """The word vectors that two tables make, computed for the rows that are asked for.

    `save_vectors` writes them like a matrix, without a third table in memory.
    """

    input: F32
    output: F32
    vectors: str

    dtype = np.dtype(np.float32)
    ndim = 2

    @property
    def shape(self) -> tuple[int, int]:
        """Words and dimensions."""
        return self.input.shape[0], self.input.shape[1]

    def __len__(self) -> int:
        return len(self.input)

    def __getitem__(self, rows: slice) -> F32:
        return combined(self.input[rows], self.output[rows], self.vectors)


FORMATS = ("text", "binary", "safetensors")
SUFFIXES = {".bin": "binary", ".safetensors": "safetensors"}
KIND, VERSION = "vectors", 1  # of the native format, safetensors
CHECKPOINT = "checkpoint"  # whose arrays have the same names
NEIGHBORS = ("left", "right")  # tables of a training with word order
_NO_VECTORS = NOT_TEXT | {".svm", ".svmlight", ".libsvm", ".svg"}
_NOT_SO = {".csv", ".tsv", ".json", ".jsonl"}  # suffixes of other text and tables
_WRITTEN_AT_ONCE = 1 << 21  # bytes of the matrix
Matrix: TypeAlias = F32 | CombinedRows


def save_vectors(
    path: PathLike,
    words: Words,
    matrix: Matrix,
    *,
    counts: I64 | None = None,
    context: F32 | None = None,
    neighbors: tuple[F32, F32] | None = None,
    format: str | None = None,
    header: bool = True,
    manifest: Mapping[str, Any] | None = None,
) -> None:
    """Write word vectors.

    Parameters
    ----------
    path : path
        Written atomically; ``-`` is standard output (text, binary).
    words : Words, n of them
    matrix : ndarray of float32, shape (n, d), or CombinedRows
        May be a view with any strides; it is not copied as a whole.
    counts : ndarray of int64, shape (n,), optional
        Written to safetensors only.
    context : ndarray of float32, shape (n, d), optional
        The context vectors, written to safetensors only.
    neighbors : tuple of ndarray of float32, shape (n, d), optional
        With word order: the vectors of words just left and just right, as `context`.
    format : {"text", "binary", "safetensors"}, optional
        Default: by suffix, .bin: binary, .safetensors, others: text.
    header : bool
        Write the numbers of rows and dimensions on the first line of text.
    manifest : mapping, optional
        How the vectors were made: a part of safetensors; otherwise written as JSON to PATH.json,
        unless `path` is a stream.

    Raises
    ------
    FormatError
        A number is not finite, or a word is empty, repeated, not UTF-8, or contains a separator or
        a NUL byte. The target is unchanged.
    """
    chosen = check_target(path, format)
    check_before_writing(path, words, matrix)
    if chosen == "safetensors":
        blocks = ChunkedArray(
            matrix.shape, matrix.dtype, lambda: (block for _, block in blocks_of(matrix))
        )
        given = {"counts": counts, "context": context}
        given |= dict(zip(NEIGHBORS, neighbors or (), strict=False))
        more = {name: array for name, array in given.items() if array is not None}
        arrays = {"vectors": blocks, **words_arrays(words), **more}
        save_model(path, KIND, VERSION, arrays, {"manifest": manifest and dict(manifest)})
        return
    _save_rows(path, words, matrix, chosen == "binary", header)
    write_manifest(manifest, path)


def _save_rows(path: PathLike, words: Words, matrix: Matrix, is_binary: bool, header: bool) -> None:
    def as_bytes(part: tuple[int, F32]) -> U8:
        return write_rows(is_binary, part[1], words.text, words.offsets, part[0])

    with atomic_write(path) as file:
        if header or is_binary:
            file.write(b"%d %d\n" % matrix.shape)
        for rows in ordered_map(as_bytes, blocks_of(matrix)):
            file.write(rows.data)


def check_format(format: str | None) -> None:
    """Raise `UsageError` if a format is not one of `FORMATS` or None."""
    if format is not None and format not in FORMATS:
        raise UsageError(f"--format={format}: must be one of {', '.join(FORMATS)}")


def check_target(path: PathLike, format: str | None) -> str:
    """Return the format of a target; raise `UsageError` if it cannot be written to this name.

    Parameters
    ----------
    path : path
    format : str, optional
        By default the format of the suffix, which must then be a suffix of word vectors.
    """
    check_format(format)
    name, suffix = os.fspath(path), uncompressed_name(path).suffix
    chosen = format or SUFFIXES.get(suffix, "text")
    if chosen == "safetensors":
        check_model_target(path, KIND)
    if format is None and chosen == "text" and suffix.lower() in _NO_VECTORS:
        raise UsageError(
            f"{name}: vectors are not written as {suffix}; name a .safetensors, .bin or .txt"
        )
    return chosen


def warn_of_suffix(path: str | None, format: str | None) -> None:
    """Warn if the suffix of a target is the suffix of another format than will be written."""
    suffix = Path(path or "").suffix.lower()
    if format is None and suffix in _NOT_SO:
        warn(f"{path}: will have word2vec's text, not {suffix}; name a .txt, .bin or .safetensors")


def blocks_of(matrix: Matrix) -> Iterator[tuple[int, F32]]:
    """Yield contiguous blocks of rows of a matrix, each with its first row."""
    step = max(1, _WRITTEN_AT_ONCE // (4 * max(1, matrix.shape[1])))
    for first in range(0, len(matrix), step):
        yield first, np.ascontiguousarray(matrix[first : first + step])


# ---- writing ----


def check_before_writing(path: PathLike, words: Words, matrix: Matrix) -> None:
    """Raise `FormatError` if a word or a number cannot be written."""
    check_lengths(words, os.fspath(path))
    faults = no_faults()
    check_words(words.text, words.offsets, faults)
    if not isinstance(words, Vocabulary):  # distinct because they are from a hash table
        find_duplicates(words.text, words.offsets, faults)
    for kind in np.flatnonzero(faults[:, 0]):
        row = int(faults[kind, 1])
        shown = ascii(words.raw(row).decode("utf-8", "backslashreplace"))
        raise FormatError(
            f"{os.fspath(path)}: {FAULT_NAMES[kind]} ({shown}) in row {row + 1}; "
            "nothing was written; correct the words"
        )
    for first, block in blocks_of(matrix):
        finite = np.isfinite(block)
        if not finite.all():
            row = first + int(np.argmin(finite.all(axis=1)))
            raise FormatError(
                f"{os.fspath(path)}: the vector of {words[row]!a} in row {row + 1} is NaN or "
                "infinite; nothing was written; train with a lower learning rate"
            )


# ---- reading ----


@dataclass(frozen=True)
class Contents:
    """The contents of a file of word vectors; see `save_vectors`."""

    words: Words
    matrix: F32
    counts: I64 | None = None
    context: F32 | None = None
    neighbors: tuple[F32, F32] | None = None
    manifest: dict[str, Any] | None = None


def load_vectors(
    path: PathLike, kind: str | None, limit: int | None = None, mmap: bool = True
) -> Contents:
    """Read a file of word vectors of a kind; see `Vectors.load`. Mapped numbers are not checked.

    Raises
    ------
    FormatError
        It is of another kind, or is corrupt.
    """
    if kind == "safetensors":
        return _load_safetensors(path, limit, mmap)
    with open_rows(path, None if kind is None else kind == "binary") as reader:
        found = _load_rows(reader, limit)
    return replace(found, manifest=read_manifest(path))


def _load_rows(reader: RowReader, limit: int | None) -> Contents:
    matrix = reader.room(limit)
    found: list[Part] = []
    for part in reader.parts(keep=True, limit=limit, matrix=matrix):
        for kind in np.flatnonzero(part.faults[:, 0]):
            raise _damaged(reader.position_in(part, int(kind)), FAULT_NAMES[kind], reader.path)
        found.append(part)
    if limit is None or reader.rows < limit:
        if reader.promised not in (None, reader.rows):
            what = f"has {reader.rows} rows, but {reader.promised} in the header"
            raise _damaged(f"{reader.path}:1", what, reader.path)
        if reader.left:
            raise _damaged(reader.path, f"{reader.left} extra bytes at the end", reader.path)
    words = words_of(found)
    faults = no_faults()
    find_duplicates(words.text, words.offsets, faults)
    if faults[DUPLICATE, 0]:
        row = int(faults[DUPLICATE, 1])
        raise _damaged(reader.row_place(row), f"duplicate word {words[row]!a}", reader.path)
    if matrix is None:
        matrix = joined([part.matrix for part in found if part.matrix is not None], reader.dim)
    return Contents(words, matrix)


def joined(parts: list[F32], dim: int) -> F32:
    """Concatenate the parts, releasing the memory of each after copying."""
    matrix = np.empty((sum(map(len, parts)), dim), dtype=np.float32)
    end = len(matrix)
    while parts:
        part = parts.pop()
        matrix[end - len(part) : end] = part
        end -= len(part)
    return matrix


def _damaged(place: str, what: str, path: str) -> FormatError:
    return FormatError(f"{place}: {what}; run dcme-w2v check {path} for all faults")


def _load_safetensors(path: PathLike, limit: int | None, mmap: bool) -> Contents:
    model = load_model(path, (KIND, CHECKPOINT), VERSION)
    words = model.words()

    def rows(name: str, dtype: str, *shape: int | None) -> Any:
        if name not in model.arrays:
            return None
        checked = not mmap or not isinstance(model.arrays[name], np.memmap)
        found = model.array(name, dtype, len(words), *shape, finite=checked)[:limit]
        return found if mmap else np.array(found)

    counts, matrix = rows("counts", "int64"), rows("vectors", "float32", None)
    context, left, right = (rows(name, "float32", None) for name in ("context", *NEIGHBORS))
    neighbors = None if left is None or right is None else (left, right)
    manifest = model.description.get("manifest")
    if matrix is None or not 1 <= matrix.shape[1] <= MAX_DIM:
        raise model.fault("vectors", "are not there, or have no dimensions")
    if manifest is not None and not isinstance(manifest, dict):
        raise model.fault("manifest", "is not an object")
    if counts is not None and counts.min(initial=0) < 0:
        raise model.fault("counts", "has a negative number")
    return Contents(words[:limit], matrix, counts, context, neighbors, manifest)
