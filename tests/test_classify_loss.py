"""`--loss hinge`: the squared hinge loss, one class against the rest."""

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from dcme_w2v import MaxentClassifier
from dcme_w2v.classify.fit import Labelled, fit
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.cli.main import program
from dcme_w2v.errors import UsageError

MARGIN = 4.0  # of csrc/classify/softmax_sgd.c


def problem(classes=5, rows=60, features=12, seed=0):
    random = np.random.default_rng(seed)
    labels = np.append(np.arange(classes), random.integers(0, classes, rows - classes))
    matrix = random.normal(size=(rows, features)) + 2 * (labels[:, None] == np.arange(features))
    return csr_matrix(matrix / np.linalg.norm(matrix, axis=1, keepdims=True)), labels


def test_hinge_converges_to_the_optimum():
    rows, labels = problem()
    l2, dense = 0.05, np.hstack([rows.toarray(), np.ones((60, 1))])
    signs = np.where(labels[:, None] == np.arange(5), 1.0, -1.0)

    def objective(point):
        weights = point.reshape(13, 5)
        lack = np.maximum(0, MARGIN - signs * (dense @ weights))
        gradient = -dense.T @ (signs * lack) / 60
        gradient[:-1] += l2 * weights[:-1]
        return (lack**2).sum() / 120 + l2 / 2 * (weights[:-1] ** 2).sum(), gradient.ravel()

    optimum = minimize(objective, np.zeros(65), jac=True, tol=1e-10).x.reshape(13, 5)
    model = MaxentClassifier(
        loss="hinge", l2=l2, bias=1.0, batch=60, lr=0.02, min_lr=0.02, epochs=3000, threads=1
    ).fit(rows, labels)
    assert model.coef_ == pytest.approx(optimum[:-1].T, abs=5e-3)
    assert model.intercept_ == pytest.approx(optimum[-1], abs=5e-3)
    assert model.objective_ == "gd"


def test_all_labels_of_a_document_are_on_the_positive_side():
    matrix = csr_matrix(np.eye(3, dtype=np.float32)[[0, 1, 2] * 20])
    data = Labelled(matrix, [[0, 1], [2], [0, 2]] * 20)
    options = resolved(ClassifyOptions(loss="hinge", epochs=50, threads=1, bias=0.0), 3)
    weights, _ = fit(data, 3, options, multilabel=True)
    wanted = np.array([[1, 1, -1], [-1, -1, 1], [1, -1, 1]])
    assert weights.get()[:-1] == pytest.approx(MARGIN * wanted, abs=0.2)


def test_probabilities_and_the_default_rate():
    rows, labels = problem(rows=200)
    model = MaxentClassifier(loss="hinge", threads=1).fit(rows, labels)
    assert model.lr_ == 0.5
    assert model.predict_proba(rows).sum(axis=1) == pytest.approx(np.ones(200))
    assert model.score(rows, labels) > 0.8
    again = MaxentClassifier(loss="hinge", threads=1).fit(rows, labels)
    assert np.array_equal(again.coef_, model.coef_)


@pytest.mark.parametrize(("more", "message"), [
    (["--solver", "lbfgs"], "--loss=hinge: is not for --solver lbfgs"),
    (["--objective", "nce"], "--loss=hinge: is not for --objective nce"),
    (["--rank", "3"], "--loss=hinge: is not for --rank 3"),
])  # fmt: skip
def test_unsupported_options_of_hinge(tmp_path, more, message):
    (tmp_path / "d.tsv").write_text("a\tone\nb\ttwo\n")
    given = ["classify", "train", str(tmp_path / "d.tsv"), "--output", str(tmp_path / "m")]
    found = CliRunner().invoke(program, [*given, "--loss", "hinge", *more])
    assert isinstance(found.exception, UsageError) and found.exception.args[0] == message
