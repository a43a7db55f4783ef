"""An interpolated, modified Kneser-Ney n-gram model (Chen & Goodman 1999) in numpy, as a yardstick.

N-grams are numbered level by level: the n-gram that ends at a token is the pair of the (n-1)-gram
that ends just before it, and the token. Only words of the vocabulary are predicted, as by the
models it is compared with: ends of sentences are not. Used by bench_ngrams.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.text.cache import LAST, NUMBER

Ints = NDArray[np.int64]


def padded(ids: NDArray[np.uint32], words: int, order: int) -> Ints:
    """Return the words, with order - 1 marks (of number `words`) before each sentence."""
    last = (ids & LAST) != 0
    sentence = np.concatenate([[0], np.cumsum(last)[:-1]]).astype(np.int64)
    places = np.arange(len(ids)) + (sentence + 1) * (order - 1)
    text = np.full(places[-1] + 1, words)
    text[places] = (ids & NUMBER).astype(np.int64)
    return text


class Level:
    """The n-grams of one length.

    `keys` are sorted; `weights` are counts, of shorter n-grams than the longest the numbers of
    different words before them, except at the start of a sentence, where there are none.
    """

    def __init__(self, keys: Ints, numbers: Ints, contexts: Ints, weights: Ints) -> None:
        self.keys, self.weights = keys, weights
        found = [int((weights == count).sum()) for count in (1, 2, 3, 4)]
        y = found[0] / max(found[0] + 2 * found[1], 1)
        ratios = [found[i + 1] / max(found[i], 1) for i in range(3)]
        self.discounts = np.array([0, *((i + 1) - (i + 2) * y * ratios[i] for i in range(3))])
        self.discounts = np.maximum(self.discounts, 0)
        # of each context: all weights, and what is taken off them
        self.totals = np.bincount(contexts, weights)
        self.taken = np.bincount(contexts, self.discounts[np.minimum(weights, 3)])


class KneserNey:
    """A model of words given the `order` - 1 words before them in their sentence."""

    def __init__(self, ids: NDArray[np.uint32], words: int, order: int = 5) -> None:
        self.words, self.order = words, order
        self.levels: list[Level] = []
        text = padded(ids, words, order)
        real = text < words
        numbers, rows = np.zeros(len(text), dtype=np.int64), []
        for _ in range(order):
            keys = np.concatenate([[0], numbers[:-1]]) * (words + 1) + text
            distinct, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
            rows.append((distinct, first, numbers))
        for n, (distinct, first, numbers) in enumerate(rows, 1):
            weights = np.bincount(numbers[real], minlength=len(distinct))
            if n < order:
                _, longer, _ = rows[n]
                beside = np.bincount(numbers[longer], minlength=len(distinct))
                starts = text[np.maximum(first - n + 1, 0)] == words
                weights = np.where(starts | ~real[first], weights, beside)
            contexts = np.zeros(len(distinct), dtype=np.int64)
            if n > 1:
                contexts = distinct // (words + 1)
            weights[~real[first]] = 0
            self.levels.append(Level(distinct, numbers, contexts, weights))

    def probabilities(self, ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the probability of each token of an encoded text."""
        text = padded(ids, self.words, self.order)
        found = np.full(len(text), 1 / self.words)
        before = np.zeros(len(text), dtype=np.int64)  # number of the context; -1: never seen
        for level in self.levels:
            keys = before * (self.words + 1) + text
            rows = np.minimum(np.searchsorted(level.keys, keys), len(level.keys) - 1)
            seen = (before >= 0) & (level.keys[rows] == keys)
            context = np.clip(before, 0, len(level.totals) - 1)
            known = (before >= 0) & (before < len(level.totals)) & (level.totals[context] > 0)
            weight = np.where(seen, level.weights[rows], 0)
            rest = weight - level.discounts[np.minimum(weight, 3)]
            total = np.where(known, level.totals[context], 1)
            mixed = (rest + level.taken[context] * found) / total
            found = np.where(known, mixed, found)
            before = np.concatenate([[0], np.where(seen, rows, -1)[:-1]])
        return np.asarray(found[text < self.words])
