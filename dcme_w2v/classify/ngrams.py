"""Extracts n-gram features from texts: of words, and of characters within words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from dcme_w2v.numeric.arrays import I32, I64
from dcme_w2v.numeric.sparse_rows import CompressedRows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MAX_WORD = (
    4096  # maximum characters of a word; longer runs without a space are data rather than text
)


class NGrams:
    """Word n-grams of documents, whose IDs follow those of the words.

    Parameters
    ----------
    texts : list of ndarray of int32
        The numbers of the words of each document, or of those that n-grams have.
    words : CompressedRows
        The counts of the words, which are numbered by first appearance.
    lengths : range
        The numbers of words of the n-grams, from 2 on.
    everywhere, lead : int
        Longer n-grams than `everywhere` are of the first `lead` words only.

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
        first_document[words.indices[::-1]] = rows[::-1]  # the last assignment wins
        documents, firsts = [first_document], [np.arange(self._words)]
        sizes = [np.ones(self._words, dtype=np.int64)]
        self.counts: list[csr_matrix] = []
        shorter = self._flat.astype(np.int64)  # ID of the shorter n-gram that starts here
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
        """Return the IDs of words and n-grams by first appearance, within a document by length."""
        return np.lexsort((self._first, self._size, self._document))

    def names(self, words: Sequence[bytes], numbers: I64) -> list[bytes]:
        """Return the words of n-grams, separated by spaces."""
        places = zip(self._first[numbers].tolist(), self._size[numbers].tolist(), strict=True)
        texts = (self._flat[first : first + size].tolist() for first, size in places)
        return [b" ".join(map(words.__getitem__, text)) for text in texts]


class Subwords:
    """Words of texts, with counts of their character n-grams.

    Parameters
    ----------
    shortest, longest : int
        Characters of an n-gram; a word has ``<`` before it and ``>`` after it (Bojanowski et al.
        2017).
    """

    def __init__(self, shortest: int, longest: int) -> None:
        self._lengths = range(shortest, longest + 1)
        self._number: defaultdict[str, int] = defaultdict()
        self._number.default_factory = self._number.__len__
        self._texts: list[list[int]] = []

    def add(self, words: Sequence[str]) -> None:
        """Add a text."""
        self._texts.append([self._number[word] for word in words])

    def distinct(self) -> tuple[list[bytes], csr_matrix]:
        """Return the distinct n-grams by first appearance, and counts, shape (texts, n-grams)."""
        numbers: defaultdict[bytes, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        of_words = [list(map(numbers.__getitem__, self._ngrams(word))) for word in self._number]
        return list(numbers), self._counts(of_words, len(numbers))

    def counts(self, numbers: Callable[[list[bytes]], list[int]], columns: int) -> csr_matrix:
        """Return the counts of the n-grams that have a column, shape (texts, columns)."""
        return self._counts([numbers(self._ngrams(word)) for word in self._number], columns)

    def _counts(self, of_words: list[list[int]], columns: int) -> csr_matrix:
        found = _rows(self._texts, len(of_words)) @ _rows(of_words, columns)
        found.sort_indices()
        return found

    def _ngrams(self, word: str) -> list[bytes]:
        """Return feature names of n-grams; a leading space distinguishes them from words."""
        word = word[:MAX_WORD]
        found = list(word) if 1 in self._lengths else []
        word = f"<{word}>"
        lengths = range(max(2, self._lengths.start), min(self._lengths.stop, len(word) + 1))
        found += [word[i : i + n] for n in lengths for i in range(len(word) - n + 1)]
        return [f" {ngram}".encode() for ngram in found]


def _rows(lists: list[list[int]], columns: int) -> csr_matrix:
    """Return a matrix that has a one in a list's row for each of its numbers."""
    from scipy.sparse import csr_matrix

    starts = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(one) for one in lists], out=starts[1:])
    flat = np.fromiter(chain.from_iterable(lists), dtype=np.int32, count=starts[-1])
    return csr_matrix((np.ones(len(flat), dtype=np.float32), flat, starts), (len(lists), columns))
