"""Minimize a smooth function of a few bounded parameters without importing scipy."""

from collections.abc import Callable

import numpy as np

from .arrays import F64

# Minimum decrease of the objective per step, as a fraction of the expected decrease (Armijo 1966).
SUFFICIENT = 1e-4
SHORTEST = 1e-12  # minimum step size, at which the line search stops
ITERATIONS = 200


def minimize(
    function: Callable[[F64], tuple[float, F64]],
    start: F64,
    lowest: F64,
    highest: F64,
    precision: float = 1e-9,
) -> F64:
    """Minimize a function by projected BFGS steps with backtracking.

    A parameter at a bound is fixed while the gradient points outward (Bertsekas 1982).

    Parameters
    ----------
    function : callable
        Takes a point; returns the value and the gradient.
    start, lowest, highest : ndarray of float64, shape (parameters,)
        The starting point and the bounds.
    precision : float
        Stop when a step reduces the value by less than this share of it.
    """
    point = np.clip(start, lowest, highest)
    value, gradient = function(point)
    curvature = np.eye(len(point)) * max(float(np.linalg.norm(gradient)), 1e-9)
    for _ in range(ITERATIONS):
        is_out = ((point <= lowest) & (gradient > 0)) | ((point >= highest) & (gradient < 0))
        free = np.flatnonzero(~is_out)
        direction = np.zeros_like(point)
        direction[free] = np.linalg.solve(curvature[np.ix_(free, free)], -gradient[free])
        length = 1.0
        while length > SHORTEST:
            there = np.clip(point + length * direction, lowest, highest)
            found, slope = function(there)
            if found <= value + SUFFICIENT * float(gradient @ (there - point)):
                break
            length /= 2
        else:
            return point
        step, change, gained = there - point, slope - gradient, value - found
        point, value, gradient = there, found, slope
        if gained <= precision * max(abs(value), 1e-9):
            return point
        bend, along = float(step @ change), curvature @ step
        if bend > 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            curvature += np.outer(change, change) / bend - np.outer(along, along) / (step @ along)
    return point
