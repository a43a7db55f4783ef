"""Topics and retrieval against the formulas, computed by hand."""

import math
from pathlib import Path

import numpy as np
import pytest
from data import SMALL_SCDV, make_texts, word_vectors

from dcme_w2v.errors import CorpusError
from dcme_w2v.scdv.fit import fit_documents
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


@pytest.mark.parametrize(
    "texts, message", [([], "no documents were found"), ([b"x", b""], "none of")]
)
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
    topics = cli.json("scdv topics s -k 3")["topics"]
    for one in topics + cli.json("latent show l -k 3"):
        assert len(one["words"]) == 3 and {word for word, _ in one["words"]} <= set(words)
