"""Singular vectors of sparse rows, and latent semantic analysis (LSA)."""

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.numeric.arrays import F32, F64, unit_vectors
from dcme_w2v.numeric.parallel import one_blas_thread

OVERSAMPLING, POWER = 10, 2  # of the randomized SVD (Halko, Martinsson and Tropp 2011)
MIN_SQUARE = 1e-10  # squared singular values below this share of the first count as 0
ROWS = 4096  # rows that are dense at a time


def svd_of_rows(
    matrix: csr_matrix, rank: int, seed: int, *, centered: bool
) -> tuple[F64, F64, F64]:
    """Return the first singular vectors of rows, or of rows less their mean.

    The rows stay sparse, since the mean is subtracted from products with them. The result is exact
    if `rank` is at least the smaller side of the matrix.

    Parameters
    ----------
    matrix : csr_matrix, shape (n, features)
    rank : int
        Maximum number of singular vectors.
    seed : int
    centered : bool

    Returns
    -------
    left : ndarray, shape (n, r)
    squares : ndarray, shape (r,)
        Squared singular values, descending, without zeros except for the first.
    right : ndarray, shape (features, r)
    """
    rows = matrix.astype(np.float64)
    columns = rows.T.tocsr()
    mean = np.asarray(rows.mean(axis=0)).ravel() * centered
    width = min(rank + OVERSAMPLING, *rows.shape)
    test = np.random.default_rng(seed).standard_normal((rows.shape[1], width))
    with one_blas_thread():
        for _ in range(POWER):
            left, _ = np.linalg.qr(rows @ test - mean @ test)
            test, _ = np.linalg.qr(columns @ left - np.outer(mean, left.sum(axis=0)))
        left, values, inner = np.linalg.svd(rows @ test - mean @ test, full_matrices=False)
        right = test @ inner.T
    squares: F64 = np.square(values)
    kept = max(1, int((squares[:rank] > MIN_SQUARE * max(squares[0], 1e-300)).sum()))
    return np.ascontiguousarray(left[:, :kept]), squares[:kept], right[:, :kept]


def directions(matrix: csr_matrix, count: int, seed: int) -> F32:
    """Return the right singular vectors of rows that are not centered, shape (features, r)."""
    _, _, right = svd_of_rows(matrix, count, seed, centered=False)
    return right.astype(np.float32)


def reduced(matrix: csr_matrix, right: F32) -> csr_matrix:
    """Return rows times singular vectors, shape (n, r), of unit length; rows of zeros stay."""
    count, width = matrix.shape[0], right.shape[1]
    data = np.empty((count, width), dtype=np.float32)
    with one_blas_thread():
        for begin in range(0, count, ROWS):
            part = np.asarray(matrix[begin : begin + ROWS] @ right, dtype=np.float64)
            data[begin : begin + ROWS] = unit_vectors(part)
    columns = np.tile(np.arange(width, dtype=np.int32), count)
    starts = np.arange(count + 1, dtype=np.int64) * width
    return csr_matrix((data.ravel(), columns, starts), shape=(count, width))
