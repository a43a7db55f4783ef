"""Weights quantized to a few levels, for fused features and compressed models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dcme_w2v.numeric.arrays import F32, F64
from dcme_w2v.numeric.sparse_rows import CompressedRows, as_matrix, ones

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BIAS = 1.0  # value of the bias feature in models whose weights are quantized to levels


@dataclass(frozen=True)
class Evidence:
    """Feature-class pairs with their quantized levels.

    Attributes
    ----------
    levels : csr_matrix or CompressedRows of int8, shape (features, classes)
        The signed level of each pair; level 1 has the highest value.
    values : ndarray of float64, shape (levels,)
        v_1 >= v_2 >= ...; 0 for a level without pairs.
    loss : float
        The value of (1), without the terms that do not depend on the levels.
    """

    levels: csr_matrix | CompressedRows
    values: F64
    loss: float

    def columns(self) -> csr_matrix:
        """Return the matrix C that converts rows X to fused features, h = X @ C.

        float32, shape (features, classes x levels): column c x levels + k - 1 is level k of class
        c.
        """
        from scipy.sparse import csr_matrix

        found, count = self.levels, len(self.values)
        level = np.abs(found.data.astype(np.int64))
        data = np.sign(found.data) * self.values[level - 1]
        indices = found.indices.astype(np.int64) * count + level - 1
        shape = (found.shape[0], found.shape[1] * count)
        return csr_matrix((data.astype(np.float32), indices, found.indptr), shape=shape)

    def transform(self, matrix: csr_matrix, binary: bool) -> csr_matrix:
        """Return the fused features h as a sparse matrix of shape (rows, classes x levels)."""
        from scipy.sparse import csr_matrix

        rows = as_matrix(ones(matrix) if binary else matrix)
        found = csr_matrix(rows @ self.columns())
        found.sort_indices()
        return found

    def parts(self, matrix: csr_matrix) -> F64:
        """Return the fused features h as a dense array of shape (rows, classes, levels)."""
        from scipy.sparse import csr_matrix

        shape = (matrix.shape[0], self.levels.shape[1], len(self.values))
        product = csr_matrix(matrix @ self.columns())
        return np.asarray(product.toarray(), dtype=np.float64).reshape(shape)

    def weights(self, level_weights: F64) -> F32:
        """Return a linear model's weights from each level's weight, shape (features, classes)."""
        from scipy.sparse import csr_matrix

        found = self.levels
        grid = np.append(0.0, level_weights * self.values)
        data = np.sign(found.data) * grid[np.abs(found.data.astype(np.int64))]
        dense = csr_matrix((data.astype(np.float32), found.indices, found.indptr), found.shape)
        return dense.toarray()
