"""Operations on the rows of sparse matrices: unit length, columns left out or added."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix


def unit_rows(matrix: csr_matrix) -> csr_matrix:
    """Return rows scaled to unit length; rows of zeros are unchanged."""
    squares = np.add.reduceat(
        np.append(np.square(matrix.data, dtype=np.float64), 0.0), matrix.indptr[:-1]
    )
    sizes = np.diff(matrix.indptr)
    lengths = np.where((sizes > 0) & (squares > 0), np.sqrt(np.abs(squares)), 1)
    data = (matrix.data / np.repeat(lengths, sizes)).astype(np.float32)
    return csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def truncate_columns(matrix: csr_matrix, columns: int) -> csr_matrix:
    """Return rows without the columns from `columns` on."""
    return matrix if matrix.shape[1] <= columns else csr_matrix(matrix[:, :columns])


def fit_columns(matrix: csr_matrix, columns: int) -> csr_matrix:
    """Return rows of exactly so many columns: further ones are left out, missing ones are zero."""
    matrix = truncate_columns(matrix, columns)
    shape = (matrix.shape[0], columns)
    return csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=shape)
