"""Find near-duplicates: pairs of documents that share most of their character n-grams.

The similarity of two documents is the total weight of the n-grams in both documents, divided by the
total weight of the n-grams in either document (Jaccard 1912), where the weight of an n-gram is its
idf. Only documents that share some of their rarest words are compared.
"""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.arrays import F64, I64
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.numeric.sparse_rows import ones

from .index import Index

# Minimum similarity of duplicates, chosen on artificially edited texts (docs/decisions/search.md).
THRESHOLD = 0.55
RAREST = 16  # `_rarest` keeps at most this many words of each document
SHARED = 0.25  # minimum fraction of rarest words that two documents must share to be compared
_ROWS, _PAIRS = 1024, 8192  # numbers of document rows and of pairs that are processed at a time


class Duplicate(NamedTuple):
    """Two similar documents, identified by their row indices, and their similarity."""

    row: int
    other: int
    similarity: float


def duplicates(index: Index, threshold: float | None = None) -> list[Duplicate]:
    """Find pairs of documents whose similarity reaches a threshold; pairs are sorted by row."""
    least = THRESHOLD if threshold is None else threshold
    if not isinstance(least, Real) or not 0 < least <= 1:
        raise UsageError(f"threshold={least!r:.40} must be above 0 and at most 1")
    found: list[Duplicate] = []
    rarest = _rarest(index)
    by_word = rarest.T.tocsr()
    sizes = np.diff(rarest.indptr)
    for block in blocks_of_rows(rarest.shape[0], _ROWS):
        shared = (rarest[block] @ by_word).tocoo()
        rows, others = shared.row.astype(np.int64) + block.start, shared.col.astype(np.int64)
        needed = np.maximum(SHARED * np.minimum(sizes[rows], sizes[others]), 1)
        kept = (rows < others) & (shared.data >= needed)
        rows, others = rows[kept], others[kept]
        for some in blocks_of_rows(len(rows), _PAIRS):
            values = similarities(index, rows[some], others[some])
            good = np.flatnonzero(values >= least)
            pairs = zip(rows[some][good], others[some][good], values[good], strict=True)
            found += [Duplicate(int(a), int(b), float(value)) for a, b, value in pairs]
    return sorted(found)


def _rarest(index: Index) -> csr_matrix:
    """Mark the rarest words in each document, among words that also occur in other documents."""
    counts = ones(index.counts)
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    shared = frequency[counts.indices] > 1
    rows, words = rows[shared], counts.indices[shared]
    order = np.lexsort((words, frequency[words], rows))
    rows, words = rows[order], words[order]
    starts = np.searchsorted(rows, np.arange(counts.shape[0] + 1))
    kept = np.arange(len(rows)) - starts[rows] < RAREST
    data = np.ones(int(kept.sum()), dtype=np.float32)
    return csr_matrix((data, (rows[kept], words[kept])), shape=counts.shape)


def similarities(index: Index, rows: I64, others: I64) -> F64:
    """Return the weighted Jaccard similarity between the two documents of each pair."""
    needed, places = np.unique(np.concatenate([rows, others]), return_inverse=True)
    grams = ones(csr_matrix(index.counts[needed] @ index.grams))
    grams.sort_indices()
    weights = grams @ index.gram_idf
    first, second = grams[places[: len(rows)]], grams[places[len(rows) :]]
    both = first.multiply(second) @ index.gram_idf
    either = weights[places[: len(rows)]] + weights[places[len(rows) :]] - both
    return np.asarray(both / np.maximum(either, 1e-9))
