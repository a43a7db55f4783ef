"""Latent semantic analysis (LSA) of sparse rows."""

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.numeric.arrays import F32, unit_vectors
from dcme_w2v.numeric.components import singular_vectors
from dcme_w2v.numeric.parallel import one_blas_thread

ROWS = 4096  # rows that are dense at a time


def directions(matrix: csr_matrix, count: int, seed: int) -> F32:
    """Return the right singular vectors of rows that are not centered, shape (features, r)."""
    _, _, right = singular_vectors(matrix, count, seed, centered=False)
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
