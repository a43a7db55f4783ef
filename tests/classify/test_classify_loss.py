"""`--loss hinge`: the squared hinge loss, one class against the rest."""

import contextlib
from pathlib import Path

import numpy as np
import pytest
from helpers import unit_rows
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from dcme_w2v import MaxentClassifier
from dcme_w2v._core.models import SparseRows
from dcme_w2v.classify import calibration
from dcme_w2v.classify.calibration import Calibration, likeliest_factors
from dcme_w2v.classify.choose import Problem, like_svm
from dcme_w2v.classify.fit import SgdTask, _best_offsets
from dcme_w2v.classify.labeled import Labeled
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.model import load_classifier
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.errors import DcmeWarning, DivergedError


def problem(classes=5, rows=60, features=12, seed=0):
    random = np.random.default_rng(seed)
    labels = np.append(np.arange(classes), random.integers(0, classes, rows - classes))
    matrix = random.normal(size=(rows, features)) + 2 * (labels[:, None] == np.arange(features))
    return csr_matrix(unit_rows(matrix)), labels


@pytest.mark.parametrize(
    "more, loss",
    [({"loss": "softmax"}, "softmax"), ({"objective": "ns"}, "softmax"),
     ({"solver": "lbfgs"}, "softmax"), ({"clusters": 2}, "softmax"), ({}, "hinge")],
)  # fmt: skip
def test_what_is_given_decides_the_loss(more, loss):
    assert resolved(ClassifyOptions(**more), 100, True).loss == loss
    assert resolved(ClassifyOptions(**more), 100).loss == "softmax"


def drawn(odds):
    """Return scores, their probabilities by a function of the log-odds, and labels."""
    random = np.random.default_rng(0)
    scores = random.normal(size=(4000, 6)) * 3
    p = 1 / (1 + np.exp(-odds(scores)))
    labels = [list(np.flatnonzero(row)) for row in random.random(p.shape) < p]
    return scores, p, labels, Calibration.fit("logistic", scores, labels, np.ones(4000))


def test_calibration_finds_the_logistic_function_of_scores():
    scores, p, _, found = drawn(lambda scores: 0.7 * scores - 1.5)
    assert found.slopes == pytest.approx([0.7] * len(found.slopes), abs=0.2)
    assert np.abs(np.exp(found.apply(scores)) - p).max() < 0.03


def test_calibration_bends_where_the_odds_do():
    """As of scores that gather at the margins; one slope would be .03 off on the mean."""
    scores, p, labels, found = drawn(
        lambda scores: np.interp(scores, [-9, -4, -3, 0, 9], [-9, -6, -2, -1, 3])
    )
    assert np.abs(np.exp(found.apply(scores)) - p).mean() < 0.01
    assert Calibration.restored(found.stored()) == found
    # half of the documents as two of a weight of .5, and others of nearly no weight
    weights = np.r_[np.ones(2000), np.full(4000, 0.5), np.full(50, 1e-9)]
    more = np.concatenate([scores, scores[2000:], scores[:50] / 2])
    names = [*labels, *labels[2000:], *[[0]] * 50]
    same = Calibration.fit("logistic", more, names, weights)
    assert np.abs(same.apply(scores) - found.apply(scores)).max() < 1e-3


def test_many_rare_classes_are_learned_to_the_optimum():
    """After five epochs without L2 regularization the correlation of scores would be about .6."""
    random = np.random.default_rng(0)
    centers = random.random((520, 900)) * (random.random((520, 900)) < 6 / 900)
    labels = np.append(np.arange(520), np.minimum(519, random.geometric(3 / 520, 1080)))
    kept, noise = random.random((2, 1600, 900))
    rows = centers[labels] * (kept < 0.6) + (noise < 10 / 900) / 2
    rows[:, 0] += 0.01  # none is empty
    rows = csr_matrix(unit_rows(rows))
    data, given = Labeled(rows, labels[:, None].tolist()), ClassifyOptions(threads=1)
    near = Problem(data, 520, given)
    task = SgdTask(data, 520, near.options(like_svm(near, {})))
    task.train()
    scores = task.weights.scores(SparseRows(rows), 0, 1600, 1)
    svm = LinearSVC().fit(rows, labels).decision_function(rows)
    assert np.corrcoef(scores.ravel(), svm.ravel())[0, 1] > 0.8


