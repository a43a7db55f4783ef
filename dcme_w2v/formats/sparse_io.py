"""Read and write sparse rows (in .npz and svmlight files) and their labels."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
import zipfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core.codec import write_entries
from dcme_w2v.errors import CorpusError, DcmeError, FormatError, UnreadableError, UsageError
from dcme_w2v.files.atomic import (
    STANDARD,
    atomic_write,
    optional_write,
    suffixes_of,
    temporary_folder,
    write_errors,
)
from dcme_w2v.files.opening import open_regular, read_lines
from dcme_w2v.files.space import require_memory
from dcme_w2v.numeric.arrays import I64, without_warnings
from dcme_w2v.numeric.sparse_rows import MAX_COLUMNS, checked_rows, fit_columns
from dcme_w2v.platform import PathLike

from .artifact import npy_header, read_head
from .labels import NoneOfThese, label_of, labels_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
NPZ = (".npz",)
MTX = (".mtx",)

# Limits that detect decompression bombs; real data is never compressed to 1/200 of its size.
_EXPANSION, _EXPANDED_BYTES = 200, 1 << 30
_READ_BYTES = 1 << 20
_LARGEST = float(np.finfo(np.float32).max)

Labels = list[tuple[str, ...]]


# ---- reading ----


def is_vectors(path: str) -> bool:
    """Return whether a file name ends in a sparse-format suffix, ignoring compression suffixes."""
    return isinstance(path, str) and suffixes_of(path)[0] in SVMLIGHT + NPZ + MTX


def read_sparse_rows(
    path: str, labels: str | None, columns: int | None = None
) -> tuple[csr_matrix, Labels]:
    """Read a sparse matrix (.npz, .mtx or .svm) and the labels of its rows (empty if unknown).

    Parameters
    ----------
    path : str
        svmlight: lines ``label,label feature:value``; or a matrix of scipy's `save_npz` or of
        Matrix Market.
    labels : str, optional
        For .npz and .mtx: a file with one line per row, which has the row's labels joined by ``|``.
    columns : int, optional
        Number of columns that the matrix must have: the number in the training data.

    Raises
    ------
    CorpusError
        The number of columns is wrong, or the file cannot be read.
    FormatError
        The file is corrupt.
    """
    if path.lower().endswith(NPZ + MTX):
        rows = read_npz(path) if path.lower().endswith(NPZ) else read_mtx(path)
        if columns is not None and rows.shape[1] != columns:
            raise CorpusError(
                f"{path} has {rows.shape[1]:,} columns, but the model was trained on {columns:,} "
                "columns; use rows with the model's features"
            )
        count = rows.shape[0]
        return rows, [()] * count if labels is None else read_labels(labels, count)
    if suffixes_of(path)[0] in NPZ + MTX:
        raise UsageError(
            f"{path}: this format cannot be read compressed; decompress the file first"
        )
    if labels is not None:
        raise UsageError(
            f"--labels={labels} applies only to .npz and .mtx files, but {path} contains its own "
            "labels; omit --labels"
        )
    return read_svmlight(path)


def read_npz(path: PathLike) -> csr_matrix:
    """Read a sparse matrix from an .npz file.

    Raises
    ------
    FormatError
        The file is not a sparse matrix, is corrupt, or fails `numeric.sparse_rows.check_rows`.
    CorpusError
        The file cannot be read.
    ResourceError
        There is not enough memory.
    """
    from scipy import sparse

    name = os.fspath(path)
    with (
        _reading(name, "sparse matrix", "save_npz or dcme-w2v transform"),
        open_regular(name) as file,
        zipfile.ZipFile(file) as archive,
    ):
        total = sum(one.file_size for one in archive.infolist())
        _check_size(total, name)
        for info in archive.infolist():
            with archive.open(info) as member:
                dtype, shape, _ = read_head(member)
                size = math.prod(shape) * dtype.itemsize
                if size != info.file_size - member.tell():
                    raise ValueError(
                        f"{info.filename} does not contain the {size:,} bytes that its header "
                        "declares"
                    )
        file.seek(0)
        matrix = sparse.load_npz(file)
        if matrix.format not in ("coo", "csr", "csc"):
            raise ValueError(
                f"the sparse format {matrix.format!r} is not supported; convert the matrix with "
                "tocsr()"
            )
        _check_size(total + 8 * matrix.shape[0], name)  # row offsets take 8 bytes per row
        return checked_rows(matrix)


def read_mtx(path: PathLike) -> csr_matrix:
    """Read a Matrix Market file; raise the same errors as `read_npz`."""
    name = os.fspath(path)
    from scipy import io

    with _reading(name, "Matrix Market file", "mmwrite"):
        with open_regular(name) as file:
            head = file.readline(1024).lower().split()
            size = file.seek(0, os.SEEK_END)
        if head[:2] != [b"%%matrixmarket", b"matrix"] or b"complex" in head:
            raise ValueError("the first line of the file does not declare a matrix of real numbers")
        rows, _, entries = io.mminfo(name)[:3]
        if entries > size:
            raise ValueError(f"the file is too short for {entries:,} entries")
        _check_size(12 * entries + 8 * rows, name)
        # Pass scipy a file name, because scipy can terminate the process if it reads an open file.
        return checked_rows(io.mmread(name))


@contextlib.contextmanager
def _reading(name: str, what: str, writer: str) -> Iterator[None]:
    """Convert errors that a corrupt file causes in the ``with`` block to `FormatError`."""
    try:
        with without_warnings():
            yield
    except (DcmeError, MemoryError):
        raise
    except OSError as error:
        raise UnreadableError(f"{name} cannot be read: {error.strerror or error}") from None
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FormatError(
            f"{name} is not a valid {what} ({reason}); write it again with scipy's {writer}"
        ) from None


def _check_size(expanded: int, name: str) -> None:
    """Raise an error if decompressed data would be implausibly large or would not fit in memory."""
    stored = Path(name).stat().st_size
    if expanded > max(_EXPANDED_BYTES, _EXPANSION * stored):
        raise ValueError(
            f"the {stored:,} bytes of the file would expand to {expanded:,} bytes, which is "
            "implausible"
        )
    require_memory(2 * expanded, f"{name}: reading it", "read fewer rows at a time")


def read_labels(path: str, rows: int | None = None) -> Labels:
    r"""Read each row's labels from one line, separated by ``|``; an empty line means no labels.

    Only ``\n`` and ``\r\n`` end a line, so that labels may have any other character.

    Raises
    ------
    FormatError
        The number of lines is not `rows`, or a line is not UTF-8 text.
    """
    found: Labels = []
    for number, line in read_lines(path):
        # Raise an error at the first extra line, because reading all lines could take too much
        # memory.
        if rows is not None and number > rows:
            raise FormatError(
                f"{path} has more than {rows} lines, but there are {rows} rows; write one line "
                "per row"
            )
        try:
            if b"\0" in line:
                raise ValueError
            labels = line.removesuffix(b"\n").removesuffix(b"\r").decode()
        except ValueError:
            raise FormatError(
                f"{path}: line {number} is not UTF-8 text; convert the file to UTF-8"
            ) from None
        found.append(labels_of(labels))
    if rows is not None and len(found) != rows:
        raise FormatError(
            f"{path} has {len(found)} lines, but there are {rows} rows; write one line per row"
        )
    return found


def read_svmlight(path: str) -> tuple[csr_matrix, Labels]:
    """Read an svmlight file, using feature numbers as column numbers.

    The first line may be the numbers of rows, features and labels, as in the files of the Extreme
    Classification Repository.

    Raises
    ------
    FormatError
        A line is not valid; the message has the line number.
    """
    from scipy.sparse import csr_matrix

    labels: Labels = []
    starts, columns, values = array("q", [0]), array("i"), array("d")
    for number, line in read_lines(path):
        fields = line.partition(b"#")[0].split()
        is_header = number == 1 and len(fields) == 3 and all(map(bytes.isdigit, fields))
        if not fields or is_header:
            continue
        first = () if b":" in fields[0] else fields[0].split(b",")
        own = tuple(_text(label, path, number) for label in first if label)
        labels.append(NoneOfThese() if own == ("[]",) else own)
        for field in fields[len(first) > 0 :]:
            column, value = _entry(field, path, number)
            columns.append(column)
            values.append(value)
        starts.append(len(columns))
    if not labels:
        raise CorpusError(f"{path} contains no rows; write the file again")
    shape = (len(labels), max(columns, default=0) + 1)
    parts = (np.frombuffer(part, dtype=part.typecode) for part in (values, columns, starts))
    try:
        return checked_rows(csr_matrix(tuple(parts), shape=shape)), labels
    except ValueError as error:
        raise FormatError(f"{path}: {error}") from None


def _text(label: bytes, path: str, number: int) -> str:
    try:
        found = label_of(label.decode())
        # Remove the plus sign, because +1 and 1 are the same label.
        return found[1:] if found[:1] == "+" and found[1:].isdigit() else found
    except UnicodeDecodeError:
        raise FormatError(
            f"{path}: line {number}: a label is not UTF-8; convert the file to UTF-8"
        ) from None


def _entry(field: bytes, path: str, number: int) -> tuple[int, float]:
    column, _, value = field.partition(b":")
    if column == b"qid":
        raise FormatError(
            f"{path}: line {number}: the field qid is not supported; remove the qid fields"
        )
    try:
        if b"_" in field:  # Python accepts 1_000 as a number, but svmlight files do not
            raise ValueError
        found = int(column), float(value)
    except ValueError:
        shown = ascii(field[:40].decode(errors="replace"))
        raise FormatError(
            f"{path}: line {number}: {shown} does not have the form FEATURE:VALUE; correct this "
            "field"
        ) from None
    if not abs(found[1]) <= _LARGEST:
        raise FormatError(
            f"{path}: line {number}: the value of feature {found[0]} is not a finite number; "
            "correct the value"
        )
    if not 0 <= found[0] < MAX_COLUMNS:
        raise FormatError(
            f"{path}: line {number}: the feature number {found[0]} is out of range; renumber the "
            "features"
        )
    return found


def columns_of(paths: Sequence[str], parts: Sequence[csr_matrix]) -> int | None:
    """Return the number of columns, which is the same in all files, or None for svmlight files.

    An svmlight file shows only the columns that occur in it.

    Raises
    ------
    UsageError
        The .npz files have different numbers of columns.
    """
    widths = {
        path: part.shape[1]
        for path, part in zip(paths, parts, strict=True)
        if path.lower().endswith(NPZ + MTX)
    }
    if len(set(widths.values())) > 1:
        shown = ", ".join(f"{path}: {width:,}" for path, width in widths.items())
        raise UsageError(
            f"the files have different numbers of columns ({shown}); use files with the same "
            "feature columns"
        )
    return parts[0].shape[1] if len(widths) == len(set(paths)) else None


def join(parts: Sequence[csr_matrix]) -> csr_matrix:
    """Stack matrices vertically; narrower matrices are widened with empty columns."""
    from scipy.sparse import csr_matrix, vstack

    width = max(part.shape[1] for part in parts)
    return csr_matrix(vstack([fit_columns(part, width) for part in parts], format="csr"))


# ---- writing ----


def suffix_of(path: PathLike) -> str:
    """Return the format of an output path: "npz", or "svm" (also for standard output)."""
    if os.fspath(path) == STANDARD:
        return "svm"
    if suffixes_of(path)[0] in SVMLIGHT:
        return "svm"
    if Path(path).suffix not in NPZ:
        raise UsageError(
            f"{os.fspath(path)}: the name does not end in .npz or .svm; choose another name, or "
            "use - for svmlight on standard output"
        )
    return "npz"


class _SvmWriter:
    """A writer of svmlight lines "label column:value ...", which numbers labels from 1."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._numbers: dict[str, int] = {}

    def add(self, rows: csr_matrix, labels: Iterable[tuple[str, ...]]) -> None:
        columns = rows.indices.astype(np.int32, copy=False)
        for row, own in enumerate(labels):
            part = slice(rows.indptr[row], rows.indptr[row + 1])
            numbers = [self._numbers.setdefault(one, len(self._numbers) + 1) for one in own]
            self._file.write(",".join(map(str, numbers or [0])).encode())
            self._file.write(write_entries(columns[part], rows.data[part]))
            self._file.write(b"\n")


