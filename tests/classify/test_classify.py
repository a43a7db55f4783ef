"""The classifier: objectives, the exact optimum, scikit-learn's conventions, invalid input."""

import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from dcme_w2v import MaxentClassifier
from dcme_w2v._core.models import SparseRows
from dcme_w2v.classify.fit import SgdTask
from dcme_w2v.classify.labeled import Labeled
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.trainer import ClassifierTrainer, core_values
from dcme_w2v.errors import DivergedError, UsageError
from dcme_w2v.numeric.estimators import split_labels

OBJECTIVES = ["gd", "dcme", "nce", "ns"]


def problem(classes, documents=400, features=60, seed=0, noise=0.0):
    """Documents of classes that each have some features of their own."""
    random = np.random.default_rng(seed)
    labels = np.arange(documents) % classes
    means = random.random((classes, features)) < 4 / features
    rows = (random.random((documents, features)) < 0.05 + 0.6 * means[labels]).astype(float)
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    wrong = random.random(documents) < noise
    labels = np.where(wrong, random.integers(0, classes, documents), labels)
    return csr_matrix(rows), labels


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("classes", [2, 5, 70])
def test_every_objective_learns(objective, classes):
    rows, labels = problem(classes, 10 * classes + 100)
    model = MaxentClassifier(objective=objective, epochs=30, threads=2).fit(rows, labels)
    assert model.score(rows, labels) > 0.9


def test_negative_sampling_is_corrected_for_label_frequencies():
    """NS learns log p - log q; the model corrects to log p."""
    labels = np.repeat([0, 1, 2], [600, 150, 50])
    rows = csr_matrix(np.ones((800, 1)))
    model = MaxentClassifier(objective="ns", epochs=60, lr=0.5, threads=1).fit(rows, labels)
    assert model.predict_proba(rows[:1])[0] == pytest.approx([0.75, 0.1875, 0.0625], abs=0.03)


def test_coefficients_and_intercepts_give_the_scores():
    rows, labels = problem(37)
    for options in ({"objective": one} for one in OBJECTIVES):
        model = MaxentClassifier(**options, bias=0.3).fit(rows, labels)
        scores = rows @ model.coef_.T + model.intercept_
        assert model.decision_function(rows) == pytest.approx(scores, abs=1e-4), options
        log_p = log_softmax(scores, axis=1)
        assert model.predict_log_proba(rows) == pytest.approx(log_p, abs=1e-4), options


def test_partial_fit_continues_training():
    rows, labels = problem(20, 600)
    model = MaxentClassifier(lr=4.0)
    for _ in range(6):
        for part in np.array_split(np.random.default_rng(1).permutation(600), 3):
            model.partial_fit(rows[part], labels[part], classes=np.arange(21))
    assert model.score(rows, labels) > 0.9
    assert model.predict_proba(rows).shape == (600, 21)
    with pytest.raises(UsageError, match="label 99"):
        model.partial_fit(rows[:1], [99])


def test_an_interrupted_fit_leaves_the_classifier_on_the_exception(monkeypatch):
    rows, labels = problem(3)
    epoch = ClassifierTrainer.epoch

    def interrupting(self, now, watch=None):
        if now == 2:
            raise KeyboardInterrupt
        return epoch(self, now, watch)

    monkeypatch.setattr(ClassifierTrainer, "epoch", interrupting)
    with pytest.raises(KeyboardInterrupt) as caught:
        MaxentClassifier(objective="gd", epochs=5).fit(rows, labels)
    assert caught.value.partial.n_iter_ == 2
    assert caught.value.partial.score(rows, labels) > 0.5


def test_invalid_input_of_a_model():
    rows, labels = problem(3)
    model = MaxentClassifier().fit(rows, labels)
    with pytest.raises(ValueError, match="pass a list of all labels"):
        MaxentClassifier().partial_fit(rows, labels)
    with pytest.raises(ValueError, match="classes has changed since the first call"):
        model.partial_fit(rows, labels, classes=[0, 1])


def test_a_learning_rate_that_is_too_high_is_reported():
    rows, labels = problem(5)
    with pytest.raises(DivergedError, match="use a lower lr"):
        MaxentClassifier(lr=1e6, bias=0).fit(rows * 1e-18, labels)


def trained(*arguments):
    """Return the weights and the figures of all epochs."""
    task = SgdTask(*arguments)
    task.train()
    return task.weights, task.records


def labeled(classes, documents, first, **more):
    """Return documents, and the first of them, which are held out."""
    rows, labels = problem(classes, documents, **more)
    data = Labeled(rows.astype(np.float32), labels[:, None].tolist())
    return data, Labeled(data.matrix[:first], data.labels[:first])


def test_best_epoch_is_kept_and_training_stops_early():
    data, held = labeled(10, 300, 100, noise=0.3)
    learn = Labeled(data.matrix[100:], data.labels[100:])
    options = resolved(ClassifyOptions(epochs=60, patience=3, threads=1), 10)
    weights, epochs = trained(learn, 10, options, held)
    figures = [record["heldout_accuracy"] for record in epochs]
    best = int(np.argmax(figures))
    assert len(epochs) == best + 1 + 3 < 60
    scores = weights.scores(SparseRows(held.matrix), 0, 100, 1)
    right = scores.argmax(axis=1) == np.ravel(held.labels)
    assert right.mean() == pytest.approx(figures[best])


