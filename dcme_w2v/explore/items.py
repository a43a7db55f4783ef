"""What a page shows of one file: names, vectors, groups.

Word vectors are shown by their words; rows of documents (.npz, .svm) by the text beside their
labels, or by their number, and their columns are reduced to the first principal ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import svds

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.opening import read_lines
from dcme_w2v.formats.sparse_io import is_vectors, read_vectors
from dcme_w2v.words.neighbors import inverse_lengths
from dcme_w2v.words.vectors import Vectors

LEAST = 3
_COLUMNS = 100  # of rows of documents
_NAME = 80  # characters


@dataclass(frozen=True)
class Items:
    """Words or documents with vectors.

    Attributes
    ----------
    title : str
        Name of the file.
    names : list of str
        Distinct.
    matrix : ndarray of float32, shape (n, d)
        Of unit length; rows of zeros stay.
    groups : list of str
        Group of each item; empty without labels.
    """

    title: str
    names: list[str]
    matrix: NDArray[np.float32]
    groups: list[str]


def read_items(path: str, labels: str | None, column: int, limit: int, seed: int) -> Items:
    """Read the first `limit` rows of a file.

    Parameters
    ----------
    path : str
    labels : str, optional
        A file with a line for each row, with columns separated by tabs.
    column : int
        The column of the groups, from 1; the others are the names of documents.
    limit : int
    seed : int
    """
    of_documents = is_vectors(path)
    if of_documents:
        rows, own = read_vectors(path, None)
        total, found = rows.shape[0], ["|".join(one) for one in own[:limit]]
        matrix = _reduced(rows[:limit].astype(np.float32), seed)
        names = [str(number) for number in range(1, len(found) + 1)]
    else:
        vectors = Vectors.load(path)
        total, found, names = len(vectors), [], list(vectors.words[:limit])
        matrix = np.array(vectors.vectors[:limit])
    if len(names) < LEAST:
        raise UsageError(f"{path}: {len(names)} rows; a map needs {LEAST} at least")
    groups = found if any(found) else []
    if labels is not None:
        lines = _columns_of(labels, total, column)[:limit]
        groups = [line[column - 1] for line in lines]
        if of_documents:
            texts = (" ".join(line[: column - 1] + line[column:])[:_NAME].strip() for line in lines)
            names = [f"{number} {text}".strip() for number, text in zip(names, texts, strict=True)]
    matrix *= inverse_lengths(matrix)[:, None]
    return Items(path, names, matrix, groups)


def _reduced(rows: object, seed: int) -> NDArray[np.float32]:
    """Return sparse rows in the first principal directions, with little loss of cosines."""
    dense_width = min(_COLUMNS, min(rows.shape) - 1)  # type: ignore[attr-defined]
    if rows.shape[1] <= _COLUMNS or dense_width < 1:  # type: ignore[attr-defined]
        return np.asarray(rows.toarray(), dtype=np.float32)  # type: ignore[attr-defined]
    u, s, _ = svds(rows, dense_width, random_state=seed)
    return np.ascontiguousarray((u * s)[:, ::-1], dtype=np.float32)


def _columns_of(path: str, rows: int, column: int) -> list[list[str]]:
    """Return the columns of each line of a file of labels."""
    found: list[list[str]] = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            found.append(line.decode().rstrip("\r\n").split("\t"))
        except UnicodeDecodeError:
            raise FormatError(f"{path}:{number}: is not UTF-8; convert it first") from None
        if len(found[-1]) < column:
            raise FormatError(
                f"{path}:{number}: has {len(found[-1])} columns, not {column}; lower --colour"
            )
    if len(found) != rows:
        raise FormatError(f"{path}: {len(found)} lines for {rows} rows; give a line for each row")
    return found


def most_frequent(groups: Sequence[str], count: int) -> list[str]:
    """Return the groups with the most items, at most `count`."""
    names, sizes = np.unique(np.array(groups, dtype=object), return_counts=True)
    return [str(names[i]) for i in np.argsort(-sizes, kind="stable")[:count]]
