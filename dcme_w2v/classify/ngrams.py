"""Extract n-grams of words, and of characters within words, from texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import numpy as np

from dcme_w2v._core.text import Table
from dcme_w2v.numeric.arrays import I32, I64
from dcme_w2v.numeric.sparse_rows import CompressedRows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FEW_WORDS = 5000  # maximum number of words that are processed without importing scipy
MAX_WORD = 4096  # longer runs of characters without spaces are data, not words


class NGrams:
    """The word n-grams of documents, with IDs that follow those of the words.

    Parameters
    ----------
    texts : list of ndarray of int32
        The IDs of the words of each document, or of those words that n-grams may contain.
    words : CompressedRows
        The counts of the words, whose IDs are in order of first appearance.
    lengths : range
        The lengths of the n-grams in words, from 2.
    everywhere, lead : int
        N-grams longer than `everywhere` are taken only from the first `lead` words.

    Attributes
    ----------
    counts : list of csr_matrix
        The counts of the n-grams of each length, shape (documents, n-grams).
    """

    def __init__(
        self, texts: list[I32], words: CompressedRows, lengths: range, everywhere: int, lead: int
    ) -> None:
        from scipy.sparse import csr_matrix

        self._flat = np.concatenate([np.zeros(0, dtype=np.int32), *texts])
        size = np.array([len(text) for text in texts], dtype=np.int64)
        document = np.repeat(np.arange(len(texts), dtype=np.int32), size)
        place = np.arange(len(document)) - (np.cumsum(size) - size)[document]
        self._words = words.shape[1]
        rows = np.repeat(np.arange(words.shape[0], dtype=np.int32), np.diff(words.indptr))
        first_document = np.zeros(self._words, dtype=np.int32)
        # The last assignment remains; it comes from the first document.
        first_document[words.indices[::-1]] = rows[::-1]
        documents, firsts = [first_document], [np.arange(self._words)]
        sizes = [np.ones(self._words, dtype=np.int64)]
        self.counts: list[csr_matrix] = []
        shorter = self._flat.astype(np.int64)  # IDs of the shorter n-grams that start at each word
        for n in lengths:
            is_inside = document[: 1 - n] == document[n - 1 :]
            if n > everywhere:
                is_inside &= place[: 1 - n] <= lead - n
            starts = np.flatnonzero(is_inside)
            keys = shorter[starts] * self._words + self._flat[starts + n - 1]
            _, first, found = np.unique(keys, return_index=True, return_inverse=True)
            shorter[starts] = found
            ones = np.ones(len(starts), dtype=np.float32)
            shape = len(texts), len(first)
            self.counts.append(csr_matrix((ones, (document[starts], found)), shape=shape))
            documents.append(document[starts[first]])
            firsts.append(starts[first])
            sizes.append(np.full(len(first), n))
        self._document, self._first = np.concatenate(documents), np.concatenate(firsts)
        self._size = np.concatenate(sizes)

    def order(self) -> I64:
        """Return the IDs of words and n-grams in the order of first appearance and length."""
        return np.lexsort((self._first, self._size, self._document))

    def names(self, words: Sequence[bytes], numbers: I64) -> list[bytes]:
        """Return the spellings of n-grams: their words, separated by spaces."""
        places = zip(self._first[numbers].tolist(), self._size[numbers].tolist(), strict=True)
        texts = (self._flat[first : first + size].tolist() for first, size in places)
        return [b" ".join(map(words.__getitem__, text)) for text in texts]


class Subwords:
    """Collects the words of texts, and counts their character n-grams.

    Parameters
    ----------
    shortest, longest : int
        Range of n-gram lengths in characters; words are enclosed in ``<`` and ``>`` (Bojanowski et
        al. 2017).
    """

    def __init__(self, shortest: int, longest: int) -> None:
        self._lengths = shortest, longest
        self._number: defaultdict[str, int] = defaultdict()
        self._number.default_factory = self._number.__len__
        self._texts: list[list[int]] = []

    def add(self, words: Iterable[str]) -> None:
        """Add a text, given as its words."""
        self._texts.append(list(map(self._number.__getitem__, words)))

    def distinct(self) -> tuple[list[bytes], csr_matrix]:
        """Return the distinct n-grams by first appearance, and their counts (texts, n-grams).

        A leading space distinguishes the names of n-grams from words. Columns are not sorted.
        """
        table = Table()
        counts = self._counts(table, learns=True)
        text, offsets = table.words(np.arange(len(table)))
        block = text.tobytes()
        return [block[a:b] for a, b in pairwise(offsets.tolist())], counts.matrix()

    def counts(self, table: Table) -> CompressedRows:
        """Count the n-grams that are in a table, shape (texts, IDs); columns are not sorted."""
        return self._counts(table, learns=False)

    def _counts(self, table: Table, learns: bool) -> CompressedRows:
        text = "".join(f" <{word[:MAX_WORD]}>" for word in self._number).encode()
        marked = np.frombuffer(text, dtype=np.uint8)
        offsets = np.append(np.flatnonzero(marked == ord(" ")), len(marked))
        starts, ids = table.ngrams(marked, offsets, *self._lengths, learns)
        return _product(self._texts, starts, ids, len(table))


def _product(texts: list[list[int]], starts: I64, ids: I32, columns: int) -> CompressedRows:
    """Sum the n-gram counts of words to those of texts, without scipy if there are few."""
    shape = (len(texts), columns)
    words = np.fromiter(chain.from_iterable(texts), dtype=np.int64)
    ends = np.append(0, np.cumsum([len(text) for text in texts], dtype=np.int64))
    if len(words) > FEW_WORDS:
        from scipy.sparse import csr_matrix

        ones = [np.ones(len(one), dtype=np.float32) for one in (words, ids)]
        of_words = csr_matrix((ones[1], ids, starts), (len(starts) - 1, columns))
        found = csr_matrix((ones[0], words, ends), (len(texts), len(starts) - 1)) @ of_words
        return CompressedRows((found.data, found.indices, found.indptr), shape)
    of_words = CompressedRows((ids, ids, starts), (len(starts) - 1, columns))[words]
    rows = np.repeat(np.repeat(np.arange(len(texts)), np.diff(ends)), np.diff(of_words.indptr))
    keys = np.sort((rows << 32) | of_words.indices)
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    data = np.diff(first, append=len(keys)).astype(np.float32)
    sizes = np.bincount(keys[first] >> 32, minlength=len(texts))
    indices = (keys[first] & 0xFFFFFFFF).astype(np.int32)
    return CompressedRows((data, indices, np.append(0, np.cumsum(sizes))), shape)
