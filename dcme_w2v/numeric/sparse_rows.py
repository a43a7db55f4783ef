"""Sparse rows: validation, scaling to unit length, dropping or adding columns."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_matrix

from dcme_w2v.errors import UsageError


def unit_rows(matrix: csr_matrix) -> csr_matrix:
    """Return rows scaled to unit length; rows of zeros are unchanged."""
    squares = np.add.reduceat(
        np.append(np.square(matrix.data, dtype=np.float64), 0.0), matrix.indptr[:-1]
    )
    sizes = np.diff(matrix.indptr)
    lengths = np.where((sizes > 0) & (squares > 0), np.sqrt(np.abs(squares)), 1)
    data = (matrix.data / np.repeat(lengths, sizes)).astype(np.float32)
    return csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def ones(matrix: csr_matrix) -> csr_matrix:
    """Return a matrix whose entries are all 1."""
    data = np.ones_like(matrix.data)
    return csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def truncate_columns(matrix: csr_matrix, columns: int) -> csr_matrix:
    """Keep only the first `columns` columns of rows."""
    return matrix if matrix.shape[1] <= columns else matrix[:, :columns]


def fit_columns(matrix: csr_matrix, columns: int) -> csr_matrix:
    """Return rows with exactly `columns` columns: drop further ones, add zeros for missing ones."""
    matrix = truncate_columns(matrix, columns)
    shape = (matrix.shape[0], columns)
    return csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=shape)


MAX_COLUMNS = 2**31 - 2  # columns are int32 in the core, which adds a constant column


def check_rows(X: Any) -> csr_matrix:
    """Return rows as a csr_matrix of float32 that the C core can read without bounds checks.

    Row pointers are monotonic, from 0 to the number of entries; columns are in range, sorted and
    distinct (duplicate entries are summed); all values are finite. The argument is not changed. A
    matrix that already conforms is not copied.

    Parameters
    ----------
    X : sparse matrix of any format, or array_like

    Raises
    ------
    UsageError
        The matrix is not valid; the message names the row and column, if there is one.
    """
    try:
        return checked_rows(X)
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from None


def checked_rows(X: Any) -> csr_matrix:
    """Check rows as `check_rows` does, but raise ValueError, for readers that add a file name."""
    if not sparse.issparse(X):
        X = csr_matrix(np.atleast_2d(np.asarray(X, dtype=np.float64)))
    if len(X.shape) != 2:
        raise ValueError(f"has {len(X.shape)} dimensions; give a matrix with one row per document")
    if X.shape[1] > MAX_COLUMNS:
        raise ValueError(f"has {X.shape[1]:,} columns; at most {MAX_COLUMNS:,} are supported")
    _check_structure(X)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"has entries of type {X.dtype}; give real numbers")
    rows = X.tocsr()
    with np.errstate(over="ignore"):
        data = rows.data.astype(np.float32, copy=False)
    # A new object: the sorted-indices flag of the old one may be out of date.
    found = csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    wrong = np.flatnonzero(~np.isfinite(found.data))
    if len(wrong):
        row = int(np.searchsorted(found.indptr, wrong[0], side="right")) - 1
        column = found.indices[wrong[0]]
        raise ValueError(
            f"row {row}, column {column}: is not a finite number of float32; repair the data"
        )
    return found


def _check_structure(X: Any) -> None:
    """Raise ValueError if converting the matrix would access memory out of bounds."""
    if X.format == "coo":
        sparse.coo_matrix((X.data, (X.row, X.col)), shape=X.shape)
    elif X.format in ("csr", "csc", "bsr"):
        if {X.indices.dtype.kind, X.indptr.dtype.kind} - set("iu"):
            raise ValueError("indices and indptr must be integers")
        kind = {"csr": csr_matrix, "csc": sparse.csc_matrix, "bsr": sparse.bsr_matrix}[X.format]
        kind((X.data, X.indices, X.indptr), shape=X.shape).check_format(full_check=True)
