"""Files of sparse rows: .npz as scipy reads it, and svmlight, both written as the rows come.

Called by `dcme_w2v.cli.scdv`, `dcme_w2v.documents.search` and `dcme_w2v.documents.plot`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dcme_w2v._core.documents import write_entries
from dcme_w2v.documents.scdv import DocumentModel
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files import STANDARD, replacing
from dcme_w2v.text.compression import read_whole
from dcme_w2v.text.documents import Document

_COPIED_AT_ONCE = 1 << 20


class RowWriter(Protocol):
    """Takes rows and the labels of each."""

    def add(self, rows: sparse.csr_matrix, labels: Iterable[tuple[str, ...]]) -> None:
        """Write rows."""


def suffix_of(path: str | os.PathLike[str]) -> str:
    """Return how rows are written to a path: "npz" or "svm", which is what stdout gets."""
    if os.fspath(path) == STANDARD:
        return "svm"
    suffix = Path(path).suffix
    if suffix in (".svm", ".svmlight", ".libsvm"):
        return "svm"
    if suffix != ".npz":
        raise UsageError(f"{os.fspath(path)}: name a file that ends in .npz or .svm, or -")
    return "npz"


@contextlib.contextmanager
def writing_rows(
    path: str | os.PathLike[str], columns: int, compress: bool = False
) -> Iterator[RowWriter]:
    """Open a file of rows; it takes its target's place only when the block ends well.

    Parameters
    ----------
    path : path
        X.npz, X.svm, or ``-`` for svmlight on standard output.
    columns : int
        The length of a row.
    compress : bool
        Deflate the values of X.npz, too.
    """
    kind = suffix_of(path)
    with replacing(path) as file:
        if kind == "svm":
            yield _SvmWriter(file)
            return
        with tempfile.TemporaryFile() as values, tempfile.TemporaryFile() as numbers:
            writer = _NpzWriter(columns, values, numbers)
            yield writer
            writer.finish(file, compress)


class _SvmWriter:
    """Lines "label column:value ...": labels are numbered from 1, 0 stands for none."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._numbers: dict[str, int] = {}

    def add(self, rows: sparse.csr_matrix, labels: Iterable[tuple[str, ...]]) -> None:
        columns = rows.indices.astype(np.int32, copy=False)
        for row, own in enumerate(labels):
            part = slice(rows.indptr[row], rows.indptr[row + 1])
            numbers = [self._numbers.setdefault(one, len(self._numbers) + 1) for one in own]
            self._file.write(",".join(map(str, numbers or [0])).encode())
            self._file.write(write_entries(columns[part], rows.data[part]))
            self._file.write(b"\n")


class _NpzWriter:
    """Values and columns go to files without names, and into the zip when their number is known.

    Columns are 16-bit numbers where that is enough, which scipy widens when it reads, and deflated,
    which halves them; values hardly shrink, and stay as they are unless asked for.
    """

    def __init__(self, columns: int, values: BinaryIO, numbers: BinaryIO) -> None:
        self._columns, self._values, self._numbers = columns, values, numbers
        self._dtype = np.uint16 if columns <= 1 << 16 else np.int32
        self._lengths: list[NDArray[np.int64]] = []

    def add(self, rows: sparse.csr_matrix, labels: Iterable[tuple[str, ...]]) -> None:
        self._lengths.append(np.diff(rows.indptr).astype(np.int64))
        self._values.write(rows.data.astype("<f4", copy=False).data)
        self._numbers.write(rows.indices.astype(self._dtype).data)

    def finish(self, file: BinaryIO, compress: bool) -> None:
        """Write the file."""
        lengths = np.concatenate([np.zeros(1, dtype=np.int64), *self._lengths])
        starts = np.cumsum(lengths)
        count = int(starts[-1])
        narrow = np.int32 if count <= np.iinfo(np.int32).max else np.int64
        packing = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            _store(archive, "indptr", starts.astype(narrow))
            _store(archive, "format", np.array(b"csr"))
            _store(archive, "shape", np.array([len(starts) - 1, self._columns]))
            _store_file(archive, "indices", np.dtype(self._dtype), count, self._numbers)
            archive.compression = packing
            _store_file(archive, "data", np.dtype("<f4"), count, self._values)


def _store(archive: zipfile.ZipFile, name: str, array: NDArray[np.generic]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array(member, array, allow_pickle=False)


def _store_file(
    archive: zipfile.ZipFile, name: str, dtype: np.dtype[np.generic], count: int, source: BinaryIO
) -> None:
    header = {"descr": dtype.str, "fortran_order": False, "shape": (count,)}
    source.seek(0)
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, header)
        shutil.copyfileobj(source, member, _COPIED_AT_ONCE)


def transform_to_files(
    model: DocumentModel,
    documents: Iterable[Document],
    output: str,
    labels: str | None = None,
    threads: int | None = None,
    compress: bool = False,
) -> dict[str, Any]:
    """Write the vectors of documents, and their labels, a line a row.

    Parameters
    ----------
    model : DocumentModel
    documents : iterable of Document
        Read once, and written in this order.
    output : str
        X.npz, X.svm, or ``-`` for svmlight on standard output.
    labels : str, optional
        The file of labels, joined by ``|``.
    threads : int, optional
    compress : bool
        Deflate the values of X.npz, too.

    Returns
    -------
    dict
        `rows`, `zero_rows` (without a word that counts), `entries`, and `density`, their share of
        rows x columns.
    """
    told, read = itertools.tee(documents)
    owns = (document.labels for document in told)
    rows = zero_rows = entries = 0
    with writing_rows(output, model.columns, compress) as writer, _lines_to(labels) as lines:
        for part in model.transform((document.text for document in read), threads):
            own = list(itertools.islice(owns, part.shape[0]))
            writer.add(part, own)
            if lines:
                lines.writelines("|".join(names).encode() + b"\n" for names in own)
            rows += part.shape[0]
            zero_rows += int((part.indptr[1:] == part.indptr[:-1]).sum())
            entries += part.nnz
    density = entries / (rows * model.columns) if rows else 0.0
    return {"rows": rows, "zero_rows": zero_rows, "entries": entries, "density": density}


def _lines_to(path: str | None) -> contextlib.AbstractContextManager[BinaryIO | None]:
    return replacing(path) if path else contextlib.nullcontext()


def load_rows(path: str | os.PathLike[str]) -> sparse.csr_matrix:
    """Read the sparse rows of an .npz file.

    Raises
    ------
    FormatError
        It is none.
    """
    try:
        rows = sparse.csr_matrix(sparse.load_npz(path), dtype=np.float32)
        rows.check_format(full_check=True)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise FormatError(
            f"{os.fspath(path)}: is no file of sparse rows ({error}); "
            "write one by dcme-w2v scdv transform"
        ) from None
    return rows


def load_labels(path: str, rows: int) -> list[tuple[str, ...]]:
    """Read labels, a line a row, joined by ``|``.

    Raises
    ------
    FormatError
        There are not as many lines as rows.
    """
    text = read_whole(path).decode()
    lines = text.removesuffix("\n").split("\n") if text else []
    if len(lines) != rows:
        raise FormatError(f"{path}: has {len(lines)} lines for {rows} rows; give a line a row")
    return [tuple(label for label in line.rstrip("\r").split("|") if label) for line in lines]
