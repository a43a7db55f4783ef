"""Extract word n-grams, and character n-grams within words, from texts."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from dcme_w2v._core.codec import count_parts
from dcme_w2v._core.text import Table, text_of
from dcme_w2v.formats.texts import Text
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, I32, I64
from dcme_w2v.numeric.sparse_rows import CompressedRows
from dcme_w2v.text.cache import LAST
from dcme_w2v.text.token_ids import Batch, Numbering

NO_TEXTS = Batch(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint32))
MAX_WORD = 4096  # longer strings without spaces are probably data, so they are truncated


class NGrams:
    """Word n-grams of documents, whose IDs are higher than all word IDs.

    Parameters
    ----------
    texts : Batch
        The IDs of the words of each document, or of those words that n-grams may contain.
    words : CompressedRows
        The counts of the words, whose IDs are in order of first appearance.
    lengths : range
        The lengths of the n-grams in words, from 2.
    everywhere, lead : int
        N-grams longer than `everywhere` are taken only from the first `lead` words.

    Attributes
    ----------
    counts : list of CompressedRows
        The counts of the n-grams of each length, shape (documents, n-grams).
    """

    def __init__(
        self, texts: Batch, words: CompressedRows, lengths: range, everywhere: int, lead: int
    ) -> None:
        self._flat, size = texts.ids, np.diff(texts.starts)
        document = np.repeat(np.arange(len(texts), dtype=np.int32), size)
        place = np.arange(len(document)) - texts.starts[document]
        self._words = words.shape[1]
        rows = np.repeat(np.arange(words.shape[0], dtype=np.int32), np.diff(words.indptr))
        first_document = np.zeros(self._words, dtype=np.int32)
        # With duplicate indices, the last assignment wins, so assign in reverse document order.
        first_document[words.indices[::-1]] = rows[::-1]
        documents, firsts = [first_document], [np.arange(self._words)]
        sizes = [np.ones(self._words, dtype=np.int64)]
        self.counts: list[CompressedRows] = []
        shorter = self._flat.astype(np.int64)  # ID of the (n-1)-gram that starts at each word
        for n in lengths:
            is_inside = document[: 1 - n] == document[n - 1 :]
            if n > everywhere:
                is_inside &= place[: 1 - n] <= lead - n
            starts = np.flatnonzero(is_inside)
            keys = shorter[starts] * self._words + self._flat[starts + n - 1]
            shorter[starts], first = numbered(keys)
            ends = np.append(0, np.cumsum(np.bincount(document[starts], minlength=len(texts))))
            each = np.arange(len(first) + 1)
            own = ends, shorter[starts].astype(np.uint32), each, each[:-1].astype(np.int32)
            self.counts.append(joined_counts([count_parts(*own, len(first), 0)], len(first)))
            documents.append(document[starts[first]])
            firsts.append(starts[first])
            sizes.append(np.full(len(first), n))
        self._document, self._first = np.concatenate(documents), np.concatenate(firsts)
        self._size = np.concatenate(sizes)

    def up_to(self, longest: int) -> int:
        """Return the number of words and n-grams that have at most `longest` words."""
        return int(np.searchsorted(self._size, longest, side="right"))

    @functools.cached_property
    def order(self) -> I64:
        """The IDs of words and n-grams, sorted by first appearance and length."""
        return np.lexsort((self._first, self._size, self._document))

    def names(self, words: Words, numbers: I64) -> Words:
        """Return the spelling of each n-gram, with its words separated by spaces."""
        size, first = self._size[numbers], self._first[numbers]
        ends = np.cumsum(size)
        ids = self._flat[np.repeat(first - ends + size, size) + np.arange(size.sum())]
        ids[ends - 1] |= np.uint32(LAST)
        lines = text_of(ids, words.text, words.offsets)
        is_end = lines == ord("\n")
        offsets = np.append(0, np.flatnonzero(is_end) + 1) - np.arange(len(numbers) + 1)
        return Words(lines[~is_end], offsets)


class Subwords:
    """The words in a set of texts, stored so that their character n-grams can be counted.

    Parameters
    ----------
    shortest, longest : int
        Range of n-gram lengths in characters; words are enclosed in ``<`` and ``>`` (Bojanowski et
        al. 2017).
    """

    def __init__(self, shortest: int, longest: int) -> None:
        self._lengths = shortest, longest
        self._numbering = Numbering(Words.from_words([]), None)
        self._texts = [NO_TEXTS]

    def add(self, texts: Sequence[Text]) -> None:
        """Add texts in which words are separated by whitespace."""
        self._texts.append(self._numbering.batch([*texts]))

    def distinct(self) -> tuple[Words, CompressedRows]:
        """Return the distinct n-grams in order of first appearance, and their counts per text.

        A leading space distinguishes the names of n-grams from words. Columns are not sorted.
        """
        table = Table()
        counts = self.counts(table, learns=True)
        return Words(*table.words(np.arange(len(table)))), counts

    def counts(self, table: Table, learns: bool = False) -> CompressedRows:
        """Count the n-grams that a table contains, without sorting the columns.

        With `learns`, n-grams that the table lacks are added to it.
        """
        words = self._numbering.words_of(np.arange(self._numbering.known))
        starts, ids = table.ngrams(words.text, words.offsets, *self._lengths, MAX_WORD, learns)
        width = len(table)
        pieces = [count_parts(*texts, starts, ids, width, 0) for texts in self._texts]
        return joined_counts(pieces, width)


def joined_batches(batches: list[Batch]) -> Batch:
    """Concatenate batches of texts into one batch."""
    sizes = np.concatenate([np.diff(one.starts) for one in batches])
    starts = np.append(0, np.cumsum(sizes))
    return Batch(starts, np.concatenate([one.ids for one in batches]))


def numbered(keys: I64) -> tuple[I64, I64]:
    """Assign a number to each distinct key, in ascending order; keys must be at least 0.

    Return the number of each key, and the first index of each number.
    """
    order = np.argsort(keys)  # faster than np.unique, whose order is stable
    is_new = np.diff(keys[order], prepend=-1) != 0
    numbers = np.empty(len(keys), dtype=np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    return numbers, np.minimum.reduceat(order, np.flatnonzero(is_new))


def counts_of(rows: I64, columns: I64, count: int) -> tuple[I32, F32, I64]:
    """Count how often each pair of a row index and a column index occurs.

    A pair with ~column counts -1. Return the column indices, counts and row starts of the sparse
    matrix of all counts.
    """
    negative = columns < 0
    keys = rows << 33 | np.where(negative, ~columns, columns) << 1 | negative
    keys.sort()  # sorting is faster than np.unique, which imports numpy.ma
    first = np.flatnonzero(np.diff(keys >> 1, prepend=-1))
    counts = np.add.reduceat(1 - 2 * (keys & 1), first)
    first = first[counts != 0]  # counts with equal hashes but opposite signs can cancel out
    starts = np.append(0, np.cumsum(np.bincount(keys[first] >> 33, minlength=count)))
    indices = (keys[first] >> 1 & 0xFFFFFFFF).astype(np.int32)
    return indices, counts[counts != 0].astype(np.float32), starts


NO_COUNTS = counts_of(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0)


def joined_counts(pieces: list[tuple[I32, F32, I64]], columns: int | None) -> CompressedRows:
    """Join the columns, counts and row starts of consecutive documents."""
    indices, data = (np.concatenate(parts) for parts in list(zip(*pieces, strict=True))[:2])
    starts = np.append(0, np.cumsum(np.concatenate([np.diff(one[2]) for one in pieces])))
    width = columns if columns is not None else int(indices.max(initial=-1)) + 1
    return CompressedRows((data, indices, starts), (len(starts) - 1, width))
