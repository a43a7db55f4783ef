"""Vectors in 8 bits per number with a scale per row, and how much of them is lost."""

import numpy as np

from dcme_w2v.numeric.arrays import F32, I8
from dcme_w2v.numeric.nearest import nearest_rows
from dcme_w2v.numeric.parallel import blocks_of_rows

from .neighbors import inverse_lengths

METHODS = ("int8",)
_LARGEST = 127
_SAMPLE, _K = 300, 10  # words whose neighbors are compared, and neighbors of each


def as_int8(matrix: F32) -> tuple[I8, F32]:
    """Return codes and scales of rows: row i is about ``codes[i] * scales[i]``.

    The number of a row that is largest in magnitude has the code 127 or -127, so that codes alone
    have the cosines. A row of zeros has the scale 0.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, d)

    Returns
    -------
    codes : ndarray of int8, shape (n, d)
    scales : ndarray of float32, shape (n,)
    """
    codes = np.empty(matrix.shape, dtype=np.int8)
    scales = np.empty(len(matrix), dtype=np.float32)
    for rows in blocks_of_rows(len(matrix)):
        block = matrix[rows].astype(np.float64)  # in which 127 / denormal is finite
        largest = np.abs(block).max(axis=1)
        factor = _LARGEST / np.where(largest > 0, largest, 1)
        codes[rows] = np.rint(block * factor[:, None])
        scales[rows] = largest / _LARGEST
    return codes, scales


def mean_cosine(matrix: F32, codes: I8) -> float:
    """Return the mean cosine between rows before and after; rows of zeros are left out."""
    total, count = 0.0, 0
    for rows in blocks_of_rows(len(matrix)):
        before, after = matrix[rows].astype(np.float64), codes[rows].astype(np.float64)
        lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        found = lengths > 0
        total += float((np.einsum("ij,ij->i", before, after)[found] / lengths[found]).sum())
        count += int(found.sum())
    return total / count if count else 1.0


def agreement(matrix: F32, codes: I8, seed: int = 1) -> float:
    """Return the share of nearest neighbors that int8 vectors have in common with float32.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, d)
    codes : ndarray of int8, shape (n, d)
    seed : int
        Seed of the sample of rows.

    Returns
    -------
    float
        Share of the 10 nearest neighbors, over 300 rows or all if there are fewer.
    """
    k = min(_K, len(matrix) - 1)
    if k < 1:
        return 1.0
    rows = np.random.default_rng(seed).permutation(len(matrix))[:_SAMPLE]
    own = [[row] for row in rows.tolist()]
    lengths = np.concatenate(
        [inverse_lengths(codes[part].astype(np.float32)) for part in blocks_of_rows(len(codes))]
    )
    queries = matrix[rows] * inverse_lengths(matrix[rows])[:, None]
    short = codes[rows].astype(np.float32) * lengths[rows][:, None]
    full = nearest_rows(matrix, inverse_lengths(matrix), queries, own, k)
    less = nearest_rows(codes, lengths, short, own, k)
    common = [len({*a.tolist()} & {*b.tolist()}) for (a, _), (b, _) in zip(full, less, strict=True)]
    return sum(common) / (k * len(rows))
