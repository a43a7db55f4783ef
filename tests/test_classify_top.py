"""The most probable classes equal the first of all sorted probabilities, ties included."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_matrix

from dcme_w2v.classify import top
from dcme_w2v.classify.model import Classifier
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.top import sorted_top
from dcme_w2v.classify.trainer import LowRankWeights, Weights
from dcme_w2v.numeric.core import INSTRUCTION_SETS, core

SETS = [name for name in INSTRUCTION_SETS if core.has_kernels(name)]
CLASSES, FEATURES = 333, 40


def model(weights):
    return Classifier([f"c{i}" for i in range(CLASSES)], None, ClassifyOptions(), weights=weights)


def linear(kind):
    random = np.random.default_rng(3)
    if kind == "low rank":
        weights = LowRankWeights(FEATURES, CLASSES, 7, 0.1, seed=1)
        weights.tables["output"][:] = random.normal(size=(CLASSES, 7))
        return weights
    weights = Weights(FEATURES, CLASSES, 0.1, random.permutation(CLASSES))
    table = random.normal(size=(FEATURES + 1, CLASSES))
    if kind == "ties":
        table = np.rint(table) * 0.5
        table[-1] = 0
    if kind == "offset":
        weights.offset[:] = random.normal(size=CLASSES)
    weights.set(table.astype(np.float32))
    return weights


def rows(kind, count=150):
    found = sparse.random(count, FEATURES, 0.2, random_state=np.random.default_rng(4))
    found = csr_matrix(found, dtype=np.float32)
    if kind == "ties":
        found.data = np.rint(found.data * 4).astype(np.float32)
    return found


@pytest.mark.parametrize("kernels", SETS)
@pytest.mark.parametrize("kind", ["plain", "ties", "offset", "low rank"])
def test_top_classes_are_the_first_of_all_classes_sorted(monkeypatch, kind, kernels):
    monkeypatch.setenv("DCME_W2V_KERNELS", kernels)
    classifier, X = model(linear(kind)), rows(kind)
    every = np.concatenate(list(classifier.log_probabilities(X, 2)))
    nearly = 1e-6 if kind == "low rank" else 1e-14  # BLAS sums in an order of its own
    order, log_p = sorted_top(every, CLASSES)
    np.testing.assert_array_equal(order, np.argsort(-every, axis=1, kind="stable"))
    if kind == "ties":  # of the first five, in most documents
        assert np.mean([len(set(row)) < 5 for row in log_p[:, :5].tolist()]) > 0.5
    for count in (1, 5, CLASSES):
        for threads in (1, 3):
            found = list(classifier.most_probable(X, count, threads))
            np.testing.assert_array_equal(np.concatenate([a for a, _ in found]), order[:, :count])
            found_p = np.concatenate([p for _, p in found])
            np.testing.assert_allclose(found_p, log_p[:, :count], rtol=nearly)


def test_batches_keep_the_order_of_documents(monkeypatch):
    monkeypatch.setattr(top, "MIN_DOCUMENTS", 7)
    monkeypatch.setattr(top, "documents_at_once", lambda classes: 7)
    classifier, X = model(linear("plain")), rows("plain")
    found = np.concatenate([numbers for numbers, _ in classifier.most_probable(X, 1, 4)])
    every = np.concatenate(list(classifier.log_probabilities(X, 1)))
    np.testing.assert_array_equal(found[:, 0], every.argmax(axis=1))
    assert list(classifier.most_probable(X[:0], 1, 4)) == []
