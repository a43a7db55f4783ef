"""The likelihood of held-out text under a model, by the exact softmax over the vocabulary.

A word is predicted from the mean of the word vectors around it, as by CBOW with a fixed window, for
all kinds of models. Scores are computed by BLAS for some hundred contexts at a time. Called by
`dcme_w2v.words.heldout` after an epoch and by `dcme_w2v.words.language_model` for saved vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.text.cache import LAST, NUMBER

BATCH = 256  # contexts per block of scores (contexts, words)
PIECE = 1 << 16  # minimum tokens per block of contexts


@dataclass(frozen=True)
class Likelihood:
    """Two summaries of the probabilities p_t of held-out tokens.

    Attributes
    ----------
    log_probability : float
        Mean of log p_t, in nats.
    log_mean_probability : float
        Log of the mean of p_t, the measure of the DCME paper; frequent words have more weight.
    count : int
        Number of predicted tokens; tokens without context are not predicted.
    """

    log_probability: float
    log_mean_probability: float
    count: int


def summary(logs: NDArray[np.float64]) -> Likelihood:
    """Summarise log-probabilities of shape (n,)."""
    if len(logs) == 0:
        return Likelihood(float("nan"), float("nan"), 0)
    top = logs.max()
    return Likelihood(float(logs.mean()), float(top + np.log(np.exp(logs - top).mean())), len(logs))


def contexts(
    ids: NDArray[np.uint32], vectors: NDArray[np.float32], window: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the context vector h of each token that has a context, and the token.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Encoded text; bit 31 marks the last word of a sentence.
    vectors : ndarray of float32, shape (words, dim)
        Input vectors.
    window : int
        Context words on each side.

    Returns
    -------
    h : ndarray of float32, shape (m, dim)
    targets : ndarray of int64, shape (m,)
    """
    words = (ids & NUMBER).astype(np.int64)
    sentence = np.concatenate([[0], np.cumsum(ids >> np.uint32(31))[:-1]])
    total = np.zeros((len(words), vectors.shape[1]), dtype=np.float32)
    count = np.zeros(len(words), dtype=np.float32)
    for distance in range(1, min(window, len(words) - 1) + 1):
        near = np.flatnonzero(sentence[distance:] == sentence[:-distance])
        far = near + distance
        for here, there in ((near, far), (far, near)):
            total[here] += vectors[words[there]]
            count[here] += 1
    some = count > 0
    return total[some] / count[some, None], words[some]


def pieces(ids: NDArray[np.uint32], size: int = PIECE) -> Iterator[NDArray[np.uint32]]:
    """Split encoded text at ends of sentences into pieces of at least `size` tokens."""
    ends = np.append(np.flatnonzero(ids & LAST) + 1, len(ids))
    start = 0
    while start < len(ids):
        following = int(np.searchsorted(ends, start + size))
        end = int(ends[min(following, len(ends) - 1)])
        yield ids[start:end]
        start = end


def likelihood(
    ids: NDArray[np.uint32],
    input: NDArray[np.float32],
    output: NDArray[np.float32],
    window: int,
    bias: NDArray[np.float32] | None = None,
) -> Likelihood:
    """Return the log-likelihood of encoded text.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Encoded text; bit 31 marks the last word of a sentence.
    input, output : ndarray of float32, shape (words, dim)
        Word vectors and context vectors.
    window : int
        Words on each side that are context.
    bias : ndarray of float32, shape (words,), optional
        Added to the scores, for example the log of the noise distribution for negative sampling.
    """
    biases = [np.zeros(len(output), dtype=np.float32) if bias is None else bias]
    logs = [np.zeros(0)]
    for piece in pieces(ids):
        h, targets = contexts(piece, input, window)
        logs.append(log_probabilities(h, targets, output, biases)[0])
    return summary(np.concatenate(logs))


def log_probabilities(
    h: NDArray[np.float32],
    targets: NDArray[np.int64],
    output: NDArray[np.float32],
    biases: Sequence[NDArray[np.float32]],
) -> NDArray[np.float64]:
    """Return log-probabilities of the targets, one row for each bias.

    Parameters
    ----------
    h : ndarray of float32, shape (m, dim)
    targets : ndarray of int64, shape (m,)
    output : ndarray of float32, shape (words, dim)
    biases : sequence of ndarray of float32, shape (words,)
        Added to the scores. All are computed in one pass, in which the exponentials of the scores
        are summed with the weights exp(bias).

    Returns
    -------
    ndarray of float64, shape (len(biases), m)
    """
    rows = np.ascontiguousarray(output.T)
    tops = np.array([bias.max() for bias in biases], dtype=np.float64)
    weights = np.exp(np.stack(list(biases), axis=1) - tops).astype(np.float32)
    logs = np.empty((len(biases), len(h)))
    memory = np.empty((min(BATCH, len(h)), len(output)), dtype=np.float32)
    for start in range(0, len(h), BATCH):
        batch = h[start : start + BATCH]
        scores = np.matmul(batch, rows, out=memory[: len(batch)])
        wanted = targets[start : start + BATCH]
        own = np.take_along_axis(scores, wanted[:, None], axis=1)[:, 0].astype(np.float64)
        top = scores.max(axis=1)
        scores -= top[:, None]
        np.exp(scores, out=scores)
        sums = np.log((scores @ weights).astype(np.float64)) + tops + top[:, None]
        own_bias = np.stack([bias[wanted] for bias in biases])
        logs[:, start : start + BATCH] = own + own_bias - sums.T
    return logs
