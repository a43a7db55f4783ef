"""Objects of every kind: what makes each, and what it answers to a question with a number."""

import functools
from pathlib import Path

import numpy as np
from data import DOCS, make_texts, word_vectors
from scipy.sparse import csr_matrix

import dcme_w2v as dw
from dcme_w2v.cli.main import run
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.text.tokenizer import Tokenizer
from dcme_w2v.words.language_model import LanguageModel

TEXTS = [text.decode() for text in make_texts()]
LABELS = np.arange(len(TEXTS)) % 3
MANY = np.array(list("abcdefghijklmnopqrst"))[np.arange(len(TEXTS)) % 20]
ROWS = np.abs(np.random.default_rng(3).normal(size=(len(TEXTS), 30))).astype(np.float32)
SPARSE = csr_matrix(ROWS)


def texts_of(number):
    """Return texts with words that no other number has."""
    return [f"{one} new{number}a{i} w{number}" for i, one in enumerate(TEXTS[:40])]


# ---- what makes objects ----


def fitted(estimator, X, y=None, **options):
    return functools.cache(lambda: estimator(**options).fit(X, y))


def loaded(made):
    """Return an object from its file."""
    made.save("object.safetensors")
    return dw.load("object.safetensors")


def of_shell(line):
    """Return the model that a command writes, and its answers."""

    def made():
        Path("docs.tsv").write_text(DOCS)
        assert run([*line.split(), "--output", "m", "--quiet"]) == 0
        return dw.load("m")

    return made, lambda found, number: found.predict_proba(texts_of(number))


def trained(**options):
    """Return word vectors with a manifest."""
    given = {"min_count": 1, "epochs": 1, "dim": 8, "threads": 1, **options}
    return dw.train([text.split() for text in TEXTS], **given)


def with_subwords():
    return trained(subwords="2-3", buckets=500)


# ---- what they answer ----


def answers_to(found, X):
    names = ("predict", "predict_proba", "predict_log_proba", "predict_top", "transform")
    return [getattr(found, name)(X) for name in names if name in dir(found)]


def of_rows(found, number):
    return answers_to(found, SPARSE[number:])


def of_texts(found, number):
    return answers_to(found, texts_of(number))


def of_words(found, number):
    return [found.most_similar(f"w{i}", topn=3) for i in range(number, number + 5)]


def of_search(found, number):
    return found.search([*texts_of(number)[::12], f"unseen{number}"], k=5)


OBJECTS = {
    "MaxentClassifier": (fitted(dw.MaxentClassifier, SPARSE, LABELS), of_rows),
    "MaxentClassifier sgd": (fitted(dw.MaxentClassifier, ROWS, LABELS, solver="sgd"), of_rows),
    # classes whose columns are ordered by similarity, which takes more than a cache line of them
    "MaxentClassifier, 20 classes": (
        fitted(dw.MaxentClassifier, ROWS, MANY, solver="sgd"), of_rows,
    ),
    "MaxentClassifier ns": (fitted(dw.MaxentClassifier, ROWS, LABELS, objective="ns"), of_rows),
    "MaxentClassifier sets": (
        fitted(dw.MaxentClassifier, SPARSE, np.eye(3, dtype=np.int64)[LABELS]), of_rows,
    ),
    "MaxentClassifier part": (
        lambda: dw.MaxentClassifier().partial_fit(SPARSE, LABELS, [0, 1, 2]), of_rows,
    ),
    "LatentClassModel": (fitted(dw.LatentClassModel, SPARSE, LABELS, latent=3), of_rows),
    "LatentClassModel lsa": (
        fitted(dw.LatentClassModel, SPARSE, latent=3, lsa=5, starts=2), of_rows,
    ),
    "FusedFeatures": (fitted(dw.FusedFeatures, SPARSE, LABELS, rounds=1), of_rows),
    "TextClassifier": (
        fitted(dw.TextClassifier, TEXTS, LABELS),
        lambda found, n: [of_texts(found, n), dict(found.explain(texts_of(n)[0]))],
    ),
    "TextClassifier dcme, 20 classes": (
        fitted(dw.TextClassifier, TEXTS, MANY, objective="dcme", features=1000), of_texts,
    ),
    "TextClassifier softmax": (
        fitted(dw.TextClassifier, TEXTS, LABELS, loss="softmax"), of_texts,
    ),
    "TextClassifier hashed": (
        fitted(dw.TextClassifier, TEXTS, LABELS, hashing=64, objective="gd"), of_texts,
    ),
    "SCDV": (fitted(dw.SCDV, TEXTS, vectors=word_vectors(), clusters=3), of_texts),
    "SentenceEncoder": (fitted(dw.SentenceEncoder, TEXTS, vectors=word_vectors()), of_texts),
    "SentenceEncoder usif": (
        fitted(dw.SentenceEncoder, TEXTS, vectors=word_vectors(), pooling="usif"), of_texts,
    ),
    "SentenceEncoder n-grams": (
        lambda: dw.SentenceEncoder(with_subwords()).fit(TEXTS), of_texts,
    ),
    "Search": (lambda: dw.Search(vectors=word_vectors()).fit(TEXTS), of_search),
    "Search loaded": (lambda: loaded(dw.Search().fit(TEXTS)), of_search),
    "Vectors": (trained, of_words),
    "Vectors loaded": (lambda: loaded(trained()), of_words),
    "Vectors of n-grams": (
        with_subwords, lambda found, n: [found[f"w{n}{i}"] for i in range(20)],
    ),
    "classify train": of_shell("classify train docs.tsv"),
}  # fmt: skip
SHELL = {
    "classify train --max-bytes": of_shell("classify train docs.tsv --max-bytes 4000"),
    "classify train --objective tree": of_shell("classify train docs.tsv --objective tree"),
    "latent fit": of_shell("latent fit docs.tsv"),
    "fuse fit": of_shell("fuse fit docs.tsv --unlabeled docs.tsv --no-choose"),
}
INNER = {  # which users do not get, or not as objects that are copied
    "Tokenizer": (
        lambda: Tokenizer(TokenizerOptions(tokenize="words")),
        lambda found, n: found.tokens(" ".join(texts_of(n))),
    ),
    "LanguageModel": (
        lambda: LanguageModel.load(trained(objective="dcme")),
        lambda found, n: dw.predict_word(found, f"w{n} _ w1 w2", topn=5),
    ),
    "Vocabulary": (
        lambda: dw.vocab(TEXTS, min_count=1),
        lambda found, n: [found.find(one) for one in (f"w{n}", f"w{2 * n}", "no")],
    ),
}
