"""Validate sparse rows, scale them to unit length, and drop or add columns.

Commands that classify text or load a model use `CompressedRows` instead of `scipy.sparse`, because
importing scipy takes longer than a prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dcme_w2v._core import codec
from dcme_w2v._core.codec import add_products, copy_rows, transpose
from dcme_w2v.errors import UsageError

from .arrays import F32, F64, I32, I64, Array, Bools

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


# An n-row matrix with m nonzero entries is rotated only if n^2 is at most MOST_SQUARES * m.
MOST_SQUARES = 4
# A column with entries in a larger fraction of rows is multiplied as a dense array.
COMMON = 0.1
# This fraction of the mean diagonal entry is added to the diagonal, which makes the matrix positive
# definite.
RIDGE = 1e-4
DENSE = 0.25  # rows are dense if at least this fraction of their values is nonzero


class CompressedRows:
    """The arrays of a csr_matrix, from which rows can be selected without importing scipy.

    Parameters
    ----------
    arrays : tuple of ndarray
        Values, columns and row starts, as for csr_matrix.
    shape : tuple of int

    Attributes
    ----------
    data, indices, indptr : ndarray
    shape : tuple of int
    nnz : int
    """

    has_sorted_indices = True

    def __init__(self, arrays: tuple[Array, Array, Array], shape: tuple[int, int]) -> None:
        self.data, self.indices, self.indptr = arrays
        self.shape, self.nnz = shape, len(self.data)

    def __getitem__(self, rows: Any) -> CompressedRows:
        """Select rows by a slice, indices or a mask."""
        chosen = np.arange(self.shape[0])[rows]
        starts = np.asarray(self.indptr, dtype=np.int64)
        data, indices = (copy_rows(one, starts, chosen) for one in (self.data, self.indices))
        starts = np.append(0, np.cumsum(np.diff(self.indptr)[chosen]))
        return CompressedRows((data, indices, starts), (len(chosen), self.shape[1]))

    def entries(self, kept: Bools) -> CompressedRows:
        """Keep only the entries that a mask selects, without changing the shape."""
        starts = np.append(0, np.cumsum(kept))[self.indptr]
        return CompressedRows((self.data[kept], self.indices[kept], starts), self.shape)

    def transposed(self, rows: I64 | None = None) -> CompressedRows:
        """Return the transposed matrix of all rows, or of `rows` in the given order."""
        if rows is None:
            return transposed_parts([self])
        size = int(np.diff(self.indptr)[rows].sum())
        arrays = np.empty(size, dtype=np.float32), np.empty(size, dtype=np.int32)
        return CompressedRows((*arrays, self._transpose(rows, *arrays)), (self.shape[1], len(rows)))

    def _transpose(self, rows: I64, data: F32, indices: I32) -> I64:
        """Transpose some rows into the given arrays, and return the row starts of the result."""
        starts = np.asarray(self.indptr, dtype=np.int64)
        return transpose(self.indices, self.data, starts, rows, self.shape[1], indices, data)

    def in_columns(self, place: I64, width: int) -> CompressedRows:
        """Move each column to a new index, or drop it if the new index is negative."""
        rows = self.entries(place[self.indices] >= 0)
        columns = place[rows.indices].astype(np.int32)
        moved = CompressedRows((rows.data, columns, rows.indptr), (self.shape[0], width))
        return moved.transposed().transposed()

    def matrix(self) -> csr_matrix:
        """Return a csr_matrix that shares the arrays of this object."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.data, self.indices, self.indptr), shape=self.shape)


AnyRows: TypeAlias = "csr_matrix | CompressedRows"


def transposed_parts(parts: Sequence[CompressedRows]) -> CompressedRows:
    """Transpose matrices that have the same number of rows, and stack the results."""
    ends = np.cumsum([part.nnz for part in parts])
    data, indices = np.empty(ends[-1], dtype=np.float32), np.empty(ends[-1], dtype=np.int32)
    starts = [np.zeros(1, dtype=np.int64)]
    for part, end in zip(parts, ends, strict=True):
        own, rows = slice(end - part.nnz, end), np.arange(part.shape[0])
        starts.append(own.start + part._transpose(rows, data[own], indices[own])[1:])
    every = np.concatenate(starts)
    return CompressedRows((data, indices, every), (len(every) - 1, parts[0].shape[0]))


def is_sparse(matrix: Any) -> bool:
    """Return whether an object is a scipy sparse matrix, without importing scipy."""
    return hasattr(matrix, "tocsr")


def as_matrix(rows: AnyRows) -> csr_matrix:
    """Return rows as a csr_matrix without copying their arrays."""
    return rows.matrix() if isinstance(rows, CompressedRows) else rows


def is_dense(rows: AnyRows) -> bool:
    """Return whether rows are dense, as numeric features are, rather than sparse like text."""
    return bool(rows.nnz >= DENSE * rows.shape[0] * rows.shape[1])


def with_values(rows: Any, data: Array, columns: int | None = None) -> Any:
    """Return a copy of sparse rows with new values and, optionally, a new number of columns."""
    shape = (rows.shape[0], rows.shape[1] if columns is None else columns)
    return type(rows)((data, rows.indices, rows.indptr), shape=shape)


def squared_lengths(matrix: AnyRows) -> F64:
    """Return the squared length of each row."""
    data, starts = np.asarray(matrix.data, np.float32), np.asarray(matrix.indptr, np.int64)
    return codec.squared_lengths(data, starts)


