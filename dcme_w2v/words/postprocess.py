"""Postprocessing of word vectors: removal of common components.

Word vectors have a mean far from 0 and a few directions with most of the variance, which represent
word frequency rather than meaning (Mu and Viswanath 2018, All-but-the-Top).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import UsageError
from dcme_w2v.options import PostprocessOptions
from dcme_w2v.words.neighbors import inverse_lengths

# All-but-the-Top removes dim / 100 directions, with the meaning in them; here their variance is
# reduced to that of the next direction.
DAMPED_DIRECTIONS = 5


def postprocessed(matrix: NDArray[np.float32], method: str) -> NDArray[np.float32]:
    """Return vectors without their common components.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, d)
    method : {"centre", "damp"}
        ``centre`` subtracts the mean vector; ``damp`` does that, and scales the five directions of
        the greatest variance down to the variance of the sixth.

    Returns
    -------
    ndarray of float32, shape (n, d)

    Raises
    ------
    UsageError
        There are too few words or dimensions to find directions in.

    References
    ----------
    Mu and Viswanath 2018, All-but-the-Top: Simple and Effective Postprocessing for Word
    Representations, ICLR.
    """
    mean = matrix.mean(axis=0, dtype=np.float64)
    centred: NDArray[np.float32] = matrix - mean.astype(np.float32)
    return _damped(centred) if method == "damp" else centred


def _damped(centred: NDArray[np.float32]) -> NDArray[np.float32]:
    n, d = centred.shape
    if min(n - 1, d) <= DAMPED_DIRECTIONS:
        raise UsageError(
            f"--postprocess=damp: needs more than {DAMPED_DIRECTIONS} dimensions and "
            f"{DAMPED_DIRECTIONS + 1} words, and there are {d} and {n}; give centre"
        )
    found, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    variances = np.maximum(found, np.finfo(np.float32).tiny)  # vectors in a subspace have zeros
    top = directions[:, -DAMPED_DIRECTIONS:]
    kept = np.sqrt(variances[-DAMPED_DIRECTIONS - 1] / variances[-DAMPED_DIRECTIONS:])
    change = (top * (kept - 1)) @ top.T
    damped: NDArray[np.float32] = centred + centred @ change.astype(np.float32)
    return damped


def changed_by(
    options: PostprocessOptions, matrix: NDArray[np.float32]
) -> tuple[NDArray[np.float32], list[str]]:
    """Return vectors changed by the options of `convert`, and messages of what was lost."""
    notes = []
    if options.postprocess != "none":
        matrix = postprocessed(matrix, options.postprocess)
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
        Centred.
    kept : float
    """
    if dim > matrix.shape[1]:
        raise UsageError(f"--reduce={dim}: the vectors have {matrix.shape[1]} dimensions")
    centred = postprocessed(matrix, "centre")
    variances, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    kept = float(variances[-dim:].sum() / max(variances.sum(), np.finfo(np.float64).tiny))
    return centred @ directions[:, ::-1][:, :dim].astype(np.float32), kept
