"""Local minima of the quadratic (3) over N simplices, one by one and in the low-rank form (9).

(9) is  min sum_r f(V_r) / sum_r a_r^2  over V_r >= 0 whose rows all have the sum a_r; f is the
quadratic. With V_r = a_r U_r it is the mean of f(U_r) with the weights a_r^2: R descents compete.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.latent.quadratic import Quadratic

COLUMNS = 3  # R; also the number of single descents
MIN_COLUMN = 1e-6  # columns below this share of the largest one are dropped
ITERATIONS, TOLERANCE = 500, 1e-8
SUFFICIENT = 1e-4  # share of the linear decrease that a step has to reach
_MIN_STEP = 1e-12
_BISECTIONS = 60

Matrix = NDArray[np.float64]


def random_point(count: int, latent: int, random: np.random.Generator) -> Matrix:
    """Return rows of uniform random numbers, scaled to sum 1."""
    drawn = random.random((count, latent))
    found: Matrix = drawn / drawn.sum(axis=1, keepdims=True)
    return found


def best_descent(quadratic: Quadratic, latent: int, random: np.random.Generator) -> Matrix:
    """Return xi of shape (n, latent): the best of some local minima of (3) from random points."""
    count, found = len(quadratic.left), []
    for _ in range(COLUMNS):
        start = random_point(count, latent, random)
        found.append(descend(quadratic.value, project_rows, start, count / latent))
    return min(found, key=lambda one: one[1])[0]


def relaxed(quadratic: Quadratic, latent: int, random: np.random.Generator) -> Matrix:
    """Return xi of shape (n, latent): the sum of the columns of a local minimum of (9)."""
    found, _, _ = low_rank(quadratic, latent, COLUMNS, random)
    total: Matrix = found.sum(axis=0)
    total /= total.sum(axis=1, keepdims=True)
    return total


def low_rank(
    quadratic: Quadratic, latent: int, columns: int, random: np.random.Generator
) -> tuple[Matrix, NDArray[np.float64], float]:
    """Solve (9) from random columns.

    Returns
    -------
    columns : ndarray, shape (R, n, latent)
        V_r, without the columns that have vanished.
    sizes : ndarray, shape (R,)
        a_r.
    value : float
    """
    count = len(quadratic.left)
    start = np.stack([random_point(count, latent, random) for _ in range(columns)], axis=1)

    def project(v: Matrix) -> Matrix:
        return np.stack([project_equal(v[:, r])[0] for r in range(columns)], axis=1)

    v, value = descend(functools.partial(ratio, quadratic), project, start, count / latent)
    sizes = v.sum(axis=2).mean(axis=0)
    kept = np.flatnonzero(sizes > MIN_COLUMN * sizes.max())
    return np.moveaxis(v[:, kept], 1, 0), sizes[kept], value


def ratio(quadratic: Quadratic, v: Matrix) -> tuple[float, Matrix]:
    """Return (9) and its gradient at columns of shape (n, R, latent); a_r^2 is the rows' mean."""
    count, _, latent = v.shape
    product = quadratic.product(v.reshape(count, -1)).reshape(v.shape)
    sums = v.sum(axis=2, keepdims=True)
    square = float(np.square(sums).sum()) / count
    value = latent / 2 * float(np.vdot(v, product)) / square
    gradient: Matrix = (latent * product - (2 * value / count) * sums) / square
    return value, gradient


def project_rows(points: Matrix) -> Matrix:
    """Project each row on the simplex of vectors >= 0 with the sum 1."""
    falling = -np.sort(-points, axis=1)
    multipliers = _multipliers(falling, np.cumsum(falling, axis=1), 1.0)
    found: Matrix = np.maximum(points - multipliers[:, None], 0)
    return found


def project_equal(points: Matrix) -> tuple[Matrix, float]:
    """Project on D, the matrices >= 0 whose rows all have the same sum.

    For rows of sum a the squared distance is convex in a, and half of its derivative is minus the
    sum of the multipliers: bisection finds a.

    Returns
    -------
    projected : ndarray, shape of `points`
    size : float
        The sum of each row, at least 0.
    """
    falling = -np.sort(-points, axis=1)
    sums = np.cumsum(falling, axis=1)

    def slope(size: float) -> float:
        return -float(_multipliers(falling, sums, size).sum())

    high = max(1.0, float(np.abs(points).sum(axis=1).max()))
    if slope(1e-12 * high) >= 0:  # the nearest point is 0
        return np.zeros_like(points), 0.0
    while slope(high) < 0:
        high *= 2
    low = 0.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    found: Matrix = np.maximum(points - _multipliers(falling, sums, high)[:, None], 0)
    return found, high


def _multipliers(falling: Matrix, sums: Matrix, size: float) -> Matrix:
    """Return the number that is subtracted from each row before negative entries become 0."""
    counts = np.arange(1, falling.shape[1] + 1)
    excess = sums - size
    positive = np.maximum((falling * counts > excess).sum(axis=1), 1)
    found: Matrix = np.take_along_axis(excess, positive[:, None] - 1, axis=1)[:, 0] / positive
    return found


def descend(
    function: Callable[[Matrix], tuple[float, Matrix]],
    project: Callable[[Matrix], Matrix],
    start: Matrix,
    step: float,
) -> tuple[Matrix, float]:
    """Minimize by projected gradient, with Armijo's rule along the projection arc.

    A step t is accepted if f(P(V - t G)) <= f(V) + 1e-4 <G, P(V - t G) - V>, and halved until it
    is; each search begins at twice the last step.

    Parameters
    ----------
    function : callable
        Returns value and gradient.
    project : callable
        Returns the nearest feasible point.
    start : ndarray
        Feasible.
    step : float
        The first step is searched from twice this.

    Returns
    -------
    point, value
    """
    point, (value, gradient) = start, function(start)
    for _ in range(ITERATIONS):
        step *= 2
        while True:
            tried = project(point - step * gradient)
            next_value, next_gradient = function(tried)
            decrease = float(np.vdot(gradient, tried - point))
            if next_value <= value + SUFFICIENT * decrease:
                break
            if step < _MIN_STEP:
                return point, value
            step /= 2
        change = value - next_value
        point, value, gradient = tried, next_value, next_gradient
        if change <= TOLERANCE * max(abs(value), 1e-12):
            break
    return point, value
