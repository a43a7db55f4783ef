"""Character n-grams, which provide vectors for unknown words (Bojanowski et al. 2017).

The vector of a word is the mean of the vectors of its n-grams and, if it is in the vocabulary, of
its own row. n-grams are numbered by hashing, as in fastText (csrc/text/ngrams.h).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dcme_w2v._core.text import ngrams_of
from dcme_w2v.numeric.arrays import F32, I32, I64, read_only
from dcme_w2v.numeric.parallel import blocks_of_rows, ordered_map
from dcme_w2v.options import SubwordOptions

from ..vocabulary import Words

_GATHERED_AT_ONCE = 1 << 23  # approximate block size in bytes for copying n-gram vectors
_ROWS_A_WORD = 32  # estimated number of n-grams per word, which determines the block size


@dataclass(frozen=True)
class WordNgrams:
    """The character n-grams of a vocabulary's words.

    Attributes
    ----------
    options : SubwordOptions
    starts : ndarray of int64, shape (words + 1,)
    numbers : ndarray of int32
        The n-grams of word i are at starts[i] .. starts[i + 1] - 1.
    """

    options: SubwordOptions
    starts: I64
    numbers: I32

    @classmethod
    def of_words(cls, options: SubwordOptions, words: Words) -> WordNgrams:
        """Find the character n-grams of a vocabulary's words."""
        found = ngrams_of(words.text, words.offsets, *options.lengths, options.buckets)
        return cls(options, *found)


@dataclass(frozen=True)
class Subwords:
    """The vectors of character n-grams.

    Attributes
    ----------
    shortest, longest : int
        Lengths of the n-grams in characters, with ``<`` and ``>`` around a word.
    rows : ndarray of float32, shape (buckets, d)
        One row per hash value; n-grams with equal hash values share a row.
    own : ndarray of float32, shape (words, d), optional
        The rows of the words themselves, from which training continues.
    """

    shortest: int
    longest: int
    rows: F32
    own: F32 | None = None

    def frozen(self) -> Subwords:
        """Return a copy whose arrays are read-only."""
        own = None if self.own is None else read_only(self.own)
        return replace(self, rows=read_only(self.rows), own=own)

    def ngrams_of(self, words: Words) -> tuple[I64, I32]:
        """Return the row indices of each word's n-grams.

        Returns
        -------
        starts : ndarray of int64, shape (n + 1,)
        rows : ndarray of int32
            The rows of word i are at starts[i] .. starts[i + 1] - 1.
        """
        return ngrams_of(words.text, words.offsets, self.shortest, self.longest, len(self.rows))

    def vector_of(self, word: str) -> F32 | None:
        """Return an out-of-vocabulary word's vector, shape (d,), or None if it has no n-gram."""
        if not word or not len(self.rows):
            return None
        try:
            rows = self.ngrams_of(Words.from_words([word]))[1]
        except UnicodeEncodeError:
            return None
        return self.rows[rows].mean(axis=0, dtype=np.float32) if len(rows) else None

    def vectors_of(self, words: Words, own: F32 | None = None) -> F32:
        """Return the vectors of words, shape (n, d); a word without n-grams gets a zero vector.

        Parameters
        ----------
        words : Words
            The n words.
        own : ndarray of float32, shape (n, d), optional
            The words' own rows, if the words are in the vocabulary.
        """
        matrix = np.empty((len(words), self.rows.shape[1]), dtype=np.float32)

        def compose(block: slice) -> None:
            mine = None if own is None else own[block]
            matrix[block] = self._composed(words[block], mine)

        step = max(1, _GATHERED_AT_ONCE // (4 * _ROWS_A_WORD * self.rows.shape[1]))
        for _ in ordered_map(compose, blocks_of_rows(len(words), step)):
            pass
        return matrix

    def _composed(self, words: Words, own: F32 | None) -> F32:
        total = np.zeros((len(words), self.rows.shape[1]), dtype=np.float32)
        if own is not None:
            total += own
        divisors = np.full(len(words), own is not None, dtype=np.int64)
        if len(self.rows):
            starts, rows = self.ngrams_of(words)
            some = np.flatnonzero(np.diff(starts))
            # Suppress warnings here, because NaN and infinity are reported when files are read.
            with np.errstate(all="ignore"):
                if len(some):
                    total[some] += np.add.reduceat(self.rows[rows], starts[some], axis=0)
            divisors += np.diff(starts)
        total /= np.maximum(divisors, 1).astype(np.float32)[:, None]
        return total
