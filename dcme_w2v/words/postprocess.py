"""Postprocessing of word vectors: centering, reduction by PCA, unit length.

Word vectors have a mean far from 0, which represents word frequency rather than meaning (Mu and
Viswanath 2018, All-but-the-Top).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import UsageError
from dcme_w2v.words.neighbors import inverse_lengths
from dcme_w2v.words.options import PostprocessOptions


def centered(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors of shape (n, d) minus their mean vector.

    References
    ----------
    Mu and Viswanath 2018, All-but-the-Top: Simple and Effective Postprocessing for Word
    Representations, ICLR.
    """
    mean = matrix.mean(axis=0, dtype=np.float64)
    return np.asarray(matrix - mean.astype(np.float32))


def changed_by(
    options: PostprocessOptions, matrix: NDArray[np.float32]
) -> tuple[NDArray[np.float32], list[str]]:
    """Return vectors changed by the options of `convert`, and messages of what was lost."""
    notes = []
    if options.postprocess == "center":
        matrix = centered(matrix)
    if options.reduce is not None:
        matrix, kept = reduced(matrix, options.reduce)
        notes.append(f"{options.reduce} dimensions keep {100 * kept:.1f} % of the variance")
    if options.normalize:
        matrix = matrix * inverse_lengths(matrix)[:, None]
    return matrix, notes


def reduced(matrix: NDArray[np.float32], dim: int) -> tuple[NDArray[np.float32], float]:
    """Return vectors in their first principal components, and the share of variance they keep.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, d)
    dim : int
        At most d.

    Returns
    -------
    reduced : ndarray of float32, shape (n, dim)
        Centered.
    kept : float
    """
    if dim > matrix.shape[1]:
        raise UsageError(f"--reduce={dim}: the vectors have {matrix.shape[1]} dimensions")
    rows = centered(matrix)
    variances, directions = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    kept = float(variances[-dim:].sum() / max(variances.sum(), np.finfo(np.float64).tiny))
    return rows @ directions[:, ::-1][:, :dim].astype(np.float32), kept
