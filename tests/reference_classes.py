"""Classes of neighbors from their definition, in loops and dense tables.

What `dcme_w2v.words.neighbor_classes` is compared with, and what `reference` trains with.
"""

import functools

import numpy as np
from scipy.special import rel_entr

LAST = 1 << 31
ROUNDS, SMOOTHING, PSEUDO_COUNTS, WEIGHT, UNITS = 4, 2000, 60, 0.5, 16


def pairs_of(ids, side):
    """(neighbor or None, target) of each token."""
    for t, number in enumerate(ids.tolist()):
        if side == 0:
            beside = ids[t - 1] if t > 0 and not ids[t - 1] & LAST else None
        else:
            beside = ids[t + 1] if t + 1 < len(ids) and not number & LAST else None
        yield None if beside is None else int(beside) & (LAST - 1), number & (LAST - 1)


def divergences(counts, centers):
    """KL(P(. | a) || alpha_k), shape (words, classes); 0 for a word that is nobody's neighbor."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return rel_entr(shares[:, None, :], centers[None, :, :]).sum(axis=2)


def clustered(ids, words, classes, side):
    counts = np.zeros((words, words))
    for near, target in pairs_of(ids, side):
        if near is not None:
            counts[near, target] += 1
    unigram = (counts.sum(axis=0) + 1) / (counts.sum(axis=0) + 1).sum()
    members = {k: [k] for k in range(classes)}
    for _ in range(ROUNDS):
        sums = np.array([counts[members[k]].sum(axis=0) for k in range(classes)])
        sums += SMOOTHING * unigram
        nearest = divergences(counts, sums / sums.sum(axis=1, keepdims=True)).argmin(axis=1)
        for k in sorted(set(range(classes)) - set(nearest.tolist())):
            nearest[k] = k
        members = {k: np.flatnonzero(nearest == k) for k in range(classes)}
    return nearest


class ReferenceClasses:
    """`of` (2, words), and log odds as integers; see the head of the tested module."""

    def __init__(self, ids, words, classes, of=None):
        self.none = classes
        self.of = [clustered(ids, words, classes, side) for side in (0, 1)] if of is None else of
        self.counts = np.zeros((2, words, classes + 1))
        for side in (0, 1):
            for near, target in pairs_of(ids, side):
                self.counts[side, target, self.class_of(side, near)] += 1

    def class_of(self, side, word):
        return self.none if word is None else self.of[side][word]

    @functools.cache  # noqa: B019
    def odds(self, side, word, z, less=0):
        counts = self.counts[side]
        share = max(counts[:, z].sum(), 1) / counts.sum()
        beside, anywhere = (max(n - less, 0) for n in (counts[word, z], counts[word].sum()))
        odds = (beside + PSEUDO_COUNTS * share) / (anywhere + PSEUDO_COUNTS) / share
        return round(float(np.clip(np.log(odds) * UNITS, -127, 127)))

    def scores(self, target, left, right):
        """The terms of the scores of all words between two neighbors."""
        return np.array([
            WEIGHT / UNITS * sum(
                self.odds(side, j, self.class_of(side, near), less=int(j == target))
                for side, near in enumerate((left, right))
            )
            for j in range(self.counts.shape[1])
        ])  # fmt: skip
