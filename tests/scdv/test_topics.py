"""Topics and retrieval against the formulas, computed by hand."""

import math
from pathlib import Path

import numpy as np
import pytest
from data import SMALL_SCDV, make_texts, word_vectors
from helpers import transform

from dcme_w2v.errors import CorpusError, DcmeWarning
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.search import (
    Finder,
    QueryLikelihood,
    average_precision,
    sharing_labels,
)
from dcme_w2v.scdv.topics import senses, topics


@pytest.fixture(scope="module")
def model():
    return fit_documents(make_texts(), word_vectors(), SMALL_SCDV)


def test_words_of_topics_follow_bayes_rule(model):
    posteriors = model.mixture.posteriors(model.vectors)
    chances = model.counts / model.counts.sum()
    joint = posteriors * chances[:, None]
    found = topics(model, 4)
    assert len(found) == posteriors.shape[1] == 5
    for number, topic in enumerate(found):
        assert topic.share == pytest.approx(joint[:, number].sum(), abs=1e-6)
        given = joint[:, number] / joint[:, number].sum()
        rarity = np.maximum(model.idf[: len(given)] - 1, 1e-9)
        specific = posteriors[:, number] * rarity * (rarity.max() + 1 - rarity)
        best = np.argsort(-specific, kind="stable")[:4]
        assert [word for word, _ in topic.words] == [model.words[int(i)] for i in best]
        assert [p for _, p in topic.words] == pytest.approx(given[best], abs=1e-6)


def test_coherence_equals_a_count(model):
    listed, columns = topics(model, 5, make_texts(40)), model.mixture.posteriors(model.vectors).T
    sets = [set(text.decode().split()) for text in make_texts(40)]
    assert len(listed) == 5
    for topic, chances in zip(listed, columns, strict=True):
        probable = np.argsort(-chances * model.counts, kind="stable")[:5]
        words, total = [model.words[int(i)] for i in probable], 0.0
        for i, word in enumerate(words):
            for before in words[:i]:
                both = sum({word, before} <= one for one in sets)
                total += math.log((both + 1) / max(sum(before in one for one in sets), 1))
        assert topic.coherence == pytest.approx(total)


@pytest.mark.parametrize("texts, message", [([], "no documents"), ([b"x", b""], "none of")])
def test_coherence_needs_documents_with_the_words(model, texts, message):
    with pytest.raises(CorpusError, match=message):
        topics(model, 5, texts)


def test_senses_of_a_word(model):
    number = model.words.index("w7")
    posteriors = model.mixture.posteriors(model.vectors)[number]
    found = senses(model, "w7", words=3, least=0.01)
    assert [p for p, _ in found] == pytest.approx(sorted(posteriors[posteriors >= 0.01])[::-1],
                                                  abs=1e-6)  # fmt: skip
    assert found[0][1].number == posteriors.argmax() + 1
    assert len(found[0][1].words) == 3


# ---- retrieval ----


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


# ---- words that name topics ----


TOPICS = {"tea": "cup leaf pot water green", "bus": "wheel road stop seat driver"}


def test_topics_and_latent_classes_are_named_by_specific_words(cli):
    """Documents have stop words, too."""
    random, lines = np.random.default_rng(2), []
    for words in list(TOPICS.values()) * 30:
        own = [*random.choice(words.split(), 5).tolist(), "is", "if", "the"]
        lines.append(f"{' '.join(random.permutation(own))}\n")
    Path("texts").write_text("".join(lines))
    words = [word for own in TOPICS.values() for word in own.split()]
    rows = [f"{word} {i // 5} {1 - i // 5} 0\n" for i, word in enumerate(words)]
    Path("v.txt").write_text("".join(rows) + "is 0 1 0.1\nif 1 0 0.1\nthe 1 0 0.1\n")
    cli("scdv fit texts --vectors v.txt --clusters 2 --output s --quiet")
    cli("latent fit texts --unsupervised --latent 2 --output l --quiet")
    topics = cli.json("scdv topics s --words 3")["topics"]
    for one in topics + cli.json("latent show l -k 3"):
        assert {word for word, _ in one["words"]} <= set(words)
