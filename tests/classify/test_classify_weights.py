"""Weights of rows and of classes: their effect on the optimum and on each objective's steps."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import unit_rows
from scipy.sparse import csr_matrix
from scipy.sparse import random as sparse_random
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.class_weight import compute_sample_weight

from dcme_w2v import MaxentClassifier, TextClassifier
from dcme_w2v._core import models as core
from dcme_w2v.classify import fit, predict
from dcme_w2v.classify.calibration import NEVER, likeliest_factors
from dcme_w2v.classify.choose import decide
from dcme_w2v.classify.labeled import Labeled
from dcme_w2v.classify.metrics import Measures, log_softmax
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.solver import solve
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.errors import DcmeWarning, DivergedError

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


def test_the_penalty_is_relative_to_the_sum_of_the_weights():
    X, y, _ = problem()
    given = X.astype(np.float32), np.arange(60), y.astype(np.int32), 3
    options = resolved(ClassifyOptions(**EXACT), 3)
    one, two = (
        solve(*given, options, sample_weight=np.full(60, weight, np.float32)).get()
        for weight in (1, 2)
    )
    assert one == pytest.approx(two, abs=1e-4)


FITS = {
    "lbfgs": {"solver": "lbfgs", "l2": 1e-2, "tolerance": 1e-12, "epochs": 500},
    "penalties by folds": {},
    "softmax": {"solver": "sgd", "loss": "softmax"},
    "hinge": {"loss": "hinge"},
    **{
        f"{one['objective']} {one.get('dcme_update', '')}": one | {"lr": 1.0}
        for one in OBJECTIVES[1:]
    },
}


def spread(rows=900, seed=0, noise=1.5):
    """Rows of five classes around their centers."""
    random = np.random.default_rng(seed)
    y = random.choice(5, rows, p=[0.4, 0.3, 0.2, 0.07, 0.03])
    return csr_matrix(unit_rows(random.normal(0, noise, (rows, 20)) + 3 * np.eye(5, 20)[y])), y


def figures(model, X, y):
    log_p = model.predict_log_proba(X)
    return np.array([model.score(X, y), log_p[np.arange(len(y)), y].mean()])


@pytest.mark.parametrize("name", FITS)
def test_a_row_of_weight_w_is_w_rows(name):
    """Copies are exact for the optimum; of descent, whose order differs, within .05.

    A weight of 0, a common factor and equal weights change no bit.
    """
    (X, y), (other, wanted) = spread(), spread(4000, 1)
    own = np.random.default_rng(2).integers(0, 3, len(y)).astype(float)
    kept, rows = np.flatnonzero(own), np.repeat(np.arange(len(y)), own.astype(int))
    model = MaxentClassifier(**FITS[name], threads=1)

    def fitted(*given):
        model.fit(*given)
        return [model.coef_.tolist(), model.predict_proba(X).tolist()]

    found, weighted = fitted(X, y, own), figures(model, other, wanted)
    for factor in (1000.0, 1e-12):
        assert fitted(X[kept], y[kept], factor * own[kept]) == found
    assert fitted(X, y, np.full(len(y), 7.5)) == fitted(X, y) != found
    copies = figures(model.fit(X[rows], y[rows]), other, wanted)
    assert weighted == pytest.approx(copies, abs={"lbfgs": 1e-4}.get(name, 0.05))


@pytest.mark.parametrize("loss", [None, "softmax", "hinge"])
def test_great_weights_do_not_diverge(loss):
    """Of classes with two rows of 800, and of one row that counts as a thousand."""
    random = np.random.default_rng(0)
    y = np.append(np.repeat(np.arange(20), 2), random.integers(20, 22, 760))
    X = csr_matrix(unit_rows(random.normal(size=(800, 200)) + 6 * np.eye(22, 200)[y]))
    plain = MaxentClassifier(loss=loss, solver="sgd", threads=1).fit(X, y).score(X, y)
    balanced = MaxentClassifier(loss=loss, solver="sgd", threads=1, class_weight="balanced")
    assert balanced.fit(X, y).score(X, y) > 0.95 * plain
    assert balanced.epochs_[-1]["loss"] < balanced.epochs_[0]["loss"]
    weights = np.append(1e6, np.ones(799))
    one = MaxentClassifier(loss=loss, solver="sgd", threads=1).fit(X, y, weights)
    assert one.predict(X[:1]) == y[:1]


@pytest.mark.parametrize("given, epochs, last", [
    ({"loss": "hinge", "lr": 2.5}, 3, False), ({"objective": "gd", "lr": 300.0}, 3, False),
    ({"objective": "dcme", "lr": 300.0}, 3, False), ({"objective": "gd", "lr": 40.0}, 1, True),
    ({"objective": "gd", "lr": 40.0}, 3, True), ({"objective": "nce", "lr": 1e3}, 3, True),
    ({"objective": "ns", "lr": 400.0}, 3, True),
])  # fmt: skip
def test_worse_than_without_training_is_divergence(given, epochs, last):
    """In the course of an epoch, or at the end, where one epoch is the only one.

    Objectives that draw samples are checked at the end.
    """
    X, y = spread()
    said = "the loss is .* an untrained model" if last else "epoch 1 .* before training"
    with pytest.raises(DivergedError, match=said):
        MaxentClassifier(**given, solver="sgd", epochs=epochs, threads=1).fit(X, y)
    weights = np.where(y == y[0], 1e6, 1.0)  # of one class, which is learned
    if last and given["objective"] == "gd":
        MaxentClassifier(**given, solver="sgd", epochs=epochs, threads=1).fit(X, y, weights)


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
    weights = np.minimum(weights, 1)
    given = {"objective": "gd", "batch": 500, "threads": 1}
    weighted = MaxentClassifier(**given, lr=0.01, class_weight={1: 2.0})
    weighted.partial_fit(X, y, classes=[0, 1, 2], sample_weight=weights)
    times = (weights * np.where(y == 1, 2, 1)).astype(int)
    rows = np.repeat(np.arange(60), times)
    repeated = MaxentClassifier(**given, lr=0.01).partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-6)
    with pytest.raises(ValueError, match="for partial_fit, pass a dict"):
        MaxentClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])


@pytest.mark.parametrize(
    "weights, message",
    [
        ([1.0], r"shape \(1,\), but must have the shape \(60,\)"),
        ([-1.0] * 60, "nonnegative"),
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
    with pytest.warns(DcmeWarning, match="stopped after 3 iterations without"):
        MaxentClassifier(solver="lbfgs", epochs=3).fit(rows, labels)


def test_a_given_solver_is_used_for_few_numbers_as_well():
    rows, labels = np.random.default_rng(1).normal(size=(80, 9)), np.arange(80) % 3
    model = MaxentClassifier(solver="sgd", threads=1).fit(rows, labels)
    assert model.n_iter_ in (5, 20)
    assert MaxentClassifier().fit(rows, labels).n_iter_ not in (5, 20)


def texts(count=400, seed=0):
    """Lines of a label or two, and text."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, count)
    words = np.char.add("w", (labels[:, None] * 9 + random.integers(0, 30, (count, 6))).astype(str))
    return labels, [" ".join(one) for one in words]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("objective", ["auto", "tree"])