class _NpzWriter:
    """An .npz writer that collects values and column indices in temporary files.

    Columns are 16-bit integers if possible, which scipy widens when reading, and compressed, which
    halves them. Values hardly compress, and are stored.
    """

    def __init__(self, columns: int, values: BinaryIO, numbers: BinaryIO) -> None:
        self._columns, self._values, self._numbers = columns, values, numbers
        self._dtype = np.dtype(np.uint16 if columns <= 1 << 16 else np.int32)
        self._lengths: list[I64] = []

    def add(self, rows: csr_matrix, labels: Iterable[tuple[str, ...]]) -> None:
        self._lengths.append(np.diff(rows.indptr).astype(np.int64))
        with write_errors(temporary_folder()):
            self._values.write(rows.data.astype("<f4", copy=False).data)
            self._numbers.write(rows.indices.astype(self._dtype).data)

    def finish(self, file: BinaryIO) -> None:
        """Assemble the .npz file from the temporary files."""
        lengths = np.concatenate([np.zeros(1, dtype=np.int64), *self._lengths])
        starts = np.cumsum(lengths)
        count = int(starts[-1])
        narrow = np.int32 if count <= np.iinfo(np.int32).max else np.int64
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            _store(archive, "indptr", starts.astype(narrow))
            _store(archive, "format", np.array(b"csr"))
            _store(archive, "shape", np.array([len(starts) - 1, self._columns]))
            _store_file(archive, "indices", npy_header(self._dtype, (count,)), self._numbers)
            archive.compression = zipfile.ZIP_STORED
            _store_file(archive, "data", npy_header(np.dtype("<f4"), (count,)), self._values)


