"""What users of document vectors, few labels and latent classes meet: labels, progress, output."""

from pathlib import Path

import numpy as np
import pytest
from helpers import make_texts, word_vectors

from dcme_w2v import SCDV, FusedFeatures, LatentClassModel

ROWS = np.kron(np.eye(2), np.ones((20, 3))) + np.random.default_rng(1).random((40, 6)) / 4
TRUTH = np.repeat(["tea", "bus"], 20)
SHOWN = np.isin(np.arange(40) % 20, [0, 1, 2])


def test_token_lists_are_documents_of_scdv():
    texts = [text.decode() for text in make_texts()]
    wanted = SCDV(word_vectors(), clusters=2).fit_transform(texts)
    tokens = [text.split() for text in texts]
    for documents in (tokens, [tuple(one) for one in tokens], [np.array(one) for one in tokens]):
        found = SCDV(word_vectors(), clusters=2).fit(documents).transform(documents)
        assert (found != wanted).nnz == 0
    read_once = SCDV(word_vectors(), clusters=2).fit_transform(text for text in texts)
    assert (read_once != wanted).nnz == 0
    with pytest.raises(ValueError, match=r"document 0.*whitespace"):
        SCDV(word_vectors()).fit([["w1", "w2 w3"]])


def test_estimators_report_progress():
    updates = []
    LatentClassModel(latent=2, progress=updates.append).fit(ROWS)
    assert {one.stage for one in updates} >= {"singular vectors", "EM from kmeans 1"}
    assert any(one.done for one in updates)
    updates.clear()
    FusedFeatures(progress=updates.append).fit(ROWS, np.where(SHOWN, TRUTH, "-1"))
    assert any(one.stage == "self-training" for one in updates)
    updates.clear()
    SCDV(word_vectors(), clusters=2, progress=updates.append).fit(make_texts())
    assert {one.stage for one in updates} >= {"reading", "Gaussian mixture"}


TOPICS = {"tea": "cup leaf pot water green", "bus": "wheel road stop seat driver"}


def test_topics_and_latent_classes_are_named_by_specific_words(here, cli):
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
