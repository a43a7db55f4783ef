"""The distinct words of a corpus, counted in limited memory.

The words of each block come in a table of its own, in the order of the corpus, so that words are
in the order of their first appearance: the result does not depend on the number of threads. If
memory is too small for all words, they are written to disk.
"""

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.files.space import memory_limit, require_memory
from dcme_w2v.numeric.arrays import I64, U32
from dcme_w2v.training.progress import Reporter

from .select_vocabulary import Given, starting_table
from .spill import SpilledWords

# Beyond the first share of memory, counted words are written to disk if they take the second.
SPILL_SHARE, MIN_SPILL_SHARE = 1 / 2, 1 / 8
SELECTION_BYTES = 20  # of a distinct word: its count, its id, and in which order


class DistinctWords:
    """The words of all blocks so far.

    Parameters
    ----------
    errors : int
        Index of ``encoding_errors`` among its choices.
    given : Vocabulary or InitialWords, optional
        The first words.
    reporter : Reporter
        Reports when words are written to disk.
    may_spill : bool
        Whether words may be written to disk.

    Attributes
    ----------
    table : core.Table
        All words in the order of their first appearance, given words first.
    numbers : ndarray of uint32, or None
        If words have been on disk: for each id so far the id in `table`, or `core.NONE`.
    replaced, skipped : int
        Tokens that are not UTF-8, replaced by U+FFFD or skipped.
    most_bytes : int
        Memory of the tables when it was largest.
    dropped : int
        Distinct words that were read back from disk and dropped as too rare.
    """

    def __init__(
        self,
        errors: int,
        given: Given,
        reporter: Reporter,
        *,
        may_spill: bool,
    ) -> None:
        self.table = starting_table(given)
        self.numbers: U32 | None = None
        self.replaced = self.skipped = self.most_bytes = self.dropped = self._blocks = 0
        self._given, self._errors, self._may_spill = len(self.table), errors, may_spill
        self._reporter = reporter
        self._spilled: SpilledWords | None = None

    def merge(self, table: core.Table) -> U32:
        """Add the words of a block; return the id of each, or `core.NONE` if it is skipped."""
        self._require(table)
        ids = np.empty(len(table), dtype=np.uint32)
        replaced, skipped = self.table.merge(table, 0, len(table), self._errors, ids)
        if self._spilled:  # whose ids are lower
            ids[ids != core.NONE] += np.uint32(self._spilled.words)
        self.replaced += replaced
        self.skipped += skipped
        self._blocks += 1
        return ids

    def _require(self, table: core.Table) -> None:
        """Write the counted words to disk, or raise, if memory is too small for a block's words.

        The first block never raises.
        """
        limit, block = memory_limit() or np.inf, table.bytes(0)
        needed, held = block + self.table.bytes(len(table)), self.table.bytes(0)
        full = needed + SELECTION_BYTES * len(self.table) > SPILL_SHARE * limit
        if self._may_spill and full and held > MIN_SPILL_SHARE * limit:
            self._spill()
            needed = block + self.table.bytes(len(table))
        self.most_bytes = max(self.most_bytes, needed)
        if needed > limit and self._blocks:
            require_memory(
                needed,
                f"counting more than {len(self):,} distinct words",
                "count parts of the corpus with dcme-w2v vocab, and merge them",
            )

    def _spill(self) -> None:
        """Write the counted words to disk, and continue with an empty table."""
        if self._spilled is None:
            self._spilled = SpilledWords()
        self._spilled.add(self.table)
        if self._spilled.words == len(self.table):
            self._reporter.message(
                f"counting: memory is too small for more than {len(self.table):,} distinct words, "
                f"which go to disk, in {self._spilled.file.folder}"
            )
        self.table = core.Table()
        core.release_freed()

    def finish(self) -> None:
        """Write the last words, too, if others have been written."""
        if self._spilled:
            self._spill()

    def __len__(self) -> int:
        """Return one more than the highest id of a word."""
        return self._spilled.words if self._spilled else len(self.table)

    def join_spilled(self, least: int, held_out: I64 | None) -> I64 | None:
        """Read back from disk the words that occur so often, and given ones.

        Parameters
        ----------
        least : int
            Lowest count.
        held_out : ndarray of int64, shape (len(self),), or None
            Counts of the words in held-out lines.

        Returns
        -------
        ndarray of int64, shape (len(self.table),), or None
            These counts, by the new ids.
        """
        if self._spilled is not None:
            found = self._spilled.join(least, self._given, held_out)
            self.table, self.numbers, held_out, self.dropped = found
            self._spilled = None
        return held_out
