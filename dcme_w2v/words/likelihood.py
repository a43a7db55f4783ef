"""Compute the likelihood of held-out text with the exact softmax over the vocabulary.

A word is predicted from the mean of the word vectors around it, as by CBOW with a fixed window, for
all kinds of models. Scores are computed by BLAS in blocks of contexts and words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dcme_w2v.numeric.arrays import F32, F64, I64, U32
from dcme_w2v.numeric.parallel import blocks_of_rows, one_blas_thread, ordered_map
from dcme_w2v.text.cache import LAST, NUMBER

# Numbers of contexts and words in a block of scores; the block fits in the L2 cache.
BATCH, WORDS = 256, 2048
PIECE = 1 << 16  # minimum number of tokens in a piece of held-out text

Neighbors = tuple[F32, F32]  # vectors of left and right neighbors, each of shape (words, dim)


@dataclass(frozen=True)
class Likelihood:
    """The mean log-probability of held-out tokens, and the log of their mean probability.

    Attributes
    ----------
    log_probability : float
        Mean of log p_t, in nats.
    log_mean_probability : float
        Log of the mean of p_t, the measure of the DCME paper; frequent words have more weight.
    count : int
        Number of predicted tokens; tokens without context are not predicted.
    standard_error : float
        Standard error of `log_probability`, as if tokens were independent.
    """

    log_probability: float
    log_mean_probability: float
    count: int
    standard_error: float


def summary(logs: F64) -> Likelihood:
    """Compute the statistics in `Likelihood` for n log-probabilities."""
    if len(logs) == 0:
        return Likelihood(float("nan"), float("nan"), 0, float("nan"))
    top = logs.max()
    log_mean = float(top + np.log(np.exp(logs - top).mean()))
    return Likelihood(float(logs.mean()), log_mean, len(logs), float(logs.std() / len(logs) ** 0.5))


def figures_of(prefix: str, logs: F64, names: Sequence[str]) -> dict[str, float]:
    """Compute the statistics `names` for each row of log-probabilities; add a prefix to names."""
    found: dict[str, float] = {}
    for suffix, row in zip(("", "_with_noise"), logs, strict=False):
        figures = vars(summary(row))
        found |= {f"{prefix}{name}{suffix}": figures[name] for name in names if len(row)}
    return found


def contexts(
    ids: U32,
    vectors: F32,
    window: int,
    neighbors: Neighbors | None = None,
) -> tuple[F32, I64]:
    """Return the context vector h of every token that has a context, and these tokens.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Encoded text; bit 31 marks the last word of a sentence.
    vectors : ndarray of float32, shape (words, dim)
        Input vectors.
    window : int
        Context words on each side.
    neighbors : tuple of ndarray of float32, shape (words, dim), optional
        With word order: the vectors of the words just left and just right of a token, which are
        added to its h.

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
    total /= np.maximum(count, 1)[:, None]
    if neighbors is not None:
        near = np.flatnonzero(sentence[1:] == sentence[:-1])
        total[near + 1] += neighbors[0][words[near]]
        total[near] += neighbors[1][words[near + 1]]
    return total[some], words[some]


def pieces(ids: U32, size: int = PIECE) -> Iterator[U32]:
    """Split encoded text at sentence ends into blocks of at least `size` tokens."""
    ends = np.append(np.flatnonzero(ids & LAST) + 1, len(ids))
    start = 0
    while start < len(ids):
        following = int(np.searchsorted(ends, start + size))
        end = int(ends[min(following, len(ends) - 1)])
        yield ids[start:end]
        start = end


def log_probabilities(
    h: F32,
    targets: I64,
    output: F32,
    biases: Sequence[F32],
    threads: int | None = 1,
) -> F64:
    """Return the log-probabilities of the targets, with one row per bias vector.

    Parameters
    ----------
    h : ndarray of float32, shape (m, dim)
    targets : ndarray of int64, shape (m,)
    output : ndarray of float32, shape (words, dim)
    biases : sequence of ndarray of float32, shape (words,)
        Added to the scores. All are computed in one pass, in which the exponentials of the scores
        are summed with the weights exp(bias).
    threads : int, optional
        Default: the CPUs that this process may use. The result does not depend on it.

    Returns
    -------
    ndarray of float64, shape (len(biases), m)
    """
    tops = np.array([bias.max() for bias in biases], dtype=np.float64)
    weights = np.exp(np.stack(list(biases), axis=1) - tops).astype(np.float32)
    rows = np.ascontiguousarray(output.T)

    def of_batch(here: slice) -> F64:
        batch, wanted = h[here], targets[here]
        own = np.einsum("ij,ij->i", batch, output[wanted], dtype=np.float64)
        own_bias = np.stack([bias[wanted] for bias in biases])
        return np.asarray(own + own_bias - (_log_sums(batch, rows, weights) + tops).T)

    with one_blas_thread():
        found = list(ordered_map(of_batch, blocks_of_rows(len(h), BATCH), threads))
    return np.concatenate([np.empty((len(biases), 0)), *found], axis=1)


def _log_sums(batch: F32, rows: F32, weights: F32) -> F64:
    """Return the log normalizer of each context for each bias vector, shape (contexts, biases).

    The largest score so far is subtracted from the scores of a block. Sums of earlier blocks are
    scaled when it rises.
    """
    top = np.full(len(batch), -np.inf)
    sums = np.zeros((len(batch), weights.shape[1]))
    for block in blocks_of_rows(rows.shape[1], WORDS):
        scores = batch @ rows[:, block]
        higher = np.maximum(top, scores.max(axis=1))
        sums *= np.exp(top - higher)[:, None]
        scores -= higher.astype(np.float32)[:, None]
        np.exp(scores, out=scores)
        sums += scores @ weights[block]
        top = higher
    return np.asarray(np.log(sums) + top[:, None])