@pytest.mark.parametrize("length", [1.0, 50.0])
def test_the_bias_of_the_hinge_loss_has_the_scale_of_the_rows(length):
    """A bias of .1 would hardly be learned beside long rows, which have low learning rates."""
    rows, labels = problem(rows=600, classes=3)
    shifted = csr_matrix(length * unit_rows(rows.toarray() + 0.3))
    model = MaxentClassifier(loss="hinge", threads=1).fit(shifted, labels)
    svm = LinearSVC(intercept_scaling=0.2 * length).fit(shifted, labels)
    wanted = svm.decision_function(shifted).argmax(axis=1)
    assert (model.predict(shifted) == wanted).mean() > 0.97


@pytest.mark.parametrize("sets", [False, True])
def test_rows_that_are_short_beside_the_bias_are_warned_of(sets):
    labels = np.arange(60) % 3
    rows = np.eye(3)[labels]
    wanted = np.eye(3, dtype=int)[labels] if sets else labels
    said = pytest.warns(DcmeWarning, match="norm of 1e-12, which is far below the bias of 0.1, so")
    with said, contextlib.suppress(DivergedError):
        MaxentClassifier(solver="sgd" if sets else "lbfgs").fit(1e-12 * rows, wanted)
    assert MaxentClassifier().fit(rows, wanted).score(rows, wanted) == 1


def test_rare_labels_gain_if_left_out_documents_are_ranked_better():
    random = np.random.default_rng(0)
    counts = np.repeat([1000, 10], 10)
    scores = random.normal(size=(300, 20))
    labels = [[int(one)] for one in random.integers(0, 20, 300)]
    scores[np.arange(300), np.concatenate(labels)] += 2
    fair = scores.copy()
    scores += 0.5 * np.log(counts)
    found = _best_offsets(scores, labels, counts, np.ones(len(labels)))
    assert found[:10] == pytest.approx(0)
    assert 0.2 * np.log(100) <= found[10] <= 0.8 * np.log(100)
    assert not _best_offsets(fair, labels, counts, np.ones(len(labels))).any()
    is_rare = np.concatenate(labels) >= 10
    assert not _best_offsets(scores, labels, counts, np.where(is_rare, 1e-6, 1)).any()


@pytest.mark.parametrize("wrong", [0.0, 0.3])
def test_a_start_from_some_documents_reaches_the_same_likelihood(monkeypatch, wrong):
    """The documents that give the start are an eighth of all, and have no wrong labels."""
    random, found = np.random.default_rng(0), []
    scores = random.normal(size=(4400, 6))
    wanted = (3 * scores + random.gumbel(size=scores.shape)).argmax(axis=1)
    rows = np.arange(len(scores))
    is_wrong = (rows % calibration.PART > 0) & (random.random(len(rows)) < wrong)
    wanted[is_wrong] = random.integers(0, 6, is_wrong.sum())
    labels = wanted[:, None].tolist()
    for many in (scores.size - 1, scores.size):
        monkeypatch.setattr(calibration, "MANY", many)
        by = Calibration.fit("normalized", scores, labels, np.ones(len(scores)))
        found.append(by.apply(scores)[rows, wanted].mean())
    assert found[0] != found[1]  # only one of them has such a start
    assert found[0] == pytest.approx(found[1], abs=2e-4)


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_one_label_has_the_likeliest_logistic_function_of_scores(noise):
    """A share of the labels is wrong: any class is as probable."""
    random = np.random.default_rng(0)
    scores = 2 * random.normal(size=(4000, 6)) + random.normal(size=(4000, 1))
    log_p = Calibration("normalized", (1.4,), 1.0, noise).apply(scores)
    labels = [[int(one)] for one in (log_p + random.gumbel(size=log_p.shape)).argmax(axis=1)]
    by = Calibration.fit("normalized", scores, labels, np.ones(4000))
    assert Calibration.restored(by.stored()) == by
    assert by.noise == pytest.approx(noise, abs=0.04)
    assert (*by.slopes, by.constant) == pytest.approx((1.4, 1.0), abs=0.15 + noise)
    found, wanted = by.apply(scores), np.ravel(labels)
    assert np.exp(found).sum(axis=1) == pytest.approx(1)
    assert (found.argmax(axis=1) == scores.argmax(axis=1)).all()
    _, by_factor = likeliest_factors([scores], labels)  # 0.04 lower
    assert found[np.arange(4000), wanted].mean() > by_factor + (0 if noise else 0.02)
    shifted = by.apply(scores + 3)
    np.testing.assert_allclose(shifted, found)


