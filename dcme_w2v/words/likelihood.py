"""How probable held-out text is under a model: the exact softmax over the whole vocabulary.

A word is predicted from the mean of the context vectors around it, as CBOW does with a fixed
window, whatever the model was trained with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LAST = np.uint32(0x80000000)  # marks the last word of a sentence in encoded text
BATCH = 256  # contexts whose scores, one for each word, are in memory together


@dataclass(frozen=True)
class Likelihood:
    """Two summaries of the probabilities p_t that a model gives to held-out words.

    Attributes
    ----------
    log_probability : float
        Mean of log p_t, in nats.
    log_mean_probability : float
        Log of the mean of p_t, the measure of the authors of DCME; frequent words weigh more.
    count : int
        How many words were predicted; those alone in their sentence are not.
    """

    log_probability: float
    log_mean_probability: float
    count: int


def contexts(
    ids: NDArray[np.uint32], vectors: NDArray[np.float32], window: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the mean context vector of each word that has a context, and the word.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Encoded text; bit 31 marks the last word of a sentence.
    vectors : ndarray of float32, shape (words, dim)
        Input vectors.
    window : int
        Words on each side.

    Returns
    -------
    h : ndarray of float32, shape (m, dim)
    targets : ndarray of int64, shape (m,)
    """
    words = (ids & ~LAST).astype(np.int64)
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


def likelihood(
    ids: NDArray[np.uint32],
    input: NDArray[np.float32],
    output: NDArray[np.float32],
    window: int,
    bias: NDArray[np.float32] | None = None,
) -> Likelihood:
    """Return how probable encoded text is.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Encoded text; bit 31 marks the last word of a sentence.
    input, output : ndarray of float32, shape (words, dim)
        Context and target vectors.
    window : int
        Words on each side that are context.
    bias : ndarray of float32, shape (words,), optional
        Added to the scores: the log of the noise distribution, which the scores of negative
        sampling lack.
    """
    h, targets = contexts(ids, input, window)
    if len(h) == 0:
        return Likelihood(float("nan"), float("nan"), 0)
    logs = np.concatenate(list(_log_probabilities(h, targets, output, bias)))
    top = logs.max()
    return Likelihood(float(logs.mean()), float(top + np.log(np.exp(logs - top).mean())), len(logs))


def _log_probabilities(
    h: NDArray[np.float32],
    targets: NDArray[np.int64],
    output: NDArray[np.float32],
    bias: NDArray[np.float32] | None,
) -> Iterator[NDArray[np.float64]]:
    rows = np.ascontiguousarray(output.T)
    for start in range(0, len(h), BATCH):
        scores = h[start : start + BATCH] @ rows
        if bias is not None:
            scores += bias
        wanted = targets[start : start + BATCH, None]
        own = np.take_along_axis(scores, wanted, axis=1)[:, 0].astype(np.float64)
        top = scores.max(axis=1, keepdims=True)
        np.exp(scores - top, out=scores)
        yield own - top[:, 0] - np.log(scores.sum(axis=1, dtype=np.float64))
