"""Held-out likelihood against a word-by-word softmax in double precision."""

import numpy as np
import pytest
from scipy.special import log_softmax

from dcme_w2v.words.likelihood import (
    BATCH,
    LAST,
    WORDS,
    contexts,
    log_probabilities,
    pieces,
    summary,
)

SENTENCES = [[0, 1, 2, 3, 4, 1], [5], [2, 2], [3, 0, 5, 1, 1, 0, 4, 2]]


def encoded(sentences):
    ids = []
    for sentence in sentences:
        ids += [*sentence[:-1], sentence[-1] | int(LAST)]
    return np.array(ids, dtype=np.uint32)


def likelihood(ids, input, output, window, bias=None):
    biases = [np.zeros(len(output), dtype=np.float32) if bias is None else bias]
    logs = [np.zeros(0)]
    for piece in pieces(ids):
        h, targets = contexts(piece, input, window)
        logs.append(log_probabilities(h, targets, output, biases)[0])
    return summary(np.concatenate(logs))


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
def test_likelihood_equals_the_softmax(window, with_bias):
    random = np.random.default_rng(3)
    input, output = random.normal(size=(2, 6, 4)).astype(np.float32)
    bias = random.normal(size=6).astype(np.float32) if with_bias else None
    found = likelihood(encoded(SENTENCES), input, output, window, bias)
    logs = by_hand(SENTENCES, input, output, window, 0 if bias is None else bias)
    assert found.count == len(logs) == 16
    assert found.log_probability == pytest.approx(logs.mean(), abs=1e-5)
    assert found.log_mean_probability == pytest.approx(np.log(np.exp(logs).mean()), abs=1e-5)
    assert found.standard_error == pytest.approx(logs.std() / 4, abs=1e-5)


@pytest.mark.parametrize("order", [1, -1])
def test_blocks_of_contexts_and_words(order):
    """Three blocks of words, whose scores differ by more than the range of exp()."""
    random = np.random.default_rng(1)
    h = random.normal(size=(2 * BATCH + 1, 8)).astype(np.float32)
    output = random.normal(size=(2 * WORDS + 5, 8)).astype(np.float32)
    bias = np.linspace(-150, 150, len(output), dtype=np.float32)[::order]
    targets = random.integers(len(output), size=len(h))
    one, three = (log_probabilities(h, targets, output, [bias], n) for n in (1, 3))
    assert one.tobytes() == three.tobytes()
    scores = h.astype(float) @ output.T.astype(float) + bias
    wanted = log_softmax(scores, axis=1)[np.arange(len(h)), targets]
    np.testing.assert_allclose(one[0], wanted, rtol=1e-5, atol=1e-4)


def test_neighbors_are_added_to_contexts():
    random = np.random.default_rng(3)
    vectors, left, right = random.normal(size=(3, 6, 4)).astype(np.float32)
    plain, targets = contexts(encoded(SENTENCES), vectors, 2)
    h, same = contexts(encoded(SENTENCES), vectors, 2, (left, right))
    own = [
        (left[sentence[t - 1]] if t else 0)
        + (right[sentence[t + 1]] if t + 1 < len(sentence) else 0)
        for sentence in SENTENCES
        if len(sentence) > 1
        for t in range(len(sentence))
    ]
    np.testing.assert_array_equal(targets, same)
    np.testing.assert_allclose(h - plain, own, atol=1e-6)
