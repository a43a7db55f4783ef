"""Training with character n-grams: against the reference; files and errors."""

from pathlib import Path

import numpy as np
import pytest
from data import corpus
from fasttext_models import mean_of
from numpy.testing import assert_allclose, assert_array_equal
from reference_objectives import OBJECTIVES
from reference_subwords import SubwordReference

import dcme_w2v as dw
from dcme_w2v import Vectors
from dcme_w2v._core.models import KERNELS
from dcme_w2v.formats.vectors.fasttext import open_model
from dcme_w2v.formats.vectors.subwords import Subwords, WordNgrams
from dcme_w2v.options import SubwordOptions
from dcme_w2v.words.options import TrainOptions, resolved
from dcme_w2v.words.trainer import Trainer

SMALL = {"dim": 20, "window": 3, "epochs": 2, "sample": 0.01, "lr": 0.05, "threads": 1}
BUCKETS = 37
SENTENCES = ["the theory of the thing", "another thing and a theorem", "of words and wording"] * 40
QUICK = {"dim": 8, "subwords": "3-6", "buckets": 50, "min_count": 1, "threads": 1, "sample": 0.0}
WITHOUT = {name: QUICK[name] for name in ("dim", "min_count", "threads", "sample")}


def some_ngrams(words, seed=1):
    """Return up to six n-grams for each word, some of them twice; some words have none."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 7, words))]).astype(np.int64)
    numbers = rng.integers(0, BUCKETS, starts[-1]).astype(np.int32)
    return WordNgrams(SubwordOptions("3-6", BUCKETS), starts, numbers)


def fill(training, reference):
    reference.input[:] = np.random.default_rng(1).normal(0, 0.5, reference.input.shape)
    reference.output[:] = np.random.default_rng(2).normal(0, 0.5, reference.output.shape)
    words = len(training.input)
    training.input[:] = reference.input[:words]
    training.subwords.rows[:] = reference.input[words:]
    training.output[:] = reference.output


@pytest.mark.parametrize("gradient", ["exact", "word2vec"])
@pytest.mark.parametrize("mode", ["shrink", "fixed"])
@pytest.mark.parametrize("model", ["cbow", "skipgram"])
def test_rows_equal_the_reference(model, mode, gradient):
    text = corpus(tokens=1200)
    choice = {"model": model, "window_mode": mode, "gradient": gradient}
    options = resolved(TrainOptions(**SMALL | choice | {"epochs": 1}))
    ngrams = some_ngrams(len(text[1]))
    reference = SubwordReference(*text, options, OBJECTIVES["ns"], ngrams)
    trainings = [Trainer(*text, options, kernels, ngrams) for kernels in KERNELS]
    for training in trainings:
        fill(training, reference)
    start, loss, words = reference.input.copy(), reference.epoch(0), len(text[1])
    assert np.abs(reference.input - start).max() > 0.1
    for training in trainings:
        assert training.epoch(0).loss == pytest.approx(loss, rel=1e-5)
        for found, wanted in (
            (training.input, reference.input[:words]),
            (training.subwords.rows, reference.input[words:]),
            (training.output, reference.output),
        ):
            assert np.abs(found - wanted).max() <= 3e-5 * np.abs(wanted).max()
        assert training.progress().trained == reference.trained


def test_a_word_of_ngrams_is_not_its_own_neighbor():
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    v = Vectors(["king", "queen"], rows[:2], subwords=Subwords(3, 4, rows))
    among = ["kings", "queens", "king"]
    assert {one.word for one in v.most_similar("kings", among=among)} == {"queens", "king"}
    assert [one.word for one in v.most_similar(["kings", "king"], among=among)] == ["queens"]


def test_invalid_ngrams_are_errors():
    text = corpus(tokens=500)
    options = resolved(TrainOptions(**SMALL))
    good = some_ngrams(len(text[1]))
    for starts, numbers, message in (
        (good.starts, good.numbers + BUCKETS, "has no row"),
        (good.starts, good.numbers - BUCKETS, "has no row"),
        (good.starts[::-1].copy(), good.numbers, "do not ascend"),
        (good.starts[:-1], good.numbers, "do not fit together"),
    ):
        with pytest.raises(ValueError, match=message):
            Trainer(*text, options, ngrams=WordNgrams(good.options, starts, numbers))


@pytest.mark.parametrize("model", ["cbow", "skipgram"])
def test_the_model_is_a_fasttext_model(model):
    path = Path("model.bin")
    vectors = dw.train(SENTENCES, output=path, format="fasttext", model=model, negative=7, **QUICK)
    opened, loaded, made = open_model(path), dw.Vectors.load(path), vectors.manifest["options"]
    assert (made["subwords"], made["buckets"], made["output_vectors"]) == ("3-6", 50, "input")
    assert vectors.subwords.rows.any(axis=1).all()  # n-grams that do not occur are random, too
    assert opened.header["dim"] == 8 and opened.header["negative"] == 7
    assert opened.header["model"] == {"cbow": 1, "skipgram": 2}[model]
    assert opened.header["tokens"] == sum(len(line.split()) for line in SENTENCES)
    words = list(loaded.words)
    assert words == list(vectors.words) and loaded.counts.tolist() == vectors.counts.tolist()
    assert_array_equal(opened.output, vectors.context.vectors)
    assert_array_equal(loaded.vectors, vectors.vectors)
    for word in ("theory", "theoretical"):
        assert_array_equal(loaded[word], vectors[word])
        assert_allclose(loaded[word], mean_of(word, opened.input, words), atol=1e-6)
    fasttext = pytest.importorskip("gensim.models.fasttext")
    keyed = fasttext.load_facebook_model(str(path)).wv
    for word in ("theory", "theoretical"):
        assert_allclose(keyed[word], loaded[word], atol=1e-6)


def test_training_continues_from_a_model():
    path, again = Path("model.bin"), "again.bin"
    first = dw.train(SENTENCES, output=path, format="fasttext", **{**QUICK, "epochs": 20})
    still = {"lr": 1e-5, "epochs": 1}
    dw.train(SENTENCES, init=str(path), output=again, format="fasttext", **QUICK, **still)
    before, after = open_model(path), open_model(again)
    assert_allclose(after.input, before.input, atol=0.01)
    assert_allclose(after.output, before.output, atol=0.01)
    assert np.abs(before.input).max() > 0.1 and np.abs(before.output).max() > 0.1
    for other in ({"buckets": 49}, {"subwords": "3-5"}):
        with pytest.raises(dw.errors.FormatError, match=r"3-6 .* 50 .*use"):
            dw.train(SENTENCES, init=str(path), **{**QUICK, **other})
    plain = dw.train(SENTENCES, init=str(path), output_vectors="input", **WITHOUT, **still)
    assert_allclose(plain.vectors, first.vectors, atol=0.01)
