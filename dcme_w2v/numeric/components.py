"""Principal components and singular vectors of dense or sparse rows."""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import LinearOperator, svds

from .arrays import F64, Array
from .parallel import one_blas_thread

# Squared singular values below this fraction of the largest squared singular value count as 0.
_SMALLEST = 1e-10


def singular_vectors(
    rows: csr_matrix | Array, count: int, seed: int, *, centered: bool
) -> tuple[F64, F64, F64]:
    """Return the first singular vectors of rows; if `centered`, subtract the rows' mean first.

    Sparse rows stay sparse, because the mean is subtracted from products with the rows, not from
    the rows.

    Parameters
    ----------
    rows : csr_matrix or ndarray, shape (n, d)
    count : int
        Maximum number of singular vectors.
    seed : int
    centered : bool

    Returns
    -------
    left : ndarray, shape (n, r)
        C-contiguous, as is `right`.
    values : ndarray, shape (r,)
        Singular values, descending; zeros are dropped, except for the first value.
    right : ndarray, shape (d, r)
    """
    matrix = rows.astype(np.float64)
    mean = np.asarray(matrix.mean(axis=0)).ravel() * centered
    with one_blas_thread():
        if count < min(matrix.shape) and _varies(matrix, mean):
            columns, ones = matrix.T, np.ones(matrix.shape[0])
            operator = LinearOperator(
                matrix.shape, dtype=np.float64,
                matvec=lambda x: matrix @ x - mean @ x,
                rmatvec=lambda y: columns @ y - mean * (ones @ y),
                matmat=lambda x: matrix @ x - mean @ x,
                rmatmat=lambda y: columns @ y - np.outer(mean, ones @ y),
            )  # fmt: skip
            left, values, right = svds(operator, count, random_state=seed)
        else:
            dense = matrix.toarray() if isinstance(matrix, csr_matrix) else matrix
            left, values, right = np.linalg.svd(dense - mean, full_matrices=False)
    order = np.argsort(-values, kind="stable")[:count]
    squares = np.square(values[order])
    order = order[: max(1, int((squares > _SMALLEST * max(squares[0], 1e-300)).sum()))]
    # Return arrays in C order, because arrays read from files also have C order. The memory order
    # affects the rounding of products.
    return np.ascontiguousarray(left[:, order]), values[order], np.ascontiguousarray(right[order].T)


def _varies(matrix: csr_matrix | Array, mean: F64) -> bool:
    """Return whether rows differ from their mean by more than rounding errors."""
    data = matrix.data if isinstance(matrix, csr_matrix) else matrix.ravel()
    squares = float(data @ data)
    return squares - matrix.shape[0] * float(mean @ mean) > 1e-12 * squares
