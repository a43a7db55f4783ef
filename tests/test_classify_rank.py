"""Classifiers of low rank: training, model folder, state, invalid input."""

from pathlib import Path

import numpy as np
import pytest
from helpers import described, unit_rows
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from dcme_w2v import MaxentClassifier
from dcme_w2v.classify.model import Classifier
from dcme_w2v.classify.trainer import LowRankWeights


def problem(classes=30, documents=600, features=40, seed=0):
    """Documents of classes whose means lie in five dimensions."""
    random = np.random.default_rng(seed)
    labels = np.arange(documents) % classes
    means = random.normal(size=(classes, 5)) @ random.normal(size=(5, features))
    rows = means[labels] + 0.3 * random.normal(size=(documents, features))
    rows = unit_rows(rows)
    return csr_matrix(rows.astype(np.float32)), labels


def quick(**more):
    return MaxentClassifier(**{"rank": 8, "threads": 1, "epochs": 30, "random_state": 3} | more)


TRAIN = "classify train d --rank 3 --epochs 20 --threads 1 --quiet --output"


@pytest.fixture(autouse=True)
def docs(here):
    lines = [f"c{i % 6}\tw{i % 6} w{(i + 1) % 6} x{i % 6} y{i % 3}\n" for i in range(240)]
    Path("d").write_text("".join(lines))


def test_it_learns_with_a_fraction_of_the_weights():
    rows, labels = problem()
    model = quick().fit(rows, labels)
    assert model.score(rows, labels) > 0.95
    assert model.epochs_[-1]["loss"] < 0.3 * model.epochs_[0]["loss"]
    assert np.linalg.matrix_rank(model.coef_, tol=1e-3) <= 8
    scores = rows @ model.coef_.T + model.intercept_
    assert model.predict_log_proba(rows) == pytest.approx(log_softmax(scores, axis=1), abs=1e-4)


def test_model_of_the_command_line(cli):
    cli(f"{TRAIN} m --holdout 0.2 --ngrams 1")
    arrays = described("m")["arrays"]
    assert arrays["weights"]["shape"] == [16, 3] and arrays["output"]["shape"] == [6, 3]
    assert cli.json("classify test m d")["accuracy"] > 0.9
    model = Classifier.load("m")
    assert isinstance(model.weights, LowRankWeights)
    assert {name for name, _ in model.explain("c2", 3)} & {"w2", "x2", "w3"}
    model.save("again")
    rows = model.rows([b"w1 x1", b"", b"unknown"])
    one, two = (next(found.log_probabilities(rows)) for found in (model, Classifier.load("again")))
    assert np.array_equal(one, two)
