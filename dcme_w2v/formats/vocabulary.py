"""A vocabulary: words with their counts, by descending count.

It is counted from a corpus (`dcme_w2v.text.encode`), saved as lines "word count", and can be merged
with others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.errors import FormatError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.files.opening import read_whole
from dcme_w2v.numeric.arrays import I64, U8
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.platform import PathLike

from .word_list import Words

_WRITTEN_AT_ONCE = 1 << 16  # words


class Vocabulary(Words):
    """Distinct words with their counts, the most frequent first.

    Parameters
    ----------
    text, offsets : ndarray
        The words, see `Words`. `from_table`, `from_counts` and `load` ensure that they are
        distinct; `save` does not check it again.
    counts : ndarray of int64, shape (n,)
        Count of each word, in descending order.
    """

    def __init__(self, text: U8, offsets: I64, counts: I64) -> None:
        super().__init__(text, offsets)
        self.counts = counts

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> Vocabulary:
        """Create a vocabulary from a mapping of words to counts; ties keep its order."""
        words = Words.from_words(counts)
        table = core.Table()
        table.add(words.text, words.offsets, np.fromiter(counts.values(), np.int64, len(counts)))
        return cls.from_table(table)

    @classmethod
    def from_table(cls, table: core.Table) -> Vocabulary:
        """Create a vocabulary from a hash table of the core; ties keep its order."""
        counts = table.counts()
        order = np.argsort(-counts, kind="stable")
        return cls(*table.words(order), counts[order])

    @classmethod
    def load(cls, path: PathLike) -> Vocabulary:
        """Read lines "word count", such as `save` and word2vec.c's -save-vocab write.

        The file may be compressed and unsorted; ties keep their order. A line ``</s>``, which
        word2vec.c adds, is skipped.

        Raises
        ------
        FormatError
            A line is not a word and a count, or a word occurs twice; the message has file and line.
        CorpusError
            The file cannot be read.
        """
        table = core.Table()
        try:
            table.parse(read_whole(os.fspath(path)))
        except FormatError as error:
            raise FormatError(f"{os.fspath(path)}:{error.message}") from None
        if not len(table):
            raise FormatError(f"{os.fspath(path)}: has no words; give lines 'word count'")
        return cls.from_table(table)

    def save(self, path: PathLike) -> None:
        """Write lines "word count"; ``-`` is standard output."""
        with atomic_write(path) as file:
            file.writelines(count_lines(self, self.counts))

    def pruned(self, options: VocabularyOptions) -> Vocabulary:
        """Return the vocabulary after applying `min_count`, then `max_vocab`."""
        n = int(np.searchsorted(-self.counts, -options.min_count, side="right"))
        n = min(n, options.max_vocab or n)
        return Vocabulary(self.text[: self.offsets[n]], self.offsets[: n + 1], self.counts[:n])


def count_lines(words: Words, counts: I64) -> Iterator[memoryview]:
    """Yield lines "word count" as bytes, many lines at a time."""
    for first in range(0, len(words), _WRITTEN_AT_ONCE):
        end = min(first + _WRITTEN_AT_ONCE, len(words))
        yield core.format_counts(words.text, words.offsets[first : end + 1], counts[first:end]).data


def merge(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    """Sum the counts of several vocabularies; ties are ordered by first appearance."""
    table = core.Table()
    for vocabulary in vocabularies:
        table.add(vocabulary.text, vocabulary.offsets, vocabulary.counts)
    return Vocabulary.from_table(table)