def unit_rows(matrix: Any) -> Any:
    """Scale rows to unit length; zero rows are unchanged."""
    squares = squared_lengths(matrix)
    lengths = np.where(squares > 0, np.sqrt(squares), 1)
    data = (matrix.data / np.repeat(lengths, np.diff(matrix.indptr))).astype(np.float32)
    return with_values(matrix, data)


def inner_products(columns: CompressedRows) -> F32:
    """Return the inner products of all pairs of columns, in the lower triangle of a matrix."""
    is_common = np.diff(columns.indptr) > COMMON * columns.shape[1]
    common = columns[is_common]
    dense = np.zeros(common.shape, dtype=np.float32)
    dense[np.repeat(np.arange(len(dense)), np.diff(common.indptr)), common.indices] = common.data
    with np.errstate(over="ignore", invalid="ignore"):
        found: F32 = dense.T @ dense
    add_products(columns.indices, columns.data, columns.indptr, np.flatnonzero(~is_common), found)
    return found


def rotated(
    matrix: AnyRows, products_of: Callable[[CompressedRows], F32] = inner_products
) -> AnyRows:
    """If there are few long rows, return shorter rows with the same inner products.

    The result is the Cholesky factor of the matrix of inner products, which `products_of` computes
    from the transposed matrix. A linear model with an L2 penalty has the same scores on these rows,
    but takes less time to train.
    """
    count = matrix.shape[0]
    if count**2 > MOST_SQUARES * matrix.nnz:
        return matrix
    arrays = matrix.data, np.asarray(matrix.indices, np.int32), matrix.indptr
    products = products_of(CompressedRows(arrays, matrix.shape).transposed()).astype(np.float64)
    if not np.isfinite(products).all():
        return matrix
    products[np.diag_indices(count)] += RIDGE * max(products.trace() / count, RIDGE)
    try:
        factor = np.linalg.cholesky(products)
    except np.linalg.LinAlgError:  # because of rounding errors, the matrix has no Cholesky factor
        return matrix
    rows, columns = np.tril_indices(count)
    data = factor[rows, columns].astype(np.float32)
    starts = np.append(0, np.cumsum(np.arange(1, count + 1)))
    return CompressedRows((data, columns.astype(np.int32), starts), (count, count))


def ones(matrix: Any) -> Any:
    """Return a matrix whose entries are all 1."""
    return with_values(matrix, np.ones_like(matrix.data))


def truncate_columns(matrix: Any, columns: int) -> Any:
    """Keep only the first `columns` columns of rows."""
    return matrix if matrix.shape[1] <= columns else as_matrix(matrix)[:, :columns]


def fit_columns(matrix: Any, columns: int) -> Any:
    """Return rows with exactly `columns` columns: drop extra columns, or add empty ones."""
    matrix = truncate_columns(matrix, columns)
    return with_values(matrix, matrix.data, columns)


MAX_COLUMNS = 2**31 - 2  # the core adds a constant column and stores column indices as int32


def check_rows(X: Any) -> csr_matrix:
    """Convert rows to a float32 csr_matrix that the C core can read without bounds checks.

    In the result, row pointers ascend from 0 to the number of entries, columns are in range, sorted
    and distinct (duplicate entries are summed), and all values are finite. The argument is not
    changed; a matrix that already conforms is not copied.

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
    """Check rows like `check_rows`, but raise ValueError, so that callers can add a file name."""
    from scipy.sparse import csr_matrix, issparse

    if not issparse(X):
        X = csr_matrix(np.atleast_2d(np.asarray(X, dtype=np.float64)))
    if len(X.shape) != 2:
        raise ValueError(
            f"the matrix has {len(X.shape)} dimensions; use a matrix with two dimensions (one row "
            "per document)"
        )
    if X.shape[1] > MAX_COLUMNS:
        raise ValueError(
            f"the matrix has {X.shape[1]:,} columns, but at most {MAX_COLUMNS:,} columns are "
            "supported"
        )
    _check_structure(X)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"the matrix has entries of type {X.dtype}; use real numbers")
    rows = X.tocsr()
    with np.errstate(over="ignore"):
        data = rows.data.astype(np.float32, copy=False)
    # Create a new matrix, because the existing one can wrongly claim that its indices are sorted.
    found = csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    wrong = np.flatnonzero(~np.isfinite(found.data))
    if len(wrong):
        row = int(np.searchsorted(found.indptr, wrong[0], side="right")) - 1
        column = found.indices[wrong[0]]
        raise ValueError(
            f"the value in row {row}, column {column} is not a finite float32 number; correct "
            "this value"
        )
    return found


def _check_structure(X: Any) -> None:
    """Raise ValueError if converting the matrix would access memory out of bounds."""
    from scipy import sparse

    if X.format == "coo":
        sparse.coo_matrix((X.data, (X.row, X.col)), shape=X.shape)
    elif X.format in ("csr", "csc", "bsr"):
        if {X.indices.dtype.kind, X.indptr.dtype.kind} - set("iu"):
            raise ValueError("the arrays indices and indptr of the matrix must contain integers")
        kind = getattr(sparse, f"{X.format}_matrix")
        kind((X.data, X.indices, X.indptr), shape=X.shape).check_format(full_check=True)
