"""Retrieval against the formulas, computed by hand."""

import math

import numpy as np
import pytest
from helpers import SMALL_SCDV, make_texts, transform, word_vectors

from dcme_w2v.errors import DcmeWarning
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.search import (
    Finder,
    QueryLikelihood,
    average_precision,
    sharing_labels,
)


def test_language_model_is_dirichlet_smoothed_query_likelihood():
    documents = [b"a b a", b"c", b"a c c d", b""]
    language = QueryLikelihood(documents, prior=3.0)
    split = [text.decode().split() for text in documents]
    everything = [word for words in split for word in words]

    def likelihood(query, words):
        total = 0.0
        for word in query:
            background = everything.count(word) / len(everything)
            total += math.log((words.count(word) + 3 * background) / (len(words) + 3))
        return total / len(query)

    scores = language.scores(b"a d a unknown")
    wanted = [likelihood(["a", "d", "a"], words) for words in split]
    np.testing.assert_allclose(np.diff(scores), np.diff(wanted), atol=1e-6)


def test_scores_interpolate_cosine_and_language_model():
    model = fit_documents(make_texts(), word_vectors(), SMALL_SCDV)
    documents, queries = make_texts(), [b"w1 w2", b"w5 w6 w5", b"unknown"]
    rows = transform(model, documents)
    with pytest.warns(DcmeWarning, match="query 3: none of its words is known"):
        cosines = np.array(list(Finder(model, rows).scores(queries)))
    dense, asked = rows.toarray(), transform(model, queries).toarray()
    norms = np.linalg.norm(dense, axis=1) * np.linalg.norm(asked, axis=1)[:, None]
    np.testing.assert_allclose(cosines, asked @ dense.T / np.maximum(norms, 1e-30), atol=1e-5)
    language = QueryLikelihood(documents)
    alone = np.array(list(Finder(model, rows, language, 1.0).scores(queries)))
    mixed = np.array(list(Finder(model, rows, language, 0.25).scores(queries)))
    assert (alone.min(axis=1).tolist(), alone.max(axis=1).tolist()) == ([0, 0, 0], [1, 1, 1])
    np.testing.assert_allclose(mixed, 0.25 * alone + 0.75 * cosines)


def test_average_precision():
    relevant = np.array([True, False, True, False])
    assert average_precision(np.array([4, 3, 2, 1]), relevant) == (1 + 2 / 3) / 2
    assert average_precision(np.array([1, 2, 3, 4]), relevant) == (1 / 2 + 2 / 4) / 2


def test_relevance_by_shared_labels():
    found = list(sharing_labels([("a",), (), ("b", "c")], [("a", "b"), ("c",), ()]))
    assert [own.tolist() for own in found] == [
        [True, False, False], [False, False, False], [True, True, False]
    ]  # fmt: skip
