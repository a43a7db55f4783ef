"""Quantize weighted numbers to levels, which are the centers of optimal clusters (one is 0).

Suzuki and Nagata (AAAI 2014) cluster by ADMM (2-7). For fixed signs their problem (1) is a weighted
k-means with one cluster at 0, and a dynamic program finds the optimum.

If the numbers are sorted, every cluster is an interval. D_k(j), the least cost of the first j
numbers in k clusters, is the minimum over i of D_{k-1}(i) + cost(i, j). The minimizing i
ascends with j, so that its values for every second j bound the search for those between:
O(n log n) for each k.
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .arrays import F64, I8, I64

BINS = 1 << 13  # larger sets of numbers are grouped into this many bins before clustering
# Suzuki and Nagata (2014) specify neither the growth of the penalty nor a stopping rule.
GROWTH, ITERATIONS, CLOSE = 1.1, 200, 1e-10


@dataclass(frozen=True)
class Levels:
    """The levels to which numbers are quantized, and the level of each number.

    Attributes
    ----------
    values : ndarray of float64, shape (levels,)
        Values in descending order, v_1 >= v_2 >= ... >= 0; levels without a number are 0 and come
        last.
    numbers : ndarray of int8, shape (n,)
        The level of each number, from 1; 0 if it has no level.
    loss : float
        Half the sum of weight x (number - value)^2.
    """

    values: F64
    numbers: I8
    loss: float


def fit_levels(numbers: F64, weights: F64, count: int, bins: int = BINS) -> Levels:
    """Find the levels with the smallest loss: Suzuki and Nagata's optimum for fixed signs.

    Parameters
    ----------
    numbers, weights : ndarray of float64, shape (n,)
        Finite numbers in any order, and their nonnegative weights. Numbers below 0 get level 0.
    count : int
        Maximum number of levels.
    bins : int, optional
        If there are more numbers than this, the means of this many bins are clustered.
    """
    centers = _centers(numbers, weights, count, bins)
    return _assigned(numbers, weights, centers, count)


def in_equal_ratios(
    parts: Iterable[tuple[F64, F64]], highest: float, lowest: float, count: int
) -> Levels:
    """Quantize numbers to a geometric sequence of levels from the largest to the smallest number.

    If there are many levels, their loss is nearly the smallest possible one; see `fit_levels`.
    `parts` are numbers and weights.
    """
    step = math.log(highest / lowest) / (count - 1) or 1.0
    values, loss, found = np.geomspace(highest, lowest, count), 0.0, list[I8]()
    for numbers, weights in parts:
        places = np.rint(np.log(highest / numbers) / step).astype(np.int8)
        loss += 0.5 * float(np.sum(weights * (values[places] - numbers) ** 2))
        found.append(places + np.int8(1))
    return Levels(values, np.concatenate(found), loss)


def fit_by_admm(
    numbers: F64, weights: F64, count: int, growth: float = GROWTH
) -> tuple[Levels, int]:
    """Find levels by the ADMM algorithm of Suzuki and Nagata; also return the iteration count.

    Parameters
    ----------
    numbers, weights, count
        ``c = (|R| - lambda_1) / w`` and ``w = F + lambda_2`` in (10); see `fit_levels`.
    growth : float
        Factor by which rho, initially 1, grows in each iteration.
    """
    p, dual, rho = np.maximum(numbers, 0.0), np.zeros(len(numbers)), 1.0
    ones, iteration, centers = np.ones(len(numbers)), 0, np.zeros(0)
    for iteration in range(1, ITERATIONS + 1):  # noqa: B007
        u = np.maximum(0.0, (weights * numbers - dual + rho * p) / (weights + rho))  # (10)
        q = u + dual / rho
        centers = np.maximum(_centers(q, ones, count), 0.0)  # (7), (11)
        grid = np.append(0.0, centers)
        p = grid[_nearest(grid, q)]
        step = rho * (u - p)
        dual += step
        if np.mean((u - p) ** 2) < CLOSE and np.mean(step**2) < CLOSE:
            break
        rho *= growth
    values, place = np.unique(p, return_inverse=True)
    if not len(values) or values[0] > 0:
        values, place = np.append(0.0, values), place + 1
    found = np.zeros(count)
    found[: len(values) - 1] = values[:0:-1]
    levels = np.where(place > 0, len(values) - place, 0).astype(np.int8)
    loss = 0.5 * float(np.sum(weights * (p - numbers) ** 2))
    return Levels(found, levels, loss), iteration


def _centers(numbers: F64, weights: F64, count: int, bins: int = BINS) -> F64:
    """Return the centers of the optimal nonempty clusters, in ascending order.

    The density of the bins is proportional to the cube root of the data's density, which is optimal
    for many levels (Panter and Dite 1951).
    """
    # Numbers that are not positive, or have no weight, belong to the cluster at 0.
    used = np.flatnonzero((weights > 0) & (numbers > 0))
    if not len(used):
        return np.zeros(0)
    order = used[np.argsort(numbers[used], kind="stable")]
    numbers, weights = numbers[order], weights[order]
    if len(numbers) > bins:
        gaps = np.diff(numbers, prepend=numbers[0]) / numbers[-1]
        spread = np.cumsum(np.cbrt(weights * gaps**2))
        places = (spread * (bins / (spread[-1] or 1.0))).astype(np.int64)
        first = np.flatnonzero(np.diff(places, prepend=-1))
        moments, weights = np.add.reduceat([weights * numbers, weights], first, axis=1)
        numbers = moments / weights
    return _clustered(numbers, weights, count)


def _clustered(numbers: F64, weights: F64, count: int) -> F64:
    """Find the optimal clustering of ascending numbers, and return the centers of the clusters."""
    # Center the numbers to reduce rounding errors in their squares.
    shifted = numbers - np.average(numbers, weights=weights)
    sums = _sums(np.stack([weights, weights * shifted, weights * shifted**2]))
    # D_0(j) is the loss of the first j numbers if all of them are in the cluster at 0.
    least, ends = _sums(weights * numbers**2), list[I64]()
    for _ in range(count):
        least, begins = _with_one_more(least, sums)
        ends.append(begins)
    end, borders = len(numbers), [len(numbers)]
    for begins in reversed(ends):
        end = int(begins[end])
        borders.insert(0, end)
    parts = [slice(a, b) for a, b in itertools.pairwise(borders) if b > a]
    return np.unique([np.average(numbers[part], weights=weights[part]) for part in parts])


def _sums(numbers: F64) -> F64:
    """Return the prefix sums of numbers, from 0 to the total."""
    return np.insert(np.cumsum(numbers, axis=-1), 0, 0.0, axis=-1)


def _with_one_more(before: F64, sums: F64) -> tuple[F64, I64]:
    """Return each prefix's loss with one more cluster, and the index where this cluster starts."""
    n = len(before)
    now, begins = np.empty(n), np.zeros(n, dtype=np.int64)
    step = 1 << (n - 1).bit_length()
    # For a prefix of the numbers, the last cluster never starts later than for a longer prefix.
    solved = np.full(n + step, n - 1)
    now[0], solved[0] = before[0], 0
    while step := step // 2:
        j = np.arange(step, n, 2 * step)
        low, high = begins[j - step], np.minimum(solved[j + step], j)
        lengths = high - low + 1
        first = np.cumsum(lengths) - lengths
        i = np.arange(int(lengths.sum())) + np.repeat(low - first, lengths)
        weight, moment, square = np.repeat(sums[:, j], lengths, axis=1) - sums[:, i]
        # For an empty cluster, moment^2 / weight is 0 / 0; `fmax` replaces NaN with 0.
        with np.errstate(invalid="ignore"):
            cost = before[i] + np.fmax(square - moment * moment / weight, 0.0)
        now[j] = np.minimum.reduceat(cost, first)
        ties = np.flatnonzero(cost == np.repeat(now[j], lengths))
        begins[j] = i[ties[np.searchsorted(ties, first)]]
        solved[j] = begins[j]
    return now, begins


def _assigned(numbers: F64, weights: F64, centers: F64, count: int) -> Levels:
    values = np.zeros(count)
    values[: len(centers)] = centers[::-1]
    grid = np.append(0.0, centers)
    places = _nearest(grid, numbers)
    levels = np.append(0, np.arange(len(centers), 0, -1)).astype(np.int8)[places]
    return Levels(values, levels, 0.5 * float(np.sum(weights * (numbers - grid[places]) ** 2)))


def _nearest(grid: F64, numbers: F64) -> I64:
    """Return the index of the grid value nearest to each number; for ties, the higher index."""
    return np.searchsorted((grid[1:] + grid[:-1]) / 2, numbers, side="right")
