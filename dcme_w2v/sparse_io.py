"""Documents that are vectors already: svmlight files and .npz matrices with a file of labels.

Called by `dcme_w2v.classify.pipeline`.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix, issparse, load_npz

from dcme_w2v.classify.estimator import as_rows
from dcme_w2v.errors import CorpusError, FormatError, UsageError
from dcme_w2v.text.compression import CorpusFile

SVMLIGHT = (".svm", ".svmlight", ".libsvm")
NPZ = (".npz",)

Labels = list[tuple[str, ...]]


def is_vectors(path: str) -> bool:
    """Tell by its suffix whether a file holds vectors; packed ones have a second suffix."""
    name = path.lower()
    for packed in (".gz", ".bz2", ".xz", ".zst"):
        name = name.removesuffix(packed)
    return name.endswith(SVMLIGHT + NPZ)


def read_vectors(path: str, labels: str | None) -> tuple[csr_matrix, Labels | None]:
    """Read vectors and, where there are any, their labels.

    Parameters
    ----------
    path : str
        svmlight: lines ``label,label feature:value``; or a matrix of scipy's `save_npz`.
    labels : str, optional
        For .npz: a file with a line of labels, joined by ``|``, for each row.
    """
    if path.lower().endswith(NPZ):
        return read_npz(path), read_labels(labels) if labels is not None else None
    if labels is not None:
        raise UsageError(f"--labels {labels}: is for .npz; {path} has its labels in it")
    return read_svmlight(path)


def read_npz(path: str) -> csr_matrix:
    """Read a sparse matrix.

    Raises
    ------
    FormatError
        It is none, or has a number that is not finite.
    """
    try:
        matrix = load_npz(path)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise FormatError(f"{path}: is no sparse matrix of scipy's save_npz ({error})") from None
    if not issparse(matrix):
        raise FormatError(f"{path}: is no sparse matrix; write it by scipy's save_npz")
    try:
        return as_rows(matrix)
    except UsageError as error:
        raise FormatError(f"{path}: {error}") from None


def read_labels(path: str) -> Labels:
    """Read lines of labels; an empty line is a row without labels."""
    with CorpusFile(path) as file:
        try:
            lines = io.BufferedReader(file).read().decode().splitlines()
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{path}: byte {error.start} is not UTF-8; convert the file"
            ) from None
    return [tuple(label for label in line.split("|") if label) for line in lines]


def read_svmlight(path: str) -> tuple[csr_matrix, Labels]:
    """Read an svmlight file; features keep their numbers as columns.

    Raises
    ------
    FormatError
        A line is wrong; the message has its number.
    """
    labels: Labels = []
    starts, columns, values = [0], [], []
    with CorpusFile(path) as file:
        for number, line in enumerate(io.BufferedReader(file), 1):
            fields = line.partition(b"#")[0].split()
            if not fields:
                continue
            first = () if b":" in fields[0] else fields[0].split(b",")
            labels.append(tuple(_text(label, path, number) for label in first if label))
            for field in fields[len(first) > 0 :]:
                column, value = _entry(field, path, number)
                columns.append(column)
                values.append(value)
            starts.append(len(columns))
    if not labels:
        raise CorpusError(f"{path}: has no vectors; give another file")
    shape = (len(labels), max(columns, default=0) + 1)
    matrix = csr_matrix((np.array(values), np.array(columns, dtype=np.int32), starts), shape=shape)
    return as_rows(matrix), labels


def join(parts: Sequence[csr_matrix]) -> csr_matrix:
    """Return matrices one below the other, as wide as the widest."""
    from scipy.sparse import vstack

    width = max(part.shape[1] for part in parts)
    wide = [csr_matrix((p.data, p.indices, p.indptr), shape=(p.shape[0], width)) for p in parts]
    return csr_matrix(vstack(wide, format="csr"))


def _text(label: bytes, path: str, number: int) -> str:
    try:
        return label.decode()
    except UnicodeDecodeError:
        raise FormatError(f"{path}: line {number}: a label is not UTF-8; convert it") from None


def _entry(field: bytes, path: str, number: int) -> tuple[int, float]:
    column, _, value = field.partition(b":")
    if column == b"qid":
        raise FormatError(f"{path}: line {number}: qid is for rankings; take it out")
    try:
        found = int(column), float(value)
    except ValueError:
        shown = field[:40].decode(errors="replace")
        raise FormatError(f"{path}: line {number}: {shown!r} is not feature:value") from None
    if not math.isfinite(found[1]):
        raise FormatError(f"{path}: line {number}: feature {found[0]} is not a finite number")
    if not 0 <= found[0] < 2**31 - 2:
        raise FormatError(f"{path}: line {number}: feature {found[0]} is out of range")
    return found
