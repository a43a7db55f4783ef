"""Projections on simplices, and projected gradient descent with Armijo's rule.

Called by `dcme_w2v.latent.relaxed` and `dcme_w2v.latent.starts`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

ITERATIONS, TOLERANCE = 500, 1e-8
SUFFICIENT = 1e-4  # share of the linear decrease that a step has to reach
_LEAST_STEP = 1e-12
_BISECTIONS = 60

Matrix = NDArray[np.float64]


def project_rows(points: Matrix, size: float = 1.0) -> Matrix:
    """Project each row on the simplex of vectors >= 0 whose sum is `size`.

    Parameters
    ----------
    points : ndarray, shape (n, k)
    size : float
        Above 0.
    """
    multipliers = _multipliers(*_sorted(points), size)
    found: Matrix = np.maximum(points - multipliers[:, None], 0)
    return found


def project_equal(points: Matrix) -> tuple[Matrix, float]:
    """Project on D, the matrices >= 0 whose rows all have the same sum.

    For rows of sum a the squared distance is convex in a, and half its derivative is minus the sum
    of the multipliers: a is found by bisection.

    Returns
    -------
    projected : ndarray, shape of `points`
    size : float
        The sum of each row, at least 0.
    """
    falling, sums = _sorted(points)

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


def _sorted(points: Matrix) -> tuple[Matrix, Matrix]:
    falling = -np.sort(-points, axis=1)
    return falling, np.cumsum(falling, axis=1)


def _multipliers(falling: Matrix, sums: Matrix, size: float) -> Matrix:
    """Return what is subtracted from each row before it is cut at 0."""
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
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> tuple[Matrix, float]:
    """Minimise by projected gradient, with Armijo's rule along the projection arc.

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
    iterations : int
        At most.
    tolerance : float
        Stop at a smaller relative change of the value.

    Returns
    -------
    point, value
    """
    point, (value, gradient) = start, function(start)
    for _ in range(iterations):
        step *= 2
        while True:
            tried = project(point - step * gradient)
            next_value, next_gradient = function(tried)
            decrease = float(np.vdot(gradient, tried - point))
            if next_value <= value + SUFFICIENT * decrease:
                break
            if step < _LEAST_STEP:
                return point, value
            step /= 2
        change = value - next_value
        point, value, gradient = tried, next_value, next_gradient
        if change <= tolerance * max(abs(value), 1e-12):
            break
    return point, value
