"""CBOW with the exact softmax in numpy: the upper bound in figure 2, for small vocabularies.

Mini-batches of contexts with a fixed window, scores by BLAS; the learning rate decays to 0 as in
the core. Called by reproduce_figure2.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.words.likelihood import LAST

BATCH = 64  # contexts in a mini-batch


class Softmax:
    """Vectors trained by the gradient of the exact log-likelihood.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Encoded text; bit 31 marks the last word of a sentence.
    words, dim, window, epochs : int
    lr : float
        For one context, at the start.
    sample : float
        As --sample.
    """

    def __init__(
        self,
        ids: NDArray[np.uint32],
        counts: NDArray[np.int64],
        *,
        dim: int,
        window: int,
        epochs: int,
        lr: float,
        sample: float,
        seed: int = 1,
    ) -> None:
        self._random = np.random.default_rng(seed)
        self._ids, self._window, self._epochs, self._lr = ids, window, epochs, lr
        ratio = sample * counts.sum() / np.maximum(counts, 1) if sample else np.ones(len(counts))
        self._keep = np.sqrt(ratio) + ratio
        shape = (len(counts), dim)
        self.input = ((self._random.random(shape) - 0.5) / dim).astype(np.float32)
        self.output = np.zeros(shape, dtype=np.float32)

    def epoch(self, number: int, watch: Callable[[], None] | None = None) -> None:
        """Train one epoch, from 0."""
        words, sentence = self._subsampled()
        places = np.arange(len(words))
        for start in range(0, len(words), BATCH):
            done = (number + start / len(words)) / self._epochs
            self._learn(words, sentence, places[start : start + BATCH], self._lr * (1 - done))
        if watch:
            watch()

    def _subsampled(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        words = (self._ids & ~LAST).astype(np.int64)
        sentence = np.cumsum(self._ids >> np.uint32(31)) - (self._ids >> np.uint32(31))
        kept = self._random.random(len(words)) < self._keep[words]
        return words[kept], sentence[kept]

    def _learn(
        self,
        words: NDArray[np.int64],
        sentence: NDArray[np.int64],
        places: NDArray[np.int64],
        rate: float,
    ) -> None:
        offsets = np.concatenate([np.arange(-self._window, 0), np.arange(1, self._window + 1)])
        around = places[:, None] + offsets
        valid = (around >= 0) & (around < len(words))
        around = np.clip(around, 0, len(words) - 1)
        valid &= sentence[around] == sentence[places][:, None]
        some = valid.any(axis=1)
        valid, around, targets = valid[some], around[some], words[places[some]]
        if not len(targets):
            return
        share = (valid / valid.sum(axis=1, keepdims=True)).astype(np.float32)
        context = words[around]
        h = np.einsum("bc,bcd->bd", share, self.input[context])
        scores = h @ self.output.T
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= -scores.sum(axis=1, keepdims=True)
        scores[np.arange(len(targets)), targets] += 1
        gradient = scores @ self.output
        self.output += np.float32(rate) * (scores.T @ h)
        step = np.float32(rate) * share[:, :, None] * gradient[:, None, :]
        np.add.at(self.input, context[valid], step[valid])
