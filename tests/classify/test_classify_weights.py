"""Weights of rows and of classes: their effect on the optimum and on each objective's steps."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse import random as sparse_random
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight

from dcme_w2v import MaxentClassifier
from dcme_w2v._core import models as core
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.errors import DcmeWarning

OBJECTIVES = [
    {"objective": "gd"},
    {"objective": "dcme"},
    {"objective": "dcme", "dcme_update": "paper"},
    {"objective": "nce"},
    {"objective": "ns"},
]
EXACT = {"solver": "lbfgs", "l2": 1e-2, "tolerance": 1e-14, "epochs": 1000, "threads": 1}


def problem(rows=60, features=8, classes=3, seed=0):
    """Rows whose labels are half random."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, features))
    y = np.where(random.random(rows) < 0.5, X[:, :classes].argmax(axis=1), rows % classes)
    return csr_matrix(X), y, random.integers(0, 4, rows).astype(float)


@pytest.mark.parametrize("classes", [3, 150])
def test_gradient_of_many_documents_is_that_of_numpy_whatever_the_threads(classes):
    """Of more documents than are taken at a time, with empty ones and features that none has."""
    random = np.random.default_rng(2)
    X = csr_matrix(sparse_random(35_000, 40, 0.05, "csr", np.float32, random_state=2))
    X.data[X.indices == 7] = 0
    X.eliminate_zeros()
    y = random.integers(0, classes, 35_000).astype(np.int32)
    model = Weights(41, classes, bias=0.5)  # a feature more than the documents have
    model.set(random.normal(size=(42, classes)).astype(np.float32))
    documents = core.SparseRows(X)
    instances = core.Instances(np.arange(35_000), y, 35_000, classes)
    columns = core.Columns(documents, instances)
    gradients = np.full((3, 42, classes), np.nan)
    losses = {
        model.linear.gradient(documents, instances, columns, gradient, threads)
        for gradient, threads in zip(gradients, (1, 2, 5), strict=True)
    }
    rows = np.hstack([X.toarray(), np.zeros((35_000, 1)), np.full((35_000, 1), 0.5)])
    errors = log_softmax(rows @ model.get().astype(np.float64))
    loss = -errors[np.arange(35_000), y].sum()
    errors = np.exp(errors)
    errors[np.arange(35_000), y] -= 1
    assert [*losses] == [pytest.approx(loss, rel=1e-6)]
    assert gradients[0] == pytest.approx(rows.T @ errors, abs=1e-3)
    assert (gradients == gradients[0]).all()


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
def test_weighted_fit_equals_scikit_learns_logistic_regression(class_weight):
    X, y, weights = problem()
    weights += 0.25
    of_rows = weights
    if class_weight == "balanced":
        sums = np.bincount(y, weights)
        of_rows = weights * (weights.sum() / 3 / sums)[y]
    elif class_weight:
        of_rows = weights * compute_sample_weight(class_weight | {1: 1.0, 2: 1.0}, y)
    ours = MaxentClassifier(**EXACT, class_weight=class_weight).fit(X, y, weights)
    theirs = LogisticRegression(C=1 / (1e-2 * of_rows.sum()), max_iter=2000, tol=1e-9)
    theirs.fit(X, y, of_rows)
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-5)


@pytest.mark.parametrize("solver", ["sgd", "lbfgs"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_weight_of_zero_removes_a_row(objective, solver):
    X, y, weights = problem()
    kept = weights > 0
    model = MaxentClassifier(**objective, solver=solver, threads=1)
    with_zeros = model.fit(X, y, weights).coef_
    assert (model.fit(X[kept], y[kept], weights[kept]).coef_ == with_zeros).all()


@pytest.mark.parametrize("l2", [0.0, 1e-2])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_weight_multiplies_the_learning_rate(objective, l2):
    X, y, _ = problem()
    given = {**objective, "threads": 1, "l2": l2}
    weighted = MaxentClassifier(**given, lr=0.05).fit(X, y, np.full(60, 3.0))
    faster = MaxentClassifier(**given, lr=0.15).fit(X, y)
    assert weighted.coef_ == pytest.approx(faster.coef_, rel=1e-4, abs=1e-5)
    assert weighted.epochs_[0]["loss"] == pytest.approx(3 * faster.epochs_[0]["loss"], rel=1e-4)


@pytest.mark.parametrize("given, least", [({"loss": "hinge"}, 0.9), ({"objective": "nce"}, 0.65)])
def test_rows_of_very_different_lengths_are_learned(given, least):
    random = np.random.default_rng(1)
    y = random.integers(0, 4, 1500)
    X = np.eye(4, 12)[y] + random.normal(0, 0.3, (1500, 12))
    X *= random.lognormal(0, 1.5, (1500, 1))  # the longest made all steps small, or diverge
    model = MaxentClassifier(**given, threads=1).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > least


def test_partial_fit_uses_weights():
    X, y, weights = problem()
    given = {"objective": "gd", "batch": 500, "threads": 1}
    weighted = MaxentClassifier(**given, lr=0.01, class_weight={1: 2.0})
    weighted.partial_fit(X, y, classes=[0, 1, 2], sample_weight=weights)
    times = (weights * np.where(y == 1, 2, 1)).astype(int)
    rows = np.repeat(np.arange(60), times)
    repeated = MaxentClassifier(**given, lr=0.01).partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-6)
    with pytest.raises(ValueError, match="give partial_fit a dict"):
        MaxentClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1.0], r"shape \(1,\): must be \(60,\)"),
        ([-1.0] * 60, "not negative"),
        ([np.nan] * 60, "finite"),
        ([0.0] * 60, "zero"),
        (["x"] * 60, "numbers"),
    ],
)
def test_invalid_sample_weights(weights, message):
    X, y, _ = problem()
    with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
        MaxentClassifier().fit(X, y, weights)


@pytest.mark.parametrize("bias", [0.1, 0.0])
def test_columns_of_unlike_scales_have_the_same_optimum(bias):
    """Columns of dense rows with means of 100 and deviations from .01 to 100."""
    random = np.random.default_rng(4)
    labels = random.integers(0, 3, 300)
    plain = random.normal(size=(300, 6)) + np.eye(6)[labels]
    scales = np.geomspace(1e-2, 1e2, 6)
    shift = 100 if bias else 0
    plain[:, 5] = 0.1  # constant
    own = {"solver": "lbfgs", "l2": 0.0, "tolerance": 1e-9, "threads": 1, "bias": bias}
    both = plain, plain * scales + shift
    models = [MaxentClassifier(**own).fit(rows, labels) for rows in both]
    one, other = (model.predict_log_proba(rows) for model, rows in zip(models, both, strict=True))
    assert other == pytest.approx(one, abs=0.05)
    assert all(model.n_iter_ < 60 for model in models)


def test_a_stop_before_the_optimum_is_warned_of():
    rows, labels = np.random.default_rng(1).normal(size=(80, 9)), np.arange(80) % 3
    with pytest.warns(DcmeWarning, match="stopped after 3 iterations, before the optimum"):
        MaxentClassifier(solver="lbfgs", epochs=3).fit(rows, labels)


def test_a_given_solver_is_used_for_few_numbers_as_well():
    rows, labels = np.random.default_rng(1).normal(size=(80, 9)), np.arange(80) % 3
    model = MaxentClassifier(solver="sgd", threads=1).fit(rows, labels)
    assert model.n_iter_ in (5, 20)
    assert MaxentClassifier().fit(rows, labels).n_iter_ not in (5, 20)
