"""Topics and retrieval against the formulas, counted by hand."""

import math

import numpy as np
import pytest
from scipy import sparse
from test_scdv import SMALL, texts, transform, word_vectors

from dcme_w2v.documents.fit import fit_documents
from dcme_w2v.documents.search import (
    Finder,
    QueryLikelihood,
    average_precision,
    sharing_labels,
)
from dcme_w2v.documents.topics import coherences, senses, topics


@pytest.fixture(scope="module")
def model():
    return fit_documents(texts(), word_vectors(), SMALL)


def test_words_of_topics_by_bayes(model):
    posteriors = model.mixture.posteriors(model.vectors)
    chances = model.counts / model.counts.sum()
    joint = posteriors * chances[:, None]
    for number, topic in enumerate(topics(model, 4)):
        assert topic.share == pytest.approx(joint[:, number].sum(), abs=1e-6)
        given = joint[:, number] / joint[:, number].sum()
        best = np.argsort(-given, kind="stable")[:4]
        assert [word for word, _ in topic.words] == [model.words[int(i)] for i in best]
        assert [p for _, p in topic.words] == pytest.approx(given[best], abs=1e-6)


def test_coherence_by_counting(model):
    listed = topics(model, 5, texts(40))
    sets = [set(text.decode().split()) for text in texts(40)]
    for topic in listed:
        words = [word for word, _ in topic.words]
        total = 0.0
        for i, word in enumerate(words):
            for before in words[:i]:
                both = sum({word, before} <= one for one in sets)
                total += math.log((both + 1) / max(sum(before in one for one in sets), 1))
        assert topic.coherence == pytest.approx(total)


def test_coherence_of_words_that_stand_nowhere(model):
    assert coherences(model, [np.array([0, 1, 2])], [b"x"]) == [0.0]


def test_senses_of_a_word(model):
    number = model.words.index("w7")
    posteriors = model.mixture.posteriors(model.vectors)[number]
    found = senses(model, "w7", words=3, least=0.01)
    assert [p for p, _ in found] == pytest.approx(sorted(posteriors[posteriors >= 0.01])[::-1],
                                                  abs=1e-6)  # fmt: skip
    assert found[0][1].number == posteriors.argmax() + 1
    assert len(found[0][1].words) == 3


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


def test_scores_are_cosines_mixed_with_the_language_model(model):
    documents, queries = texts(), [b"w1 w2", b"w5 w6 w5", b"unknown"]
    rows = transform(model, documents)
    cosines = np.array(list(Finder(model, rows).scores(queries)))
    dense, asked = rows.toarray(), transform(model, queries).toarray()
    norms = np.linalg.norm(dense, axis=1) * np.linalg.norm(asked, axis=1)[:, None]
    np.testing.assert_allclose(cosines, asked @ dense.T / np.maximum(norms, 1e-30), atol=1e-5)
    language = QueryLikelihood(documents)
    alone = np.array(list(Finder(model, rows, language, 1.0).scores(queries)))
    mixed = np.array(list(Finder(model, rows, language, 0.25).scores(queries)))
    assert (alone.min(axis=1).tolist(), alone.max(axis=1).tolist()) == ([0, 0, 0], [1, 1, 1])
    told = language.scores(queries[0])
    assert np.corrcoef(alone[0], told)[0, 1] == pytest.approx(1)
    np.testing.assert_allclose(mixed, 0.25 * alone + 0.75 * cosines)
    assert (sparse.csr_matrix(rows) != transform(model, documents)).nnz == 0  # left as it was


def test_average_precision():
    relevant = np.array([True, False, True, False])
    assert average_precision(np.array([4, 3, 2, 1]), relevant) == (1 + 2 / 3) / 2
    assert average_precision(np.array([1, 2, 3, 4]), relevant) == (1 / 2 + 2 / 4) / 2


def test_documents_that_share_a_label():
    found = list(sharing_labels([("a",), (), ("b", "c")], [("a", "b"), ("c",), ()]))
    assert [own.tolist() for own in found] == [
        [True, False, False], [False, False, False], [True, True, False]
    ]  # fmt: skip
