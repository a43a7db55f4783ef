"""The most probable classes, also by bounds, equal the first of all that are sorted, with ties."""

import numpy as np
import pytest
from helpers import KERNELS
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from dcme_w2v.classify import top
from dcme_w2v.classify.model import Classifier
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.top import TopKSearch, sorted_top
from dcme_w2v.classify.trainer import LowRankWeights, Weights, core_documents
from dcme_w2v.classify.weight_files import VotingWeights
from dcme_w2v.errors import DivergedError

FEW, CLASSES = 333, 2500  # no multiple of the 16, 32 or 256 classes that are taken together
FEATURES = 60


def model(weights):
    names = [f"c{i}" for i in range(weights.classes)]
    return Classifier(names, None, ClassifyOptions(), weights=weights)


def linear(kind="plain", classes=CLASSES):
    random = np.random.default_rng(3)
    if kind == "low rank":
        weights = LowRankWeights(FEATURES, classes, 7, 0.1, seed=1)
        weights.tables["output"][:] = random.normal(size=(classes, 7))
        return weights
    weights = Weights(FEATURES, classes, 0.1, random.permutation(classes))
    table = random.normal(size=(FEATURES + 1, classes)) ** 3
    if kind == "ties":
        table = np.rint(table / 4)
        table[-1] = 0
    if kind == "constant":
        table[1:] = 2.5
    if kind == "offset":
        weights.offset[:] = random.normal(size=classes)
    weights.set(table.astype(np.float32))
    return weights


def rows(kind="plain", count=150):
    random = np.random.default_rng(4)
    found = sparse.random(count, FEATURES, 0.2, "csr", np.float32, random)
    if kind == "signed":
        found.data *= random.choice([-1, 1], len(found.data)).astype(np.float32)
    if kind == "ties":
        found.data = np.rint(found.data * 4).astype(np.float32)
    return found


def of_all_scores(weights, X, count):
    scores = weights.scores(core_documents(X), 0, X.shape[0], 1)
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", ["plain", "ties", "offset", "low rank"])
def test_top_classes_are_the_first_of_all_classes_sorted(monkeypatch, kind, kernels):
    monkeypatch.setenv("DCME_W2V_KERNELS", kernels)
    classifier, X = model(linear(kind, FEW)), rows(kind)
    every = np.concatenate(list(classifier.log_probabilities(X, 2)))
    nearly = 1e-6 if kind == "low rank" else 1e-14  # BLAS sums in an order of its own
    order, log_p = sorted_top(every, FEW)
    assert_array_equal(order, np.argsort(-every, axis=1, kind="stable"))
    if kind == "ties":  # of the first five, in most documents
        assert np.mean([len(set(row)) < 5 for row in log_p[:, :5].tolist()]) > 0.5
    for count in (1, 5, FEW):
        for threads in (1, 3):
            found = list(classifier.most_probable(X, count, threads))
            assert_array_equal(np.concatenate([a for a, _ in found]), order[:, :count])
            found_p = np.concatenate([p for _, p in found])
            assert_allclose(found_p, log_p[:, :count], rtol=nearly)


def test_batches_keep_the_order_of_documents(monkeypatch):
    monkeypatch.setattr(top, "MIN_DOCUMENTS", 7)
    monkeypatch.setattr(top, "documents_at_once", lambda classes: 7)
    weights, X = linear(classes=FEW), rows()
    found = np.concatenate([numbers for numbers, _ in model(weights).most_probable(X, 1, 4)])
    assert_array_equal(found, of_all_scores(weights, X, 1))
    assert list(model(weights).most_probable(X[:0], 1, 4)) == []


# ---- by bounds ----


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", ["plain", "signed", "ties", "constant"])
def test_they_are_the_first_of_all_classes_sorted(monkeypatch, kind, kernels):
    monkeypatch.setenv("DCME_W2V_KERNELS", kernels)
    monkeypatch.setattr(top, "MIN_CLASSES", 1)
    monkeypatch.setattr(top, "MAX_SHARE", 1)
    for classes in (1, 15, 16, 33, 300, CLASSES):
        weights, X = linear(kind, classes), rows(kind)
        for count in {1, min(5, classes), min(40, classes)}:
            wanted = of_all_scores(weights, X, count)
            for threads in (1, 3):
                search = TopKSearch(weights)
                assert_array_equal(search.top_k(X, count, threads), wanted)
                assert search.scored > 0


@pytest.mark.parametrize("kind", ["plain", "signed"])
def test_scores_are_computed_of_few_classes(kind):
    search, X = TopKSearch(linear(kind)), rows(kind)
    search.top_k(X, 5, 2)
    assert 16 * X.shape[0] <= search.scored < 0.15 * CLASSES * X.shape[0]


def test_where_bounds_do_not_pay_all_scores_are_computed():
    X, vote = rows(), VotingWeights([linear(), linear("ties")])
    for weights, matrix, count in [
        (linear(classes=300), X, 1), (linear(), X, 100), (linear(), X[:3], 1),
        (linear("offset"), X, 2), (linear("low rank"), X, 2), (vote, X, 2),
    ]:  # fmt: skip
        search = TopKSearch(weights)
        wanted = of_all_scores(weights, matrix, count)
        assert_array_equal(search.top_k(matrix, count, 1), wanted)
        assert search.scored == 0


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_weights_and_scores_that_are_not_finite_are_an_error(wrong):
    weights, X = linear(), rows()
    weights.table[3, 5] = wrong
    with pytest.raises(DivergedError, match=r"NaN or infinite.*lower (--)?lr"):
        TopKSearch(weights).top_k(X, 2, 1)
    for value in (3e38, wrong):
        X.data[:] = value
        with pytest.raises(DivergedError, match=r"NaN or infinite.*lower (--)?lr"):
            TopKSearch(linear()).top_k(X, 2, 1)
