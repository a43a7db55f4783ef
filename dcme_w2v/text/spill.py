"""Words that are counted in parts by a hash: on disk, or on several workers.

If memory is too small for all distinct words of a corpus, they are counted on disk. Each time
memory is full, the words that have been counted are written, divided into parts by a hash. In the
end, the parts are counted one after another, and only the words that occur often enough are kept.
Ids of words continue from one table to the next, so that the lowest id of a word is the place where
the word appears first: the result is the same as with enough memory.
"""

import weakref
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.errors import CorpusError
from dcme_w2v.files.space import require_memory
from dcme_w2v.numeric.arrays import I64, U8, U32, Array

from .cache import ID_BYTES, IdCache

PARTS = 64
STEP = 1 << 18  # words that are hashed at a time
Run = tuple[U8, I64, I64, Array]  # words as `Words` has them, counts, ids in ascending order


def divided(table: core.Table, parts: int = PARTS) -> Iterator[Run]:
    """Yield the words of each part; a word is in the part of this number in all tables."""
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
    """Count the words of one part again.

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
        For each of them, the id in the table.
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
    """Return the lowest id of each word of a table that was joined."""
    return np.asarray(ids[np.unique(index, return_index=True)[1]])


def ordered(table: core.Table, firsts: Sequence[Array]) -> tuple[core.Table, I64]:
    """Return a table in the order of the words' first ids, and this order."""
    order, total = np.argsort(np.concatenate(firsts)), core.Table()
    if len(order):
        total.add(*table.words(order), table.counts()[order])
    return total, order


class SpilledWords:
    """Tables of counted words in an unnamed temporary file.

    Attributes
    ----------
    words : int
        Words that have been written, the id of the next one; repeated words count each time.
    file : IdCache
    """

    def __init__(self) -> None:
        self.file = IdCache("the file of counted words")
        weakref.finalize(self, self.file.close)  # also after an error
        self._runs: list[list[tuple[int, int, int]]] = [[] for _ in range(PARTS)]
        self.words = 0

    def add(self, table: core.Table) -> None:
        """Write the words of a table.

        Raises
        ------
        CorpusError
            There are more words than ids.
        """
        if self.words + len(table) >= core.NONE:
            raise CorpusError(f"more than {self.words:,} words are on disk: split the corpus")
        for runs, (text, offsets, counts, ids) in zip(self._runs, divided(table), strict=True):
            runs.append((self.file.length, len(ids), len(text)))
            text = np.append(text, np.zeros(-len(text) % ID_BYTES, dtype=np.uint8))
            numbers = (ids + self.words).astype(np.uint32)
            pieces = counts.view(np.uint32), offsets.view(np.uint32), numbers
            row = np.concatenate([*pieces, text.view(np.uint32)])
            self.file.write(self.file.length, row)
        self.words += len(table)

    def _read(self, place: int, words: int, size: int) -> Run:
        row = self.file.read(place, 5 * words + 2 - -size // ID_BYTES)
        counts, offsets, ids, text = np.split(row, np.cumsum([2 * words, 2 * words + 2, words]))
        return text.view(np.uint8), offsets.view(np.int64), counts.view(np.int64), ids

    def join(
        self, least: int, given: int, held_out: I64 | None
    ) -> tuple[core.Table, U32, I64 | None, int]:
        """Return a table of the words that occur often enough, in the order of first appearance.

        Parameters
        ----------
        least : int
            Lowest count of a word that is kept.
        given : int
            The words of lower ids are kept in any case.
        held_out : ndarray of int64, optional
            For each id, how often the word occurs in held-out lines.

        Returns
        -------
        table : core.Table
        numbers : ndarray of uint32, shape (words + 1,)
            For each id, the id in the table or `core.NONE`.
        held_out : ndarray of int64 or None
            For each word of the table, how often it occurs in held-out lines.
        dropped : int
            Distinct words that are not in the table and occur in lines that are not held out.
        """
        numbers = np.full(self.words + 1, core.NONE, dtype=np.uint32)
        found, dropped = core.Table(), 0
        firsts, held = [np.zeros(0, dtype=np.uint32)], [np.zeros(0, dtype=np.int64)]
        for runs in self._runs:
            whole, ids, index = joined(self._read(*run) for run in runs)
            counts, first = whole.counts(), lowest(ids, index)
            apart = np.zeros(len(whole), dtype=np.int64)
            if held_out is not None:
                np.add.at(apart, index, held_out[ids])
            is_kept = (counts >= least) | (first < given)
            kept = np.flatnonzero(is_kept)
            dropped += int(np.count_nonzero((counts > apart) & ~is_kept))
            place = np.full(len(whole), core.NONE, dtype=np.uint32)
            place[kept] = np.arange(len(found), len(found) + len(kept))
            numbers[ids] = place[index]
            if len(kept):
                found.add(*whole.words(kept), counts[kept])
            firsts.append(first[kept])
            held.append(apart[kept])
            require_memory(
                numbers.nbytes + 2 * found.bytes(0),
                f"a vocabulary of more than {len(found):,} words",
                "raise --min-count",
            )
        total, order = ordered(found, firsts)
        place = np.full(len(order) + 1, core.NONE, dtype=np.uint32)
        place[order] = np.arange(len(order))
        rest = None if held_out is None else np.concatenate(held)[order]
        return total, place[np.minimum(numbers, len(order))], rest, dropped