@pytest.mark.bits
def test_of_epochs_that_are_equally_good_the_last_one_is_kept():
    """`patience` counts from the first one."""
    data, held = labeled(3, 60, 3)
    options = resolved(ClassifyOptions(epochs=6, patience=9, threads=1), 3)
    weights, epochs = trained(data, 3, options, held)
    figures = [record["heldout_accuracy"] for record in epochs]
    assert figures[-1] == figures[-2] == max(figures)
    alone, _ = trained(data, 3, options)
    assert weights.get().tobytes() == alone.get().tobytes()
    _, epochs = trained(data, 3, replace(options, patience=2), held)
    assert len(epochs) == figures.index(max(figures)) + 3 < 6


@pytest.mark.parametrize("classes, options, objective, clusters", [
    (499, {}, "gd", None),
    (500, {}, "dcme", (89, 9, 3)),
    (24_001, {}, "dcme", (620, 25, 8)),
    (24_001, {"objective": "dcme"}, "dcme", (620, 25, 8)),
    (24_001, {"objective": "gd"}, "gd", None),
    (24_001, {"clusters": 9}, "dcme", (9, 3, 1)),
    (5, {"dcme_update": "paper"}, "dcme", (20, 4, 1)),
    (24_001, {"solver": "lbfgs"}, "gd", None),
])  # fmt: skip
def test_the_objective_follows_the_number_of_classes(classes, options, objective, clusters):
    found = resolved(ClassifyOptions(**options), classes)
    assert found.objective == objective
    if objective == "dcme":
        values = core_values(found)
        assert tuple(values[n] for n in ("class_clusters", "exact_clusters", "draws")) == clusters


def pandas(make):
    """Return a function that makes labels of pandas, where that is installed."""
    return lambda: make(pytest.importorskip("pandas"))


@pytest.mark.parametrize("labels", [
    np.array(["a", "b", -1, -1]), ["a", "b", None, None], [0, 1, np.nan, np.nan],
])  # fmt: skip
def test_rows_without_a_label_are_an_error(labels):
    with pytest.raises(UsageError, match=r"2 rows without a label \((-1|nan|None)\)"):
        MaxentClassifier(solver="lbfgs").fit(np.eye(4), labels)


def test_marks_of_rows_without_a_label():
    def fit(labels):
        return MaxentClassifier(solver="lbfgs").fit(np.eye(len(labels)), labels)

    with pytest.warns(UserWarning, match="the label -1 of 2 rows counts"):
        fit([0, 1, 2, -1, -1])
    for classes in ([-1, 0, 1], [-1, 1], ["-1", "1"]):  # of sentiments, of two classes
        assert fit(classes).classes_.tolist() == sorted(classes)


@pytest.mark.parametrize("labels", [
    [3, 5, None], [3, 5, np.nan], np.array([3, 5, np.nan]), np.array([3, 5, -1]),
    pandas(lambda pd: pd.Series([3, 5, None])), pa.array([3, 5, None]),
    pandas(lambda pd: pd.Series([3, 5, None], dtype="Int64")), ["a", "b", None],
    pandas(lambda pd: pd.Series(["a", "b", pd.NA])), pa.array(["a", "b", None]),
])  # fmt: skip
def test_labels_beside_nulls_keep_their_type(labels):
    found, unlabeled = split_labels(labels() if callable(labels) else labels)
    assert unlabeled.tolist() == [False, False, True]
    kept = found[:2].tolist()
    assert kept == ["a", "b"] or (kept == [3, 5] and found.dtype.kind == "i")


# ---- the engine through its bindings; test_stops.py stops and resumes every objective ----


def trainer():
    """A classifier before training; equal each time."""
    rows, labels = problem(20, 600, 50)
    options = ClassifyOptions(objective="dcme", threads=1, epochs=2, batch=8)
    numbers, labels = np.arange(600), labels.astype(np.int32)
    return ClassifierTrainer(rows.astype(np.float32), numbers, labels, 20, resolved(options, 20))


def test_views_of_the_state_keep_the_run_open():
    run = trainer()._core
    before = sys.getrefcount(run)
    views = run.state()
    assert sys.getrefcount(run) > before
    views.clear()
    assert sys.getrefcount(run) == before


def test_a_stop_before_an_epoch_leaves_it_unfinished():
    run = trainer()._core
    run.stop()
    assert not run.epoch(0)
    assert (run.unfinished(), run.progress()["trained"]) == (0, 0)
    with pytest.raises(ValueError, match="not finished"):
        run.epoch(1)
    assert run.epoch(0)
    assert (run.unfinished(), run.progress()["trained"]) == (-1, 600)


def test_rows_that_are_not_finite_are_found_by_their_numbers():
    learning = trainer()
    learning.weights.table[3, 5] = np.inf
    run = learning._core
    assert not run.is_finite(0, 51)
    assert not run.is_finite(3, 4)
    assert run.is_finite(0, 3) and run.is_finite(4, 51)