def test_texts_have_weights_of_classes(several, objective):
    """All times a thousand change nothing, and a heavy class is found more often."""
    (labels, rows), (_, others) = texts(), texts(seed=1)
    names = [[f"c{one}"] + ["even"] * int(one % 2 == 0) if several else f"c{one}" for one in labels]

    def shares(weight):
        own = dict.fromkeys(["c0", "c1", "c2", "c3", *(["even"] * several)], 1.0) | weight
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DcmeWarning)
            model = TextClassifier(class_weight=own, objective=objective, threads=1)
            return model.fit(rows, names).predict_proba(others)

    plain = shares({})
    assert shares(dict.fromkeys(["c0", "c1", "c2", "c3", *(["even"] * several)], 1e3)) == (
        pytest.approx(plain, abs=1e-6)
    )
    assert shares({"c3": 30.0})[:, 3].mean() > plain[:, 3].mean() + 0.005


OPTIMA = {
    "lbfgs": {"solver": "lbfgs", "l2": 1e-3, "tolerance": 1e-12},
    "dual": {"solver": "dual", "loss": "hinge", "l2": 1e-3, "lead_ngrams": 1, "subwords": "none"},
}
OF_TEXTS = {
    **{name: options | {"epochs": 500} for name, options in OPTIMA.items()},
    "defaults": {},
    "softmax": {"loss": "softmax", "solver": "sgd"},
    "hashing": {"hashing": 512},
    **{name: {"objective": name} for name in ("dcme", "nce", "ns", "tree")},
}


@pytest.mark.parametrize("name, several", [
    *((name, False) for name in OF_TEXTS),
    *((name, True) for name in ("lbfgs", "defaults", "hashing", "tree")),
])  # fmt: skip
def test_a_text_of_weight_w_is_w_texts(name, several):
    """A weight of 0 and a common factor change no bit, and copies hardly the optimum.

    Otherwise, copies change the accuracy by at most .05: an epoch has more steps, and copies of a
    text are in different folds.
    """
    (labels, rows), (wanted, others) = texts(600), texts(1500, seed=1)
    names = [[f"c{one}"] + ["even"] * int(one % 2 == 0) if several else f"c{one}" for one in labels]
    weights = np.random.default_rng(2).integers(0, 4, len(labels)).astype(float)
    kept = np.flatnonzero(weights)

    def scores(at, weights=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DcmeWarning)
            model = TextClassifier(**OF_TEXTS[name], threads=1)
            model.fit([rows[i] for i in at], [names[i] for i in at], weights)
        return model.decision_function(others), model.predict_proba(others[:100])

    found, p = scores(range(len(labels)), weights)
    again = scores(kept, 1000 * weights[kept])
    assert np.array_equal(again[0], found) and np.array_equal(again[1], p)
    copies, _ = scores(np.repeat(np.arange(len(labels)), weights.astype(int)))
    if name in OPTIMA:
        assert copies == pytest.approx(found, abs=1e-3)
    else:
        assert not np.array_equal(scores(kept)[0], found)
    right = [(one[:, :4].argmax(axis=1) == wanted).mean() for one in (copies, found)]
    assert right[0] == pytest.approx(right[1], abs=0.05)


