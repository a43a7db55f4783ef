"""Minimization between bounds, compared with scipy's."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from dcme_w2v.classify.calibration import minimize

CENTER = np.array([0.5, -2.0, 3.0])


def quadratic(at):
    spread = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 100.0]])
    return float((at - CENTER) @ spread @ (at - CENTER)) / 2 + 1, spread @ (at - CENTER)


def curved(at):
    """Rosenbrock's function of each two neighbors."""
    left, right = at[:-1], at[1:]
    gradient = np.zeros_like(at)
    gradient[:-1] = -400 * left * (right - left**2) - 2 * (1 - left)
    gradient[1:] += 200 * (right - left**2)
    return float((100 * (right - left**2) ** 2 + (1 - left) ** 2).sum()), gradient


@pytest.mark.parametrize("function", [quadratic, curved])
@pytest.mark.parametrize("lowest, highest", [(-5, 5), (-1, 0.8), (1, 2), (-5, -3)])
def test_the_minimum_is_found(function, lowest, highest):
    bounds = np.full((2, 3), [[lowest], [highest]], dtype=float)
    found = minimize(function, np.zeros(3), *bounds, precision=1e-12)
    best = scipy_minimize(
        function, bounds.mean(axis=0), jac=True, bounds=bounds.T, tol=1e-14, method="L-BFGS-B"
    )
    assert np.allclose(found, best.x, atol=1e-3)
    assert (bounds[0] <= found).all() and (found <= bounds[1]).all()
