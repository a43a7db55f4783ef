"""Classes of neighbors: a target is predicted from the words just left and just right of it, too.

Words whose right neighbors have similar distributions form a class of left neighbors: k-means in
Kullback-Leibler divergence on counted pairs, as the dual clusters of the DCME paper (theorem 4.1),
but of observed distributions instead of the model's. Classes of right neighbors are found by the
words to their left. The last class of a side stands for no neighbor, at an end of a sentence.

The score of a word j gets, with z and y the classes of the two neighbors,

    WEIGHT (A_jz + B_jy),    A_jz = log( (n_jz + m pi_z) / ((n_j + m) pi_z) )

where n_jz counts the occurrences of j beside z, pi_z is the share of z and m = PSEUDO_COUNTS: the
log odds of j beside z against j anywhere. While training on a target, the counts
exclude the target itself: otherwise a rare word would predict itself. Odds are stored as int8, see
UNITS. Text, counts and options determine the classes, so that a resumed run has the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcme_w2v.numeric.arrays import F32, F64, I8, I64, U8, U32
from dcme_w2v.numeric.core import in_cache_lines
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.text.cache import NUMBER

WEIGHT = 0.5  # of the log odds in a score; tuned on held-out text, see docs/results/likelihood.md
UNITS = 16  # of an odds table, to a nat
STEP = WEIGHT / UNITS  # score of a unit
PSEUDO_COUNTS = 60.0
SMOOTHING = 2000.0  # pairs of the unigram distribution added to the counts of a class
ROUNDS = 4  # of k-means; eight are no better
MAX_PAIRS = 1 << 23  # that k-means looks at, evenly spaced in the text; odds are of all
TARGETS = 1 << 16  # most frequent words that k-means looks at
CHUNK = 1 << 18  # tokens


@dataclass(frozen=True)
class NeighborClasses:
    """Classes of left and right neighbors, and the log odds of every word beside them.

    Attributes
    ----------
    of : ndarray of uint8, shape (2, words)
        Class of each word as a left neighbor, and as a right one.
    odds : ndarray of int8, shape (words, 2 K)
        Log odds of each word by the class of its left and of its right neighbor, in units of
        1 / `UNITS`.
    own : ndarray of int8, shape (words, 2 K)
        The same without one occurrence, of a target in the text itself.
    """

    of: U8
    odds: I8
    own: I8

    @property
    def count(self) -> int:
        """K classes a side, with the class of no neighbor."""
        return int(self.odds.shape[1]) // 2

    def scores(self, ids: U32) -> ClassScores:
        """Return the addition to the scores for each token of a text that has a neighbor."""
        near = np.stack([neighbor_numbers(ids, side) for side in range(2)], axis=1)
        return self.scores_beside(near[(near >= 0).any(axis=1)])

    def scores_beside(self, near: I64) -> ClassScores:
        """Return the same for pairs of left and right neighbors, -1 for none: shape (m, 2)."""
        none = self.count - 1
        classes = [np.append(of, none)[near[:, side]] for side, of in enumerate(self.of)]
        columns = np.stack(classes, axis=1) + np.array([0, self.count])
        return ClassScores(columns, np.ascontiguousarray(self.odds.T))


@dataclass(frozen=True)
class ClassScores:
    """The addition of classes of neighbors to the scores of all words in some contexts.

    Attributes
    ----------
    columns : ndarray of int64, shape (m, 2)
        Rows of `odds` of a context's left and right neighbor.
    odds : ndarray of int8, shape (2 K, words)
    """

    columns: I64
    odds: I8

    def block(self, contexts: slice, words: slice) -> F32:
        """Return the scores of some words in some contexts."""
        left, right = (self.odds[one, words] for one in self.columns[contexts].T)
        return np.multiply(np.add(left, right, dtype=np.int16), STEP, dtype=np.float32)

    def of(self, contexts: slice, targets: I64) -> F64:
        """Return the score of one word in each of some contexts."""
        left, right = (self.odds[one, targets] for one in self.columns[contexts].T)
        return np.asarray(np.add(left, right, dtype=np.int16) * STEP)

    def means(self, shares: F32) -> F64:
        """Return the mean score under distributions (k, words), for each context: (m, k)."""
        found = np.stack([shares @ row for row in self.odds]).astype(np.float64) * STEP
        return np.asarray(found[self.columns].sum(axis=1))


def neighbor_classes(
    ids: U32, words: int, classes: int, threads: int | None = 1
) -> NeighborClasses:
    """Count and cluster the neighbors in an encoded text.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Word numbers by descending frequency; bit 31 marks the last word of a sentence.
    words : int
        Size of the vocabulary.
    classes : int
        Classes of words on each side, at most; one more is for no neighbor.
    threads : int, optional
        The result does not depend on it.
    """
    classes = min(classes, words)

    def of_side(side: int) -> tuple[U8, I8, I8]:
        of = _clustered(_pair_counts(ids, words, side), classes)
        return of, *_log_odds(_counts_beside(ids, np.append(of, classes), side, words))

    of, odds, own = zip(*ordered_map(of_side, range(2), threads), strict=True)
    tables = (in_cache_lines(np.hstack(both)) for both in (odds, own))
    return NeighborClasses(np.stack(of), *tables)


def neighbor_numbers(ids: U32, side: int) -> I64:
    """Return the word beside each token, -1 for none; `side` is 0 for the left one, 1 the right."""
    words = (ids & NUMBER).astype(np.int64)
    here, beside = (slice(1, None), slice(-1)) if side == 0 else (slice(-1), slice(1, None))
    near = np.full(len(ids), -1)
    near[here] = words[beside]
    near[here][ids[:-1] > NUMBER] = -1  # a sentence ends between the two
    return near


def _pairs(ids: U32, side: int, step: int = 1) -> Iterator[tuple[I64, I64]]:
    """Yield (neighbor or -1, target) of the tokens of one chunk in `step`."""
    for start in range(0, len(ids), CHUNK * step):
        first, end = max(start - 1, 0), min(start + CHUNK, len(ids))
        text = ids[first : end + 1]
        inner = slice(start - first, end - first)
        yield neighbor_numbers(text, side)[inner], (text[inner] & NUMBER).astype(np.int64)


def _pair_counts(ids: U32, words: int, side: int) -> Any:
    """Return a sparse matrix (words, targets) of how often a target is beside a neighbor."""
    from scipy.sparse import csr_array  # 0.1 s that other runs need not wait for

    targets = min(words, TARGETS)
    kept = []
    for near, target in _pairs(ids, side, -(-len(ids) // MAX_PAIRS)):
        some = (near >= 0) & (target < targets)
        kept.append(near[some] * targets + target[some])
    keys = np.concatenate(kept)
    keys.sort()
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(first, append=len(keys)).astype(np.float32)
    rows, columns = np.divmod(keys[first], targets)
    starts = np.searchsorted(rows, np.arange(words + 1))
    return csr_array((counts, columns, starts), shape=(words, targets))


def _clustered(counts: Any, classes: int) -> U8:
    """Return the class of each neighbor by k-means, from one of each of the most frequent words.

    argmin_k KL(P(. | a) || alpha_k) is argmax_k sum_j n(a, j) log alpha_k(j).
    """
    words, targets = counts.shape
    rows = np.repeat(np.arange(words), np.diff(counts.indptr))
    unigram = np.asarray(counts.sum(axis=0)) + 1.0
    unigram /= unigram.sum()
    nearest = np.where(np.arange(words) < classes, np.arange(words), classes)  # classes: none yet
    for _ in range(ROUNDS):
        keys = counts.indices * np.int64(classes + 1) + nearest[rows]
        sums = np.bincount(keys, counts.data, minlength=targets * (classes + 1))
        centers = sums.reshape(targets, -1)[:, :classes] + SMOOTHING * unigram[:, None]
        logs = np.log(centers / centers.sum(axis=0)).astype(np.float32)
        nearest = (counts @ logs).argmax(axis=1)
        empty = np.flatnonzero(np.bincount(nearest, minlength=classes) == 0)
        nearest[empty] = empty  # the word that the class began with
    return nearest.astype(np.uint8)


def _counts_beside(ids: U32, of: U8, side: int, words: int) -> I64:
    """Return n_jz, shape (words, K); the last element of `of` is the class of no neighbor."""
    count = int(of[-1]) + 1
    found = np.zeros(words * count, dtype=np.int64)
    for near, target in _pairs(ids, side):
        np.add.at(found, target * count + of[near], 1)
    return found.reshape(words, count)


def _log_odds(counts: I64) -> tuple[I8, I8]:
    """Return the odds, and those without one occurrence."""
    share = np.maximum(counts.sum(axis=0), 1) / max(counts.sum(), 1)

    def without(occurrences: int) -> I8:
        of_word = np.maximum(counts.sum(axis=1) - occurrences, 0) + PSEUDO_COUNTS
        here = np.maximum(counts - occurrences, 0) + PSEUDO_COUNTS * share
        odds = np.log(here / (of_word[:, None] * share))
        return np.asarray(np.rint(np.clip(odds * UNITS, -127, 127)), dtype=np.int8)

    return without(0), without(1)