@contextlib.contextmanager
def writing_rows(path: PathLike, columns: int) -> Iterator[_SvmWriter | _NpzWriter]:
    """Open an .npz or svmlight file for atomic writing.

    Parameters
    ----------
    path : path
        X.npz, X.svm, or ``-`` for svmlight on standard output.
    columns : int
        Number of columns.
    """
    kind = suffix_of(path)
    with atomic_write(path) as file:
        if kind == "svm":
            yield _SvmWriter(file)
            return
        folder = temporary_folder()
        with (
            tempfile.TemporaryFile(dir=folder) as values,
            tempfile.TemporaryFile(dir=folder) as numbers,
        ):
            writer = _NpzWriter(columns, values, numbers)
            yield writer
            writer.finish(file)


def write_batches(
    path: str,
    columns: int,
    batches: Iterable[tuple[csr_matrix, Sequence[tuple[str, ...]]]],
    labels: str | None,
) -> dict[str, int]:
    """Write batches of rows and their labels; return the numbers of rows and entries written.

    Parameters
    ----------
    path, columns
        See `writing_rows`.
    batches : iterable of (csr_matrix, sequence of tuples of str)
    labels : str, optional
        Also write the labels to this file, one line per row, joined by ``|``.

    Returns
    -------
    dict
        The numbers `rows`, `zero_rows` (rows without entries) and `entries`.
    """
    found = {"rows": 0, "zero_rows": 0, "entries": 0}
    with writing_rows(path, columns) as writer, optional_write(labels) as lines:
        for rows, own in batches:
            writer.add(rows, own)
            if lines:
                lines.writelines("|".join(names).encode() + b"\n" for names in own)
            found["rows"] += rows.shape[0]
            found["zero_rows"] += int((np.diff(rows.indptr) == 0).sum())
            found["entries"] += rows.nnz
    return found


def _store(archive: zipfile.ZipFile, name: str, array: NDArray[np.generic]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)


def _store_file(archive: zipfile.ZipFile, name: str, header: bytes, source: BinaryIO) -> None:
    with write_errors(temporary_folder()):
        source.seek(0)  # `seek` also flushes buffered data to the file
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        member.write(header)
        shutil.copyfileobj(source, member, _READ_BYTES)
