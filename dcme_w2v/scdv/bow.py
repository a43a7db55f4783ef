"""Bag of words: documents as sparse rows of counts."""

import numpy as np
from scipy import sparse

from dcme_w2v.numeric.arrays import F32
from dcme_w2v.text.token_ids import Batch


def count_rows(batch: Batch, words: int) -> sparse.csr_matrix:
    """Return the count of each of `words` words in each document, shape (documents, words)."""
    known = batch.ids < words
    lengths = np.add.reduceat(np.append(known, False), batch.starts[:-1], dtype=np.int64)
    lengths[np.diff(batch.starts) == 0] = 0
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    ids = batch.ids[known].astype(np.int32)
    ones = np.ones(len(ids), dtype=np.float32)
    rows = sparse.csr_matrix((ones, ids, starts), shape=(len(batch), words))
    rows.sum_duplicates()
    return rows


def bag_rows(batch: Batch, weights: F32, log_counts: bool) -> sparse.csr_matrix:
    """Return rows of term frequency x weight; the frequency is the count n, or 1 + ln n."""
    rows = count_rows(batch, len(weights))
    if log_counts:
        rows.data = 1 + np.log(rows.data)
    rows.data *= weights[rows.indices]
    return rows


def unit_rows(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Scale rows to unit length in place; rows of zeros are unchanged."""
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    lengths[lengths == 0] = 1
    rows.data /= np.repeat(lengths, np.diff(rows.indptr)).astype(np.float32)
    return rows