def test_held_out_figures_are_weighted(monkeypatch):
    """As of copies; also of a model. Of three documents, the first counts as six of the others."""
    log_p, weights = np.log([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]), np.array([3.0, 0.5, 0.5])
    for several, labels in ((True, [[0], [0, 1], [1]]), (False, [[0], [1], [1]])):
        both = []
        for rows, own in (([0] * 6 + [1, 2], None), ([0, 1, 2], weights)):
            measures = Measures(2, several, 0.5, gains=np.array([1.0, 3.0, 9.0]))
            measures.add(log_p[rows], [labels[i] for i in rows], own)
            both.append(measures.result())
        copies, found = both
        assert {**found, "documents": 8} == pytest.approx({**copies, "documents": 8})
        assert found["documents"] == 3
    model = SimpleNamespace(classes=["a", "b"], multilabel=False, threshold=0.5, record={})
    monkeypatch.setattr(predict, "scored", lambda *_: [(slice(None), log_p)])
    of_model = predict.measured(model, Labeled(csr_matrix(log_p), labels, weights.astype("f4")))
    assert of_model == {k: v for k, v in found.items() if k in of_model} and len(of_model) > 1


def test_the_likeliest_factors_have_weights_and_know_classes_that_a_fold_did_not_have():
    random = np.random.default_rng(6)
    labels, weights = random.integers(0, 3, 600), random.integers(1, 4, 600)
    parts = [random.normal(size=(600, 3)) + much * np.eye(3)[labels] for much in (2, 1)]
    weights += 3 * (parts[0].argmax(axis=1) != labels)
    for scores in parts:
        scores[:80, 2] = NEVER
    factors, by_weight = likeliest_factors(parts, labels[:, None].tolist(), weights)
    copies = np.repeat(np.arange(600), weights)
    by_copies = likeliest_factors([one[copies] for one in parts], labels[copies, None].tolist())
    assert factors == pytest.approx(by_copies[0], rel=0.1)
    assert by_weight == pytest.approx(by_copies[1], rel=0.2)
    assert -5 < by_weight < 0

    def mean(factors):
        known = ~((labels == 2) & (np.arange(600) < 80))
        log_p = log_softmax(sum(f * one for f, one in zip(factors, parts, strict=True)))
        return np.average(log_p[np.arange(600), labels][known], weights=weights[known])

    for step in ((0.1, 0), (-0.1, 0), (0, 0.1), (0, -0.1)):
        assert mean(factors + np.array(step)) < mean(factors)


def test_the_best_setting_is_that_of_heavy_documents():
    figures = np.array([[0, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]], dtype=float)
    assert [decide(figures, np.array([1.0, 1, 1, last]), 0.0) for last in (1, 9)] == [1, 2]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_balanced_weights_choose_the_penalty_by_weighted_folds(seed):
    """Rare classes of 3%; the penalty that is best without weights is far from the best with."""
    random = np.random.default_rng(seed)
    y, wanted = (random.choice(4, n, p=[0.91, 0.03, 0.03, 0.03]) for n in (1200, 8000))
    centers = 1.6 * random.normal(size=(4, 30)) / np.sqrt(30) * 2
    X, other = (centers[labels] + random.normal(size=(len(labels), 30)) for labels in (y, wanted))
    found = {}
    for l2 in (None, 1e-6, 1e-4, 1e-2, 1e-1, 1.0):
        model = MaxentClassifier(class_weight="balanced", l2=l2, solver=l2 and "lbfgs", threads=1)
        found[l2] = balanced_accuracy_score(wanted, model.fit(X, y).predict(other))
    best = max(found[l2] for l2 in (1e-6, 1e-4, 1e-2, 1e-1))
    assert found[None] > best - 0.02


def test_a_training_far_worse_than_its_trials_is_an_error(monkeypatch):
    X, y = spread()
    learn = fit.SgdTask.learn
    monkeypatch.setattr(fit.SgdTask, "learn", lambda task: (learn(task), task.weights.scale(-0.05)))
    with pytest.raises(DivergedError, match="cross-validation reached"):
        MaxentClassifier(loss="hinge", threads=1).fit(X, y)
