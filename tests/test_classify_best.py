"""The most probable classes by bounds equal the best of all scores, ties included."""

import numpy as np
import pytest
from scipy import sparse

from dcme_w2v.classify import top
from dcme_w2v.classify.model import Classifier
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.top import TopKSearch
from dcme_w2v.classify.trainer import LowRankWeights, Weights
from dcme_w2v.classify.weight_files import VotingWeights
from dcme_w2v.errors import DivergedError
from dcme_w2v.numeric.core import INSTRUCTION_SETS, core

SETS = [name for name in INSTRUCTION_SETS if core.has_kernels(name)]
CLASSES, FEATURES = 2500, 60  # no multiple of the 16, 32 or 256 classes that are taken together


def linear(kind="plain", classes=CLASSES, features=FEATURES):
    random = np.random.default_rng(3)
    weights = Weights(features, classes, 0.1, random.permutation(classes))
    table = random.normal(size=(features + 1, classes)) ** 3
    if kind == "ties":
        table = np.rint(table / 4)
    if kind == "constant":
        table[1:] = 2.5
    weights.set(table.astype(np.float32))
    return weights


def rows(kind="plain", count=150, features=FEATURES):
    random = np.random.default_rng(4)
    found = sparse.random(count, features, 0.2, "csr", np.float32, random)
    if kind == "signed":
        found.data *= random.choice([-1, 1], len(found.data)).astype(np.float32)
    if kind == "ties":
        found.data = np.rint(found.data * 4).astype(np.float32)
    return found


def of_all_scores(weights, X, count):
    scores = weights.scores(core_documents(X), 0, X.shape[0], 1)
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


core_documents = top.core_documents


@pytest.mark.parametrize("kernels", SETS)
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
                np.testing.assert_array_equal(search.top_k(X, count, threads), wanted)
                assert search.scored > 0


@pytest.mark.parametrize("kind", ["plain", "signed"])
def test_scores_are_computed_of_few_classes(kind):
    search, X = TopKSearch(linear(kind)), rows(kind)
    search.top_k(X, 5, 2)
    assert 16 * X.shape[0] <= search.scored < 0.15 * CLASSES * X.shape[0]


def test_where_bounds_do_not_pay_all_scores_are_computed():
    X = rows()
    few, many = linear(classes=300), linear()
    offset = linear()
    offset.offset[:] = np.arange(CLASSES)
    low_rank = LowRankWeights(FEATURES, CLASSES, 7, 0.1, seed=1)
    vote = VotingWeights([linear(), linear("ties")])
    for weights, matrix, count in [
        (few, X, 1), (many, X, 100), (many, X[:3], 1), (offset, X, 2), (low_rank, X, 2),
        (vote, X, 2),
    ]:  # fmt: skip
        search = TopKSearch(weights)
        wanted = of_all_scores(weights, matrix, count)
        np.testing.assert_array_equal(search.top_k(matrix, count, 1), wanted)
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


def test_a_model_uses_them():
    weights, X = linear(), rows()
    model = Classifier([f"c{i}" for i in range(CLASSES)], None, ClassifyOptions(), weights=weights)
    np.testing.assert_array_equal(model.best_classes(X, 4, 2), of_all_scores(weights, X, 4))
