"""Count the distinct words of a corpus in bounded memory.

Each block has a word table of its own. The tables are merged in corpus order, so that words are in
the order of their first appearance, whatever the number of threads. If
memory is too small for all words, the rarest are dropped, by the rule of lossy counting (Manku and
Motwani 2002): each word has a bound of the count that it lost while it was not in the table.
"""

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.files.space import memory_limit, require_memory
from dcme_w2v.numeric.arrays import I64, U32

# Shares of memory: above the first, words are dropped if the counted words take the second.
FULL_SHARE, HELD_SHARE = 1 / 2, 1 / 8
SELECTION_BYTES = 28  # per distinct word: its count, lost count, ID and position


class DistinctWords:
    """The distinct words of all blocks so far.

    Parameters
    ----------
    errors : int
        Index of ``encoding_errors`` among its choices.
    table : core.Table
        Words that are never dropped, with counts of zero.
    may_drop : bool
        Whether words may be dropped.
    only_known : bool
        Whether only the words of `table` matter, so that all others may be dropped.

    Attributes
    ----------
    table : core.Table
        The words in the order of their first appearance, known words first. With `only_known`, the
        IDs of other words do not last.
    below : int
        Words that occur more often than this were not dropped.
    replaced, skipped : int
        Tokens that are not UTF-8, replaced by U+FFFD or skipped.
    most_bytes : int
        Largest memory of the tables.
    dropped : int
        Number of words that were dropped; a word may have been dropped more than once.
    """

    def __init__(self, errors: int, table: core.Table, *, may_drop: bool, only_known: bool) -> None:
        self.table, self.known = table, len(table)
        self.replaced = self.skipped = self.most_bytes = self.dropped = self.below = 0
        self._errors, self._may_drop, self._only_known = errors, may_drop, only_known
        self._lost = np.zeros(
            self.known, dtype=np.int64
        )  # upper bounds by ID; `below` for later words
        self._most = self._blocks = self._full = 0

    def __len__(self) -> int:
        """Return one more than the highest ID that any word has had."""
        return max(self._most, len(self.table))

    def merge(self, table: core.Table) -> U32:
        """Add the words of a block; return each word's ID, or `core.NONE` if it is skipped."""
        self._require(table)
        ids = np.empty(len(table), dtype=np.uint32)
        replaced, skipped = self.table.merge(table, 0, len(table), self._errors, ids)
        self.replaced += replaced
        self.skipped += skipped
        self._blocks += 1
        return ids

    def _require(self, table: core.Table) -> None:
        """Drop words if memory is too small for a block's words, or raise if none may be dropped.

        Never raises for the first block.
        """
        limit, block = memory_limit() or np.inf, table.bytes(0)
        needed, held = block + self.table.bytes(len(table)), self.table.bytes(0)
        full = needed + SELECTION_BYTES * len(self.table) > FULL_SHARE * limit
        may_drop = self._may_drop and len(self.table) > self.known
        if may_drop and full and held > HELD_SHARE * limit:
            self.drop()
            needed = block + self.table.bytes(len(table))
        self.most_bytes = max(self.most_bytes, needed)
        if needed > limit and self._blocks:
            require_memory(
                needed,
                f"counting more than {len(self.table):,} distinct words",
                "count parts of the corpus with dcme-w2v vocab, and merge them",
            )

    def _highest(self) -> I64:
        """Return an upper bound of each word's count."""
        new = np.full(len(self.table) - len(self._lost), self.below, dtype=np.int64)
        return self.table.counts() + np.concatenate([self._lost, new])

    def drop(self) -> None:
        """Drop the rarer half of the words, or, if only known words matter, all others."""
        self._most = len(self)
        self._full = count = len(self.table)
        if self._only_known:
            kept = np.arange(self.known)
        else:
            highest = self._highest()
            rest = highest[self.known :]
            self.below = int(np.partition(rest, len(rest) // 2)[len(rest) // 2])
            kept = np.flatnonzero((highest > self.below) | (np.arange(count) < self.known))
            self._lost = (highest - self.table.counts())[kept]
        self.dropped += count - len(kept)
        self.table = _of(self.table, kept, self.table.counts()[kept])
        core.release_freed()

    def candidates(self, least: int) -> core.Table:
        """Return a table, with zero counts, of the known words and those that may occur so often.

        It has at most half as many words as memory was too small for.
        """
        often = self._highest() >= max(least, self.below + 1)
        if 2 * np.count_nonzero(often[self.known :]) > self._full:
            self.drop()
            often = self._highest() >= max(least, self.below + 1)
        kept = np.flatnonzero(often | (np.arange(len(often)) < self.known))
        return _of(self.table, kept, np.zeros(len(kept), dtype=np.int64))


def _of(table: core.Table, ids: I64, counts: I64) -> core.Table:
    found = core.Table()
    if len(ids):
        found.add(*table.words(ids), counts)
    return found
