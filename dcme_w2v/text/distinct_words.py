"""The distinct words of a corpus, counted by several workers in limited memory.

Each worker has a hash table, whose words have provisional ids. The new words of a block are
contiguous in the worker's table, so that merging block by block orders words by first appearance:
the result does not depend on the number of threads. After so many blocks, the tables are merged
and cleared: rare words are in memory once, and the tables that each token is looked up in remain
small. If memory is too small for all words, they are written to disk.
"""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.files.space import free_bytes, memory_limit, require_memory
from dcme_w2v.numeric.arrays import I64, U32
from dcme_w2v.training.progress import Reporter

from .cache import ID_BYTES, IdCache
from .reindex import Segment
from .select_vocabulary import Given, starting_table
from .spill import SpilledWords

# Beyond the first share of memory, counted words are written to disk if they take the second.
SPILL_SHARE, MIN_SPILL_SHARE = 1 / 2, 1 / 8
SELECTION_BYTES = 20  # of a distinct word: its count, its id, and in which order


class DistinctWords:
    """The words of all blocks that have been merged, and the tables of the workers.

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
    cache : IdCache, optional
        The ids of the tokens, for which `maps` are kept; in its folder, words are written if
        memory is too small (default: in the temporary folder).

    Attributes
    ----------
    table : core.Table
        All words in the order of their first appearance, given words first.
    maps : dict of int to ndarray of uint32
        The id in `table`, or `core.NONE`, of each word in the table of a worker.
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
        cache: IdCache | None,
    ) -> None:
        self.table = starting_table(given)
        self.maps: dict[int, U32] = {}
        self.replaced = self.skipped = self.most_bytes = self.dropped = 0
        self._given, self._errors, self._may_spill = len(self.table), errors, may_spill
        self._reporter, self._cache = reporter, cache
        self._tables: dict[int, core.Table] = {}  # of the workers
        self._cleared: list[core.Table] = []
        self._lock = threading.Lock()
        self._rounds = 0
        self._spilled: SpilledWords | None = None

    def table_of(self, number: int) -> core.Table:
        """Return the table of this number for the one worker that uses it."""
        with self._lock:
            if number not in self._tables:
                self._tables[number] = self._cleared.pop() if self._cleared else core.Table()
            return self._tables[number]

    def merge(self, parts: Sequence[Segment]) -> None:
        """Merge the tables of a round, whose blocks are in the order of the corpus."""
        tables = {part.table: self._tables[part.table] for part in parts}
        core.release_freed()  # free the blocks, which the sum below leaves out
        for number in sorted(tables):
            self.maps[number] = np.full(len(tables[number]), core.NONE, dtype=np.uint32)
        others = sum(ids.nbytes for ids in self.maps.values())
        others += sum(table.bytes(0) for table in tables.values())
        limit = memory_limit() or np.inf
        for part in parts:
            self._require(others, part.last - part.first, limit)
            table, ids = tables[part.table], self.maps[part.table]
            replaced, skipped = self.table.merge(table, part.first, part.last, self._errors, ids)
            if self._spilled:  # whose ids are lower
                new = ids[part.first : part.last]
                new[new != core.NONE] += np.uint32(self._spilled.words)
            self.replaced += replaced
            self.skipped += skipped
        for number in sorted(tables):
            table = self._tables.pop(number)
            table.clear()
            with self._lock:
                self._cleared.append(table)
        self._rounds += 1
        if self._cache is None:  # there are no ids to renumber
            self.maps.clear()

    def _require(self, others: int, words: int, limit: float) -> None:
        """Write the counted words to disk, or raise, if memory is too small for so many more.

        `others` is the memory of all but the table of all words. The first round never raises.
        """
        needed, held = others + self.table.bytes(words), self.table.bytes(0)
        full = needed + SELECTION_BYTES * len(self.table) > SPILL_SHARE * limit
        if self._may_spill and full and held > MIN_SPILL_SHARE * limit:
            self._spill()
            needed = others + self.table.bytes(words)
        self.most_bytes = max(self.most_bytes, needed)
        if needed > limit and self._rounds:
            found = self._spilled.words if self._spilled else len(self.table)
            require_memory(
                needed,
                f"counting more than {found:,} distinct words",
                "count parts of the corpus with dcme-w2v vocab, and merge them",
            )

    def _spill(self) -> None:
        """Write the counted words to disk, and continue with an empty table."""
        if self._spilled is None:
            self._spilled = SpilledWords()
        self._spilled.add(self.table)
        if self._spilled.words == len(self.table):
            folder = self._spilled.folder
            written, free = self._spilled.length * ID_BYTES, free_bytes(Path(folder))
            self._reporter.message(
                f"counting: memory is too small for more than {len(self.table):,} distinct words, "
                f"which go to disk: {written / 1e6:,.0f} MB so far in {folder}, "
                f"{free / 1e6:,.0f} MB free"
            )
        self.table = core.Table()
        core.release_freed()

    def finish(self) -> None:
        """Free the tables of the workers after the last round."""
        if self._spilled:
            self._spill()
        self._cleared.clear()

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
        ndarray of int64, shape (len(self),), or None
            These counts, by the new ids.
        """
        if self._spilled is None:
            return held_out
        spilled, self._spilled = self._spilled, None
        self.table, numbers, held_out, self.dropped = spilled.join(least, self._given, held_out)
        for ids in self.maps.values():
            ids[:] = numbers[np.minimum(ids, len(numbers) - 1)]  # the last is `core.NONE`
        return held_out
