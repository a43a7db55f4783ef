"""Held-out likelihood against a word-by-word softmax in double precision."""

import numpy as np
import pytest

from dcme_w2v.words.likelihood import LAST, contexts, likelihood

SENTENCES = [[0, 1, 2, 3, 4, 1], [5], [2, 2], [3, 0, 5, 1, 1, 0, 4, 2]]


def encoded(sentences):
    ids = []
    for sentence in sentences:
        ids += [*sentence[:-1], sentence[-1] | int(LAST)]
    return np.array(ids, dtype=np.uint32)


def by_hand(sentences, input, output, window, bias):
    logs = []
    for sentence in sentences:
        for t, target in enumerate(sentence):
            around = [
                sentence[p]
                for p in range(max(0, t - window), min(len(sentence), t + window + 1))
                if p != t
            ]
            if around:
                scores = output @ input[around].mean(axis=0) + bias
                logs.append(scores[target] - np.log(np.exp(scores).sum()))
    return np.array(logs)


@pytest.mark.parametrize("window", [1, 2, 20])
@pytest.mark.parametrize("with_bias", [False, True])
def test_likelihood_is_the_softmax(window, with_bias):
    random = np.random.default_rng(3)
    input, output = random.normal(size=(2, 6, 4)).astype(np.float32)
    bias = random.normal(size=6).astype(np.float32) if with_bias else None
    found = likelihood(encoded(SENTENCES), input, output, window, bias)
    logs = by_hand(SENTENCES, input, output, window, 0 if bias is None else bias)
    assert found.count == len(logs) == 16
    assert found.log_probability == pytest.approx(logs.mean(), abs=1e-5)
    assert found.log_mean_probability == pytest.approx(np.log(np.exp(logs).mean()), abs=1e-5)


def test_large_scores_do_not_overflow():
    input = np.full((6, 4), 50, dtype=np.float32)
    output = np.linspace(-50, 50, 24, dtype=np.float32).reshape(6, 4)
    assert np.isfinite(likelihood(encoded(SENTENCES), input, output, 2).log_probability)


def test_words_alone_have_no_context():
    vectors = np.ones((6, 4), dtype=np.float32)
    h, targets = contexts(encoded([[1], [2], [3]]), vectors, 5)
    assert len(h) == len(targets) == 0
    assert likelihood(encoded([[1]]), vectors, vectors, 5).count == 0
