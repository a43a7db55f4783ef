"""Levels: the optimal clusters of weighted numbers on a line, with one cluster fixed at 0.

Suzuki and Nagata (AAAI 2014) cluster by ADMM (2-7). For fixed signs their problem (1) is a weighted
k-means with one cluster at 0, and a dynamic program finds the optimum.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from dcme_w2v._core import fused as core

from .arrays import F64, I8

BINS = 1 << 17  # above so many numbers, they are clustered by bins
FINER = 32  # times as many bins, where bins are too coarse: all numbers take gigabytes
COARSE = 1e-6  # share of the loss within bins above which bins are too coarse
# The paper leaves the penalty's growth and the end open.
GROWTH, ITERATIONS, CLOSE = 1.1, 200, 1e-10


@dataclass(frozen=True)
class Levels:
    """Levels of numbers.

    Attributes
    ----------
    values : ndarray of float64, shape (levels,)
        v_1 >= v_2 ... >= 0; those without a number are 0, the last ones.
    numbers : ndarray of int8, shape (n,)
        The level of each number, from 1; 0 is none.
    loss : float
        Half the sum of weight x (number - value)^2.
    """

    values: F64
    numbers: I8
    loss: float


def fit_levels(numbers: F64, weights: F64, count: int, bins: int = BINS) -> Levels:
    """Return the levels with the least loss, the optimum of (1) for fixed signs.

    Parameters
    ----------
    numbers, weights : ndarray of float64, shape (n,)
        Finite, in any order, weights not negative. Numbers below 0 have level 0.
    count : int
        How many levels at most.
    bins : int
        Above so many numbers, means of bins of equal width are clustered instead.
    """
    centers = _centers(numbers, weights, count, bins)
    return _assigned(numbers, weights, centers, count)


def fit_by_admm(
    numbers: F64, weights: F64, count: int, growth: float = GROWTH
) -> tuple[Levels, int]:
    """Return the levels that the paper's algorithm (Fig. 2) finds, and its iterations.

    Parameters
    ----------
    numbers, weights, count
        ``c = (|R| - lambda_1) / w`` and ``w = F + lambda_2`` in (10); see `fit_levels`.
    growth : float
        What rho, 1 at first, is multiplied by in each iteration.
    """
    p, dual, rho = np.maximum(numbers, 0.0), np.zeros(len(numbers)), 1.0
    ones, iteration, centers = np.ones(len(numbers)), 0, np.zeros(0)
    for iteration in range(1, ITERATIONS + 1):  # noqa: B007
        u = np.maximum(0.0, (weights * numbers - dual + rho * p) / (weights + rho))  # (10)
        q = u + dual / rho
        centers = np.maximum(_centers(q, ones, count), 0.0)  # (7), (11)
        grid = np.append(0.0, centers)
        named = np.arange(len(grid), dtype=np.int8)
        places, _ = core.assign_levels(q, q, _borders(centers), named, grid)
        p = grid[places]
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
    """Return the centers of the clusters that are not empty, ascending."""
    if not (weights.min(initial=1.0) > 0 and numbers.min(initial=1.0) > 0):
        used = (weights > 0) & (numbers > 0)  # the nearest center of a negative number is 0
        numbers, weights = numbers[used], weights[used]
    if not len(numbers):
        return np.zeros(0)
    for finer in (bins, FINER * bins):
        if len(numbers) > finer:
            found = _binned(numbers, weights, count, finer)
            if found is not None:
                return found
    order = np.argsort(numbers, kind="stable")
    return _clustered(numbers[order], weights[order], count)[0]


def _binned(numbers: F64, weights: F64, count: int, bins: int) -> F64 | None:
    """Return the centers of bins; None where too much of the loss is within bins."""
    low, high = float(numbers.min()), float(numbers.max())
    if high == low:
        return np.array([low])
    sums, moments, squares = core.bin_numbers(numbers, weights, low, bins / (high - low), bins)
    filled = sums > 0
    means = moments[filled] / sums[filled]
    centers, cost = _clustered(means, sums[filled], count)
    within = float(np.maximum(squares[filled] - moments[filled] * means, 0.0).sum())
    return centers if within <= COARSE * cost else None


def _clustered(numbers: F64, weights: F64, count: int) -> tuple[F64, float]:
    ends, cost = core.cluster_numbers(numbers, weights, count)
    parts = [slice(a, b) for a, b in itertools.pairwise(ends.tolist()) if b > a]
    centers = [float(np.average(numbers[part], weights=weights[part])) for part in parts]
    return np.unique(centers), cost


def _assigned(numbers: F64, weights: F64, centers: F64, count: int) -> Levels:
    values = np.zeros(count)
    values[: len(centers)] = centers[::-1]
    grid = np.append(0.0, centers)
    named = np.append(0, np.arange(len(centers), 0, -1)).astype(np.int8)
    levels, loss = core.assign_levels(numbers, weights, _borders(centers), named, grid)
    return Levels(values, levels, 0.5 * loss)


def _borders(centers: F64) -> F64:
    """Return where the next center becomes the nearest, 0 being the first."""
    grid = np.append(0.0, centers)
    return (grid[1:] + grid[:-1]) / 2
