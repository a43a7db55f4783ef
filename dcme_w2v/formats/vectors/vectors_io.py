"""Files of word vectors (word2vec text and binary, npy), and files named after them."""

import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dcme_w2v._core.vectors import check_words, find_duplicates, read_counts, write_rows
from dcme_w2v.errors import FormatError, UsageError, warn
from dcme_w2v.files import atomic as files
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.compress import compression_of, uncompressed_name
from dcme_w2v.files.opening import open_regular, read_json, read_regular
from dcme_w2v.files.paths import PARTIAL, Sidecar
from dcme_w2v.numeric.arrays import F32, I64, U8, Array, unit_vectors
from dcme_w2v.numeric.parallel import blocks_of_rows, ordered_map
from dcme_w2v.platform import PathLike

from ..npy import MAGIC, npy_header, open_npy
from ..vocabulary import Vocabulary, Words, check_lengths, count_lines
from .manifest import MANIFEST as MANIFEST
from .manifest import writing_with
from .safetensors import open_safetensors
from .vectors_reader import (
    COUNT,
    DUPLICATE,
    FAULT_NAMES,
    MAX_ROWS,
    Part,
    RowReader,
    kind_of_file,
    no_faults,
    open_rows,
    word_faults,
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


FORMATS = ("text", "binary", "npy")
MAX_VOCABULARY = 1 << 40  # bytes
_TRIES, _PAUSE = 50, 0.01  # of reading two files while another process replaces them
_NO_VECTORS = {".npz", ".svm", ".svmlight", ".libsvm", ".png", ".pdf", ".svg"}
_NOT_SO = {".csv", ".tsv", ".json", ".jsonl", ".parquet"}  # suffixes of other text and tables
_WRITTEN_AT_ONCE = 1 << 21  # bytes of the matrix
Matrix: TypeAlias = F32 | CombinedRows
Loaded = tuple[Words, F32, "I64 | None"]  # words, matrix, counts


def save_vectors(
    path: PathLike,
    words: Words,
    matrix: Matrix,
    *,
    counts: I64 | None = None,
    format: str | None = None,
    header: bool = True,
    manifest: Mapping[str, Any] | None = None,
) -> None:
    """Write word vectors as text, binary or npy.

    Parameters
    ----------
    path : path
        Written atomically; ``-`` is standard output (text, binary).
    words : Words, n of them
    matrix : ndarray of float32, shape (n, d), or CombinedRows
        May be a view with any strides; it is not copied as a whole.
    counts : ndarray of int64, shape (n,), optional
        Written to the .vocab file of an npy file.
    format : {"text", "binary", "npy"}, optional
        Default: by suffix, .bin: binary, .npy: npy, others: text.
    header : bool
        Write the numbers of rows and dimensions on the first line of text.
    manifest : mapping, optional
        Written as JSON to PATH.json, unless `path` is a stream.

    Raises
    ------
    FormatError
        A number is not finite, or a word is empty, repeated, not UTF-8, or contains a separator or
        a NUL byte. The target is unchanged.
    """
    check_target(path, format)
    chosen = format or format_of(path)
    check_before_writing(path, words, matrix)
    beside = [vocabulary_path(path)] if chosen == "npy" else []
    with writing_with(manifest, path, *beside) as (file, *others):
        if chosen == "npy":
            checksum, plain = 0, (f"{word}\n".encode() for word in words)
            for line in plain if counts is None else count_lines(words, counts):
                others[0].write(line)
                checksum = zlib.crc32(line, checksum)
            file.write(npy_header(np.dtype("<f4"), matrix.shape, checksum))
            for _, block in blocks_of(matrix):
                file.write(block.data.cast("B"))
            return
        is_binary = chosen == "binary"
        if header or is_binary:
            file.write(b"%d %d\n" % matrix.shape)

        def as_bytes(part: tuple[int, F32]) -> U8:
            return write_rows(is_binary, part[1], words.text, words.offsets, part[0])

        for rows in ordered_map(as_bytes, blocks_of(matrix)):
            file.write(rows.data)


def check_format(format: str | None) -> None:
    """Raise `UsageError` if a format is not one of `FORMATS` or None."""
    if format is not None and format not in FORMATS:
        raise UsageError(f"--format={format}: must be one of {', '.join(FORMATS)}")


def format_of(path: PathLike) -> str:
    """Return the format for a target's suffix."""
    return {".bin": "binary", ".npy": "npy"}.get(uncompressed_name(path).suffix, "text")


def check_target(path: PathLike, format: str | None) -> None:
    """Raise `UsageError` if vectors of a format cannot be written to a file of this name.

    Parameters
    ----------
    path : path
    format : str, optional
        By default the format of the suffix, which must then be a suffix of word vectors.
    """
    chosen = format or format_of(path)
    check_format(chosen)
    name = os.fspath(path)
    if chosen == "npy" and files.is_stream(path):
        raise UsageError(f"{name}: is a stream, and npy needs two files; give a file")
    if chosen == "npy" and compression_of(path) is not None:
        raise UsageError(f"{name}: npy is mapped into memory, not compressed; name a .bin.gz file")
    suffix = uncompressed_name(path).suffix.lower()
    if suffix == ".safetensors":
        raise UsageError(
            f"{name}: {suffix} files are not supported here; write .npy, and convert that to it"
        )
    if format is None and suffix in _NO_VECTORS:
        raise UsageError(f"{name}: vectors are not written as {suffix}; name a .txt, .bin or .npy")


def warn_of_suffix(path: str | None, format: str | None) -> None:
    """Warn if the suffix of a target is the suffix of another format than will be written."""
    suffix = Path(path or "").suffix.lower()
    if format is None and suffix in _NOT_SO:
        warn(f"{path}: will have word2vec's text, not {suffix}; name a .txt, .bin or .npy")


def vocabulary_path(path: PathLike) -> Path:
    """Return the path of the words of an npy file.

    Of X.partial they are in X.partial.vocab, unless X has a suffix: X.vocab has the words of X.
    """
    place = Path(path)
    is_own = place.suffix != PARTIAL or Path(place.stem).suffix
    return place.parent / f"{place.stem if is_own else place.name}.vocab"


def blocks_of(matrix: Matrix) -> Iterator[tuple[int, F32]]:
    """Yield contiguous blocks of rows of a matrix, each with its first row."""
    step = max(1, _WRITTEN_AT_ONCE // (4 * max(1, matrix.shape[1])))
    for rows in blocks_of_rows(len(matrix), step):
        yield rows.start, np.ascontiguousarray(matrix[rows])


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


def load_vectors(
    path: PathLike,
    format: str | None = None,
    *,
    limit: int | None = None,
    mmap: bool = True,
) -> Loaded:
    """Read words, their vectors and, from an npy file, their counts; see `Vectors.load`."""
    check_format(format)
    kind = format or kind_of_file(path)
    if kind == "npy":
        return _load_npy(Path(path), limit, mmap)
    if kind == "safetensors":
        return _load_safetensors(path, limit, mmap)
    with open_rows(path, None if format is None else format == "binary") as reader:
        return _load_rows(reader, limit)


def _load_rows(reader: RowReader, limit: int | None) -> Loaded:
    matrix = reader.room(limit)
    found: list[Part] = []
    matrices: list[F32] = []
    for part in reader.parts(keep=True, limit=limit, matrix=matrix):
        for kind in np.flatnonzero(part.faults[:, 0]):
            raise _damaged(reader.position_in(part, int(kind)), FAULT_NAMES[kind], reader.path)
        found.append(part)
        if matrix is None and part.matrix is not None:
            matrices.append(part.matrix)
    if limit is None or reader.rows < limit:
        _check_total(reader)
    words = words_of(found)
    faults = no_faults()
    find_duplicates(words.text, words.offsets, faults)
    if faults[DUPLICATE, 0]:
        row = int(faults[DUPLICATE, 1])
        raise _damaged(reader.row_place(row), f"duplicate word {words[row]!a}", reader.path)
    return words, joined(matrices, reader.dim) if matrix is None else matrix, None


def joined(parts: list[F32], dim: int) -> F32:
    """Concatenate the parts, releasing the memory of each after copying."""
    matrix = np.empty((sum(map(len, parts)), dim), dtype=np.float32)
    end = len(matrix)
    while parts:
        part = parts.pop()
        matrix[end - len(part) : end] = part
        end -= len(part)
    return matrix


def _check_total(reader: RowReader) -> None:
    promised = reader.promised
    if promised is not None and reader.rows != promised:
        raise _damaged(
            f"{reader.path}:1",
            f"has {reader.rows} rows, but {promised} in the header",
            reader.path,
        )
    if reader.left:
        raise _damaged(reader.path, f"{reader.left} extra bytes at the end", reader.path)


def _damaged(place: str, what: str, path: str) -> FormatError:
    return FormatError(f"{place}: {what}; run dcme-w2v check {path} for all faults")


def checked_matrix(path: Path, matrix: Array) -> F32:
    """Return the matrix of an npy file, or raise if it has no rows of word vectors."""
    if matrix.ndim != 2 or matrix.dtype != np.float32 or matrix.shape[1] < 1:
        raise FormatError(
            f"{path}: {matrix.dtype} of shape {matrix.shape}; give a float32 matrix "
            "with one row per word"
        )
    return matrix


@dataclass(frozen=True)
class NpyPair:
    """X.npy and X.vocab as they were read.

    Attributes
    ----------
    matrix : ndarray of float32, shape (n, d)
    words : Words
    counts : ndarray of int64, shape (n,), or None
    faults : ndarray of int64
        Faults of the words, as `read_counts` counts them.
    matches : bool
        Whether the words are those that were written with the matrix, as far as is known.
    """

    matrix: F32
    words: Words
    counts: I64 | None
    faults: I64
    matches: bool


def load_pair(path: Path, limit: int | None = None) -> NpyPair:
    """Read X.npy and X.vocab, both before or both after a replacement of the two."""
    vocabulary = vocabulary_path(path)
    for _ in range(_TRIES):
        found, checksum = open_npy(path)
        try:
            data = read_regular(vocabulary, MAX_VOCABULARY)
        except FileNotFoundError:
            raise FormatError(
                f"{vocabulary}: there is no such file; an npy file requires its .vocab file"
            ) from None
        matches = checksum in (None, zlib.crc32(data))
        if matches:
            break
        time.sleep(_PAUSE)  # another process may be between its two renames
    faults = no_faults()
    text, offsets, counts, counted = read_counts(
        np.frombuffer(data, np.uint8), MAX_ROWS if limit is None else limit, faults
    )
    if 0 < counted < len(counts) and not faults[:, 0].any():
        faults[COUNT] = (len(counts) - counted, np.argmin(counts), 0)
    matrix, words = checked_matrix(path, found), Words(text, offsets)
    return NpyPair(matrix, words, counts if counted else None, faults, matches)


def check_pair(path: Path, pair: NpyPair) -> None:
    """Raise `FormatError` if X.vocab is not the one that was written with X.npy."""
    if not pair.matches:
        raise FormatError(
            f"{path}: {vocabulary_path(path)} is not the file that was written with it; write both "
            "again"
        )


def _load_npy(path: Path, limit: int | None, mmap: bool) -> Loaded:
    vocabulary, pair = vocabulary_path(path), load_pair(path, limit)
    for kind in np.flatnonzero(pair.faults[:, 0]):
        place = f"{vocabulary}:{pair.faults[kind, 1] + 1}"
        raise _damaged(place, FAULT_NAMES[kind], str(path))
    words, matrix = pair.words, pair.matrix[:limit]
    if len(words) != len(matrix):
        raise _damaged(
            str(vocabulary), f"{len(words)} words for {len(matrix)} rows of {path}", str(path)
        )
    check_pair(path, pair)
    return words, matrix if mmap else np.array(matrix), pair.counts


def _load_safetensors(path: PathLike, limit: int | None, mmap: bool) -> Loaded:
    tensors = open_safetensors(path)
    words = tensors.words[:limit]
    faults = word_faults(words)
    for kind in np.flatnonzero(faults[:, 0]):
        place = f"{os.fspath(path)}: row {faults[kind, 1] + 1}"
        raise _damaged(place, FAULT_NAMES[kind], os.fspath(path))
    matrix = tensors.rows(slice(limit))
    counts = None if tensors.counts is None else np.array(tensors.counts[:limit])
    return words, matrix if mmap else np.array(matrix), counts


VOCABULARY = ".vocab"


def read_with(vectors: str | None) -> list[str]:
    """Return the files that are read with a file of vectors: X.vocab of X.npy, and a manifest."""
    if vectors is None or is_stream(vectors) or not Path(vectors).is_file():
        return []
    words = [str(vocabulary_path(vectors))] if starts_with(Path(vectors), MAGIC) else []
    return [*words, f"{vectors}{MANIFEST}"]


def written_with(vectors: str, format: str | None) -> list[Sidecar]:
    """Return the files that `save_vectors` writes beside its target, whose name it checks."""
    check_target(vectors, format)
    if (format or format_of(vectors)) != "npy":
        return []
    # The words alone are somebody's list of words.
    pair = Sidecar(str(vocabulary_path(vectors)), lambda _: starts_with(Path(vectors), MAGIC))
    return [pair]


def is_manifest(path: Path) -> bool:
    """Return whether a file is the manifest of trained vectors."""
    try:
        return {"version", "options"} <= read_json(path, "").keys()
    except ValueError:
        return False


def is_vocabulary(path: Path) -> bool:
    """Return whether the first line of a file is "word count"."""
    return first_line_is(path, rb"\S+ [0-9]+")


def first_line_is(path: Path, pattern: bytes) -> bool:
    """Return whether the first line of a file matches."""
    with open_regular(path) as file:
        return re.fullmatch(pattern, file.readline(1 << 20).rstrip(b"\n")) is not None


def starts_with(path: Path, magic: bytes) -> bool:
    """Return whether a path is a file that starts with magic bytes."""
    if not path.is_file():
        return False
    with open_regular(path) as file:
        return file.read(len(magic)) == magic
