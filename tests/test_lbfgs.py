"""The L-BFGS loop: minima of known functions, shapes, callback, limits."""

import numpy as np

from dcme_w2v.numeric.lbfgs import minimize

SCALES = np.array([[1.0, 10.0, 100.0], [3.0, 0.5, 7.0]])


def quadratic(point):
    """Return a function with its minimum, 5, at 2, and its gradient."""
    assert point.shape == SCALES.shape
    return 5 + 0.5 * float((SCALES * (point - 2) ** 2).sum()), SCALES * (point - 2)


def test_the_minimum_of_a_quadratic_function():
    found = minimize(quadratic, np.zeros((2, 3)), tolerance=1e-15)
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found, 2, atol=1e-6)


def test_a_value_of_single_precision_is_minimized_by_its_gradient():
    def rounded(point):
        value, gradient = quadratic(point)
        return float(np.float32(1e3 + value)) - 1e3, gradient

    plain = minimize(rounded, np.zeros((2, 3)), tolerance=1e-15)
    assert abs(plain - 2).max() > 1e-4
    found = minimize(rounded, np.zeros((2, 3)), tolerance=1e-15, precision=1e-4)
    np.testing.assert_allclose(found, 2, atol=1e-6)


def test_a_callback_can_stop_at_every_iteration():
    seen = []

    def watch(iteration, value, point):
        seen.append((iteration, value, point.copy()))
        return iteration == 2

    found = minimize(quadratic, np.zeros((2, 3)), watch=watch)
    assert [iteration for iteration, _, _ in seen] == [1, 2]
    assert seen[1][1] < seen[0][1] < quadratic(np.zeros((2, 3)))[0]
    np.testing.assert_array_equal(found, seen[1][2])


def test_iterations_and_evaluations_are_limited():
    evaluated = []

    def counting(point):
        evaluated.append(point)
        return quadratic(point)

    one = minimize(counting, np.zeros((2, 3)), iterations=1)
    assert 5 < quadratic(one)[0] < quadratic(np.zeros((2, 3)))[0]
    assert len(evaluated) <= 11
