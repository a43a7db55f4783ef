"""k-means, L-BFGS and levels against their definitions and known minima."""

import numpy as np
import pytest
from data import cloud
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dcme_w2v.numeric.arrays import specificity
from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.numeric.lbfgs import minimize
from dcme_w2v.numeric.levels import fit_by_admm, fit_levels


@pytest.mark.bits
def test_kmeans_assigns_to_the_nearest_center():
    points, own = cloud()
    centers, nearest = kmeans(points, 4, 1)
    distances = ((points[:, None] - centers) ** 2).sum(axis=2)
    assert_array_equal(nearest, distances.argmin(axis=1))
    assert len({*zip(own.tolist(), nearest.tolist(), strict=True)}) == 4


def test_an_empty_cluster_moves_to_a_point():
    points = np.repeat(np.array([[3, 4], [5, 1]], dtype=np.float32), 5, axis=0)
    centers, _ = kmeans(points, 4, 1)
    assert {tuple(row) for row in centers} == {(3, 4), (5, 1)}


# ---- L-BFGS ----


SCALES = np.array([[1.0, 10.0, 100.0], [3.0, 0.5, 7.0]])


def quadratic(point):
    """Return a function with its minimum, 5, at 2, and its gradient."""
    assert point.shape == SCALES.shape
    return 5 + 0.5 * float((SCALES * (point - 2) ** 2).sum()), SCALES * (point - 2)


def test_a_value_of_single_precision_is_minimized_by_its_gradient():
    def rounded(point):
        value, gradient = quadratic(point)
        return float(np.float32(1e3 + value)) - 1e3, gradient

    plain = minimize(rounded, np.zeros((2, 3)), tolerance=1e-15)
    assert abs(plain - 2).max() > 1e-4
    found = minimize(rounded, np.zeros((2, 3)), tolerance=1e-15, precision=1e-4)
    assert_allclose(found, 2, atol=1e-6)


@pytest.mark.bits
def test_a_callback_can_stop_at_every_iteration():
    seen = []

    def watch(iteration, value, point):
        seen.append((iteration, value, point.copy()))
        return iteration == 2

    found = minimize(quadratic, np.zeros((2, 3)), watch=watch)
    assert [iteration for iteration, _, _ in seen] == [1, 2]
    assert seen[1][1] < seen[0][1] < quadratic(np.zeros((2, 3)))[0]
    assert_array_equal(found, seen[1][2])


def test_iterations_and_evaluations_are_limited():
    evaluated = []

    def counting(point):
        evaluated.append(point)
        return quadratic(point)

    one = minimize(counting, np.zeros((2, 3)), iterations=1)
    assert 5 < quadratic(one)[0] < quadratic(np.zeros((2, 3)))[0]
    assert len(evaluated) <= 11


# ---- levels ----


def cost_of(numbers, weights, value):
    return 0.5 * float(np.sum(weights * (numbers - value) ** 2))


# Differences of sums lose nine digits; a long double is a double on Windows and on Arm's macOS.
CLOSE = max(1e-9, 1e9 * float(np.finfo(np.longdouble).eps))


def by_intervals(numbers, weights, count):
    """The minimum loss by dynamic programming over all ends of intervals."""
    order = np.argsort(numbers)
    x, w = numbers[order], weights[order]
    n = len(x)
    sums = np.zeros((3, n + 1), dtype=np.longdouble)
    sums[:, 1:] = np.cumsum([w, w * x, w * x * x], axis=1, dtype=np.longdouble)
    weight, moment, square = sums[:, None, :] - sums[:, :, None]  # of the numbers i .. j - 1
    cost = 0.5 * (square - np.maximum(moment, 0) ** 2 / np.where(weight > 0, weight, 1))
    cost[np.tril_indices(n + 1, -1)] = np.inf
    least = 0.5 * sums[2].copy()
    for _ in range(count):
        least = (least[:, None] + cost).min(axis=0)
    return float(least[n])


CASES = [
    np.random.default_rng(0).lognormal(0, 1, 300),
    [0.1, 0.2, 0.9, 1.0, 1.1, 3.0],
    [-1.0, -0.2, 0.3, 0.4, 2.0, 2.1],
    [1.0, 1.0, 1.0, 2.0, 2.0, 0.0],
    [0.5],
    [-1.0, -2.0],
]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 127])
@pytest.mark.parametrize("numbers", CASES)
def test_levels_against_a_plain_dynamic_program(numbers, count):
    random = np.random.default_rng(len(numbers) + count)
    numbers = random.permutation(np.array(numbers))
    for weights in (np.ones(len(numbers)), random.lognormal(0, 2, len(numbers))):
        loss = fit_levels(numbers, weights, count).loss
        assert loss == pytest.approx(by_intervals(numbers, weights, count), rel=CLOSE, abs=1e-12)


def test_more_levels_than_values():
    found = fit_levels(np.array([2.0, 1.0, 2.0]), np.ones(3), 127)
    assert found.loss == 0 and found.values[:3].tolist() == [2, 1, 0]
    assert found.numbers.tolist() == [1, 2, 1]
    assert fit_levels(np.zeros(0), np.zeros(0), 3).values.tolist() == [0, 0, 0]


@pytest.mark.parametrize(("count", "close"), [(8, 1e-5), (127, 1e-2)])
def test_levels_of_bins_are_as_good_as_exact_ones(count, close):
    random = np.random.default_rng(4)
    near = np.append(random.lognormal(0, 2, 2200), random.normal(1e4, 1, 800))
    for numbers in (near, np.full(3000, 1e-200), 1e-200 * near):
        weights = random.uniform(0.1, 2, 3000)
        exact = fit_levels(numbers, weights, count)
        assert fit_levels(numbers, weights, count, bins=2400).loss <= exact.loss * (1 + close)


@given(
    st.lists(st.tuples(st.floats(-1, 5), st.floats(0.125, 50)), min_size=1, max_size=40),
    st.integers(1, 6),
    st.floats(1.01, 2),
)
def test_admm_never_finds_a_lower_loss(pairs, count, growth):
    numbers, weights = (np.array(part) for part in zip(*pairs, strict=True))
    exact = fit_levels(numbers, weights, count)
    found, iterations = fit_by_admm(numbers, weights, count, growth)
    assert found.loss >= exact.loss - 1e-9 * (1 + exact.loss)
    assert iterations >= 1 and (np.diff(found.values) <= 0).all()
    grid = np.append(0.0, found.values)
    assert found.loss == pytest.approx(cost_of(numbers, weights, grid[found.numbers]), abs=1e-9)


def test_words_that_name_a_group_are_neither_everywhere_nor_the_rarest():
    documents = 1000
    weights = specificity(np.log(documents / np.array([1000, 400, 30, 1])))
    assert weights[0] < 1e-6 and weights.argmax() == 2 and 0 < weights[3] < weights[2] / 2
    assert (specificity(np.zeros(3)) > 0).all() and len(specificity(np.zeros(0))) == 0
