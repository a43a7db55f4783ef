"""The mathematics of latent-class models: cost, EM, the quadratic and its minima, projections."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import softmax

from dcme_w2v.latent.cost import OWN, Cost, Observations
from dcme_w2v.latent.fit import expectation_maximization
from dcme_w2v.latent.starts import Quadratic, best_descent, project_rows
from dcme_w2v.numeric.components import singular_vectors


def observations(count=60, features=8, classes=3, seed=0):
    """Documents near their label's mean."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % max(1, classes)
    means = random.normal(size=(max(1, classes), features))
    rows = means[labels] + random.normal(size=(count, features))
    known = [(int(label),) for label in labels]
    matrix = csr_matrix(rows.astype(np.float32))
    return Observations.of(matrix, known if classes else None, classes)


def made_cost(data, latent=4, l2=0.02, smoothing=0.3, seed=1, threads=1):
    """A cost at random weights and a random alpha."""
    cost = Cost(data, latent, l2, smoothing, threads)
    random = np.random.default_rng(seed)
    cost.weights.table[:, :latent] = random.normal(size=cost.weights.table[:, :latent].shape) / 4
    cost.posterior[:, :latent] = random.dirichlet(np.ones(latent), data.count)
    cost.fit_alpha()
    return cost


def plain(cost):
    """The cost (2) and the posterior by definition, with loops in double precision."""
    data, k = cost.data, cost.latent
    table = cost.weights.table[:, :k].astype(float)
    p = softmax(data.rows.toarray().astype(float) @ table[:-1] + table[-1], axis=1)
    alpha, loss, xi, own = np.exp(cost.log_alpha[:, :k].astype(float)), 0.0, [], 0
    for n, label in enumerate(data.labels):
        row = label
        if label == OWN:
            row, own = data.classes + own, own + 1
        q = sum(p[n, j] * alpha[row, j] for j in range(k))
        loss -= np.log(q)
        xi.append([p[n, j] * alpha[row, j] / q for j in range(k)])
    penalty = cost.l2 / 2 * np.square(table[:-1]).sum()
    prior = cost.smoothing / data.count * np.log(alpha[: data.classes]).sum()
    return loss / data.count + penalty - prior, np.array(xi)


@pytest.mark.parametrize("classes", [3, 0])
def test_cost_and_posterior_equal_a_plain_loop(classes):
    cost = made_cost(observations(classes=classes), smoothing=0.3 if classes else 0.0)
    value, xi = plain(cost)
    assert np.exp(cost.log_alpha[:, :4]).sum(axis=0) == pytest.approx(np.ones(4))
    assert cost.fit_posterior() == pytest.approx(value, rel=1e-5)
    assert cost.posterior[:, :4] == pytest.approx(xi, abs=1e-5)


@pytest.mark.parametrize("classes", [3, 0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_em_never_raises_the_cost(classes, seed):
    data = observations(count=90, classes=classes, seed=seed)
    cost = Cost(data, 4, 0.01, 0.1 if classes else 0.0, 1)
    start = np.random.default_rng(seed).dirichlet(np.ones(4), data.count)
    found = expectation_maximization(cost, start, 40, 0.0)
    assert len(found.costs) > 5
    assert (np.diff(found.costs) <= 1e-6).all()
    assert found.costs[-1] < found.costs[0] - 1e-3


def bound(data, xi, ridge):
    """F at the best weights and alpha for xi, in double precision."""
    x, n, k = data.rows.toarray().astype(float), data.count, xi.shape[1]
    counts = np.zeros((data.classes, k))
    np.add.at(counts, data.labels, xi)
    alpha = counts / counts.sum(axis=0)
    fixed = -(xi * (np.log(alpha[data.labels]) - np.log(xi))).sum() / n

    def function(flat):
        w, b = flat[:-k].reshape(-1, k), flat[-k:]
        p = softmax(x @ w + b, axis=1)
        g = (p - xi) / n
        value = -(xi * np.log(p)).sum() / n + ridge / (2 * k) * np.square(w).sum()
        return value, np.concatenate([(x.T @ g + ridge / k * w).ravel(), g.sum(axis=0)])

    options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-12}
    start = np.zeros((x.shape[1] + 1) * k)
    return fixed + minimize(function, start, jac=True, method="L-BFGS-B", options=options).fun


def test_quadratic_is_the_bound_to_second_order():
    """(3): F(1/K + eps D) - F(1/K) = eps^2 J(D) + O(eps^3). The printed sign, or A without its
    1/N, are far off."""
    data = observations(count=30, features=5, classes=3, seed=4)
    k, ridge = 4, 0.05
    left, values, _ = singular_vectors(data.rows, 5, 0, centered=True)
    quadratic = Quadratic(left, values**2, ridge, data.labels, 3)
    direction = np.random.default_rng(6).normal(size=(30, k)) / k
    direction -= direction.mean(axis=1, keepdims=True)
    flat = np.full((30, k), 1 / k)
    expected, zero = quadratic.value(direction)[0], bound(data, flat, ridge)
    errors = []
    for eps in (0.1, 0.05, 0.025):
        found = (bound(data, flat + eps * direction, ridge) - zero) / eps**2
        errors.append(abs(found / expected - 1))
    assert errors[-1] < 0.01
    assert errors[0] > errors[1] > errors[2]


def test_singular_vectors_of_wide_rows():
    random = np.random.default_rng(0)
    low = random.normal(size=(80, 6)) @ random.normal(size=(6, 200)) * 3
    rows = csr_matrix((low + random.normal(size=low.shape) * 0.1).astype(np.float32))
    dense = rows.toarray().astype(float)
    for centered in (True, False):
        left, values, right = singular_vectors(rows, 6, 1, centered=centered)
        u, s, vt = np.linalg.svd(dense - dense.mean(axis=0) * centered, full_matrices=False)
        assert values == pytest.approx(s[:6])
        assert np.abs(np.sum(left * u[:, :6], axis=0)) == pytest.approx(np.ones(6))
        assert np.abs(np.sum(right.T * vt[:6], axis=1)) == pytest.approx(np.ones(6))


def test_descents_end_in_a_minimum_on_the_simplices():
    data = observations(count=40, features=8, classes=2, seed=2)
    quadratic = Quadratic.of(data, 8, 0)
    xi = best_descent(quadratic, 3, np.random.default_rng(0))
    assert (xi >= 0).all() and xi.sum(axis=1) == pytest.approx(np.ones(40))
    value, gradient = quadratic.value(xi)
    assert value < 0
    step = project_rows(xi - 40 / 3 * gradient) - xi  # 0 at a minimum; .38 at a random point
    assert np.abs(step).max() < 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_projections_on_simplices(seed):
    """Against another solver, for each row."""
    points = np.random.default_rng(seed).normal(size=(5, 4)) + 0.3
    for point, found in zip(points, project_rows(points), strict=True):
        nearest = minimize(
            lambda v, point=point: np.square(v - point).sum(), np.full(4, 0.25), method="SLSQP",
            bounds=[(0, None)] * 4, constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
            options={"maxiter": 500, "ftol": 1e-14},
        ).x  # fmt: skip
        assert found == pytest.approx(nearest, abs=1e-5)
