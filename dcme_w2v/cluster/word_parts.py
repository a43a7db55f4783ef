"""Merge the word counts of shards part by part; a hash assigns each word to a part."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.numeric.arrays import I64, U8, U32, Array

PARTS = 64
STEP = 1 << 18  # words are hashed in chunks of this size
# Words (text and offsets), the counts of the words, and the words' IDs in ascending order.
Run = tuple[U8, I64, I64, Array]


def divided(table: core.Table, parts: int) -> Iterator[Run]:
    """Divide a word table into parts by hash; a word belongs to the same part in every table."""
    hashes = np.zeros(len(table), dtype=np.uint8)
    for first in range(0, len(table), STEP):
        text, offsets = table.words(np.arange(first, min(first + STEP, len(table))))
        np.add.reduceat(text, offsets[:-1], out=hashes[first : first + STEP], dtype=np.uint8)
    hashes %= parts
    counts = table.counts()
    for part in range(parts):
        ids = np.flatnonzero(hashes == part)
        yield *table.words(ids), counts[ids], ids


def joined(runs: Iterable[Run]) -> tuple[core.Table, Array, U32]:
    """Merge the word counts of several shards for a single part.

    Parameters
    ----------
    runs : iterable of Run
        The ids of each are higher than the ids before.

    Returns
    -------
    table : core.Table
    ids : ndarray, shape (n,)
        The ids of all runs.
    index : ndarray of uint32, shape (n,)
        For each id in `ids`, the id of the same word in the table.
    """
    whole, parts = core.Table(), list[Array]()
    found = [np.zeros(0, dtype=np.uint32)]
    for text, offsets, counts, ids in runs:
        parts.append(ids)
        if len(ids):
            table, index = core.Table(), np.empty(len(ids), dtype=np.uint32)
            table.add(text, offsets, counts)
            whole.merge(table, 0, len(table), 0, index)
            found.append(index)
    return whole, np.concatenate(parts), np.concatenate(found)


def lowest(ids: Array, index: U32) -> Array:
    """Return the ID of the first occurrence of each word in a merged table."""
    return np.asarray(ids[np.unique(index, return_index=True)[1]])


def ordered(table: core.Table, firsts: Sequence[Array]) -> tuple[core.Table, I64]:
    """Sort a word table by first appearance; return the sorted table and the sort order."""
    order, total = np.argsort(np.concatenate(firsts)), core.Table()
    if len(order):
        total.add(*table.words(order), table.counts()[order])
    return total, order