def test_every_prediction_of_one_label_is_calibrated(cli):
    rows, labels = problem(rows=300)
    lines = [" ".join(f"w{j}" for j in row.indices[row.data > 0.2]) for row in rows]
    Path("d.tsv").write_text("".join(f"c{y}\t{t}\n" for y, t in zip(labels, lines, strict=True)))
    cli("classify train d.tsv --loss hinge --output m --threads 1")
    model = load_classifier("m")
    assert model.calibration.kind == "normalized"
    matrix = model.rows([line.encode() for line in lines])
    (log_p,) = model.log_probabilities(matrix)
    scores = model.weights.scores(SparseRows(matrix), 0, 300, 1)
    assert log_p == pytest.approx(model.calibration.apply(scores))
    numbers, top = map(np.concatenate, zip(*model.most_probable(matrix, 5), strict=True))
    assert (numbers == np.argsort(-scores, axis=1, kind="stable")).all()
    assert top == pytest.approx(-np.sort(-log_p, axis=1))
    assert np.exp(top).sum(axis=1) == pytest.approx(1)
    mean = log_p[np.arange(300), [model.classes.index(f"c{y}") for y in labels]].mean()
    assert cli.json("classify test m d.tsv")["log_likelihood"] == pytest.approx(mean)
    cli("classify shrink m --keep 1/1 --levels 100 --output small")
    small = load_classifier("small")
    assert small.calibration == model.calibration
    (of_small,) = small.log_probabilities(small.rows([line.encode() for line in lines]))
    assert np.abs(np.exp(of_small) - np.exp(log_p)).max() < 0.1
    estimator = MaxentClassifier(loss="hinge", threads=1).fit(rows, labels)
    own = estimator._calibration.apply(estimator.decision_function(rows))
    assert estimator.predict_log_proba(rows) == pytest.approx(own)
    estimator.partial_fit(rows, labels)
    assert estimator._calibration.kind == "normalized" and estimator.loss_ == "hinge"
    estimator.set_params(loss="softmax").partial_fit(rows, labels)
    assert estimator.predict_log_proba(rows) == pytest.approx(
        log_softmax(estimator.decision_function(rows))
    )


@pytest.mark.parametrize("labels", [["a", "b", "a|b"], ["a", "b", "b"]])
def test_models_that_vote_are_calibrated_without_a_change_of_weights(cli, labels):
    lines = [f"{labels[i % 3]}\tw{i % 3} v{i % 7}\n" for i in range(120)]
    Path("d.tsv").write_text("".join(lines))
    cli(
        "classify train d.tsv --loss hinge --cluster local:0 --shards 2 --distribute vote "
        "--holdout 0.3 --output m"
    )
    assert 0 < cli.json("classify test m d.tsv")["micro_f1"] <= 1


def test_few_rows_of_text_are_learned_by_the_hinge_loss():
    """They have more columns than rows, and few numbers; other small problems have L-BFGS."""
    random, labels = np.random.default_rng(0), np.arange(60) % 3
    rows = random.random((60, 300)) * (random.random((60, 300)) < 0.05)
    rows[np.arange(60), labels] = 1
    losses = [MaxentClassifier(threads=1).fit(x, labels).loss_ for x in (rows, rows[:, :50])]
    assert losses == ["hinge", "softmax"]
    assert MaxentClassifier(threads=1).fit(rows + 0.1, labels).loss_ == "softmax"
