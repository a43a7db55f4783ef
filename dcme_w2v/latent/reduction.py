"""Latent semantic analysis (LSA) of sparse rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dcme_w2v.numeric.arrays import F32, unit_vectors
from dcme_w2v.numeric.sparse_rows import as_matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ROWS = 4096  # number of document rows that are projected at a time


def reduced(matrix: csr_matrix, right: F32) -> csr_matrix:
    """Project rows onto singular vectors, and scale all nonzero projections to unit length."""
    from scipy.sparse import csr_matrix

    matrix = as_matrix(matrix)
    data = np.empty((matrix.shape[0], right.shape[1]), dtype=np.float32)
    for begin in range(0, len(data), ROWS):
        part = np.asarray(matrix[begin : begin + ROWS] @ right, dtype=np.float64)
        data[begin : begin + ROWS] = unit_vectors(part)
    return csr_matrix(data)
