"""Combine tables that were trained on p shards from the same initial values.

Sums are in double precision and in the order of the shards: the result does not depend on which
worker learned which shard. `curvature` rotates the sum of the changes in the precision of the
tables. Matrices are multiplied grain by grain (`GRAINS` ranges of rows, which no block cuts): the
result does not depend on the number of blocks either.

Legend: U is a row at the start of the round, W_k the row that shard k has learned,
Delta_k = W_k - U, and c_k the count of the row in shard k; E and lambda are the eigenvectors and
eigenvalues of a table's matrix.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.numeric.arrays import F32, F64, Array, mean_by_counts
from dcme_w2v.numeric.parallel import one_blas_thread

# A table is divided into this many grains (ranges of rows); a block consists of whole grains.
GRAINS = 64


def blocks(rows: int, count: int) -> list[slice]:
    """Divide a table's rows into at most `count` blocks, each made of consecutive whole grains."""
    count = min(count, GRAINS)
    edges = [rows * (GRAINS * i // count) // GRAINS for i in range(count + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(edges) if a < b]


def grains(rows: int, block: slice) -> list[slice]:
    """Return each grain's row range, relative to the block's first row."""
    cuts = [slice(one.start, one.stop) for one in blocks(rows, GRAINS)]
    found = [one for one in cuts if block.start <= one.start and one.stop <= block.stop]
    return [slice(one.start - block.start, one.stop - block.start) for one in found]


def in_turn(
    start: F32,
    learned: Sequence[F32],
    counts: Sequence[NDArray[np.integer | np.floating]],
    reach: float,
) -> F32:
    """Combine rows approximately as if training had visited one shard after another.

    A document takes a row the share 1 - e^(-x) of the way to its optimum, x the reach. With a mean
    change m weighted by the counts c_k, U + m (1 - e^(-x c)) / (sum_k c_k (1 - e^(-x c_k)) / c),
    c their sum: the sum of the changes where little was learned, and `mean_by_counts` where each
    shard has gone all the way.

    Parameters
    ----------
    start : ndarray of float32, shape (n, d)
    learned : sequence of ndarray of float32, shape (n, d)
    counts : sequence of ndarray, shape (n,)
    reach : float
        The reach of one document, at least 0.
    """
    weights = np.asarray(counts, dtype=np.float64)
    total = weights.sum(axis=0)
    alone = (weights * -np.expm1(-reach * weights)).sum(axis=0)
    together = total * -np.expm1(-reach * total)
    factor = np.divide(together, alone, out=np.ones(len(total)), where=alone > 0)
    mean = mean_by_counts(start, learned, counts)
    return np.asarray(start + factor[:, None] * (mean - start), dtype=np.float32)


@dataclass(frozen=True)
class Directions:
    """Orthogonal directions in a table's row space, each with its learning speed.

    Attributes
    ----------
    values : ndarray of float64, shape (d,)
        lambda, ascending, at least 0.
    vectors : ndarray of float64, shape (d, d)
        E, one direction in each column.
    """

    values: F64
    vectors: F64


def moments(rows: int, block: slice, learned: Sequence[F32], weights: F64) -> F64:
    """Return a block's weighted sums of outer products; `directions` adds them up over blocks.

    Parameters
    ----------
    rows : int
        Number of rows of the whole table.
    block : slice
        One of `blocks`.
    learned : sequence of ndarray of float32, shape (n, d)
        The rows of the block after the training of each shard; their mean is used.
    weights : ndarray of float64, shape (n,)

    Returns
    -------
    ndarray of float64, shape (grains, d + 1, d + 1)
        Sums of w x x^T of the rows x with a 1 appended.
    """
    parts, size = grains(rows, block), learned[0].shape[1] + 1
    found = np.empty((len(parts), size, size))
    with one_blas_thread():
        for product, grain in zip(found, parts, strict=True):
            extended = np.ones((grain.stop - grain.start, size))
            after = extended[:, :-1]
            after[:] = learned[0][grain]
            for one in learned[1:]:
                after += one[grain]
            after /= len(learned)
            extended *= np.sqrt(weights[grain, None])
            # To multiply a matrix by its own transpose, BLAS computes only half of the result.
            np.matmul(extended.T, extended, out=product)
    return found


def directions(parts: Sequence[F64], context: float) -> Directions:
    """Return the eigenvectors and eigenvalues of a context mean's second-moment matrix.

    The matrix is `mu mu^T + (S - mu mu^T) / context` for the mean of `context` rows that have mean
    mu and second moment S.

    Parameters
    ----------
    parts : sequence of ndarray
        The result of `moments` for each block of the other table, in order.
    context : float
        At least 1.
    """
    total = np.zeros(parts[0].shape[1:])
    for part in parts:
        for one in part:
            total += one
    weight = total[-1, -1] or 1.0
    second, first = total[:-1, :-1] / weight, total[:-1, -1] / weight
    common = np.outer(first, first)
    with one_blas_thread():
        values, vectors = np.linalg.eigh(common + (second - common) / context)
    return Directions(np.maximum(values, 0), vectors)


def share(x: Array, shards: int) -> Array:
    """Return the factor for the sum of p shards' changes, `(1 - e^(-p x)) / (p (1 - e^(-x)))`.

    One shard goes the share 1 - e^(-x) of the way to the optimum; p shards, one after the other,
    would go 1 - e^(-p x). The factor is 1 (the sum) for small x, and 1 / p (the mean) for large x.
    """
    left: Array = np.exp(-x)  # the factor for p shards is the mean of left^0 to left^(p - 1)
    found = np.ones_like(left)
    for _ in range(shards - 1):
        found *= left
        found += 1
    found /= shards
    return found


def curvature(
    rows: int, block: slice, start: F32, learned: Sequence[F32], steps: F64, found: Directions
) -> F32:
    """Combine a block's rows by scaling the shards' summed changes along each eigenvector.

    The result is `U + E g(x) E^T (Delta_1 + ... + Delta_p)` for `x = steps * lambda`. U are the
    rows before the round, Delta_k is their change in shard k, E and lambda are the eigenvectors
    and eigenvalues, and g is `share`.

    Parameters
    ----------
    rows : int
        Number of rows of the whole table.
    block : slice
        One of `blocks`.
    start : ndarray of float32, shape (n, d)
        The block's rows before the round.
    learned : sequence of ndarray of float32, shape (n, d)
        The rows of the block after the training of each shard; a single shard is the result.
    steps : ndarray of float64, shape (n,)
        x of each row in a direction of eigenvalue 1; see `Plan.steps`.
    found : Directions
    """
    shards = len(learned)
    if shards == 1:
        return learned[0]
    mixed = np.empty(start.shape, dtype=np.float32)
    values, vectors = found.values.astype(np.float32), found.vectors.astype(np.float32)
    back, far = np.ascontiguousarray(vectors.T), steps.astype(np.float32)[:, None]
    with one_blas_thread():
        # Process one grain at a time, because a grain fits into the CPU cache.
        for grain in grains(rows, block):
            before = start[grain]
            change = np.subtract(learned[0][grain], before, dtype=np.float64)
            for one in learned[1:]:
                change += np.subtract(one[grain], before, dtype=np.float64)
            turned = change.astype(np.float32) @ vectors
            turned *= share(far[grain] * values, shards)
            np.add(before, turned @ back, out=mixed[grain])
    return mixed
