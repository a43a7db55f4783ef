"""Vocabularies, and lists of distinct words stored as one block of bytes."""

from __future__ import annotations

import itertools
import operator
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, SupportsIndex, overload

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v._core.codec import FAULT_KINDS, find_duplicates, read_counts
from dcme_w2v.declarations import whole_number
from dcme_w2v.errors import FormatError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.files.opening import read_whole
from dcme_w2v.numeric.arrays import I64, U8, Immutable, Sealed, read_only, sealed
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.platform import PathLike, path_name

MAX_WORD_BYTES = 1 << 20  # maximum size of a word in bytes, in vocabulary and vector files
_SCANS = 8  # number of linear searches for words before an index is built


def check_lengths(words: Words, where: str) -> None:
    """Raise `FormatError` if a word has more than `MAX_WORD_BYTES` bytes."""
    lengths = np.diff(words.offsets)
    if (length := lengths.max(initial=0)) > MAX_WORD_BYTES:
        row = int(np.argmax(lengths))
        start = words.raw(row)[:20]
        raise FormatError(
            f"{where}: a word has {length:,} bytes, but at most {MAX_WORD_BYTES:,} are allowed "
            f"({start.decode('utf-8', 'replace')!a}...); remove the word, or split it"
        )


def no_faults() -> I64:
    """Return an empty fault table: the count, first row and byte offset of each kind of fault."""
    return np.zeros((FAULT_KINDS, 3), dtype=np.int64)


class Words(Sealed, Immutable, Sequence[str]):
    """A sequence of distinct words with fast lookup of a word's index.

    A million Python strings take about 60 MB. One block of UTF-8 bytes with offsets takes the
    length of the words, and is the layout of the C core.

    Parameters
    ----------
    text : ndarray of uint8, shape (offsets[-1],)
        The concatenated words as UTF-8, without separators.
    offsets : ndarray of int64, shape (n + 1,)
        Start of each word in `text`, followed by the length of `text`.
    """

    def __init__(self, text: U8, offsets: I64) -> None:
        self.text: U8 = read_only(text)
        self.offsets: I64 = read_only(offsets)
        self._index: core.Table | None = None
        self._scans = 0

    @classmethod
    def from_words(cls, words: Iterable[str | bytes]) -> Words:
        """Create a list of words from strings or UTF-8 bytes."""
        encoded = [word.encode() if isinstance(word, str) else word for word in words]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(word) for word in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, number: SupportsIndex) -> str: ...

    @overload
    def __getitem__(self, number: slice) -> Words: ...

    def __getitem__(self, number: SupportsIndex | slice) -> str | Words:
        if isinstance(number, slice):
            return self._slice(*number.indices(len(self)))
        position = operator.index(number)
        if not -len(self) <= position < len(self):
            raise IndexError(f"word {position} of {len(self)}")
        return self.raw(position % len(self)).decode()

    def __iter__(self) -> Iterator[str]:
        return map(bytes.decode, self.spellings())

    def __contains__(self, word: object) -> bool:
        return self.find(word) is not None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({reprlib.repr(list(self[:7]))}; {len(self):,} words)"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_index": None}

    def find(self, word: object) -> int | None:
        """Return the index of a word, or None if it is not in the list."""
        if not isinstance(word, str):
            return None
        try:
            wanted = word.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return None
        if self._index is None:
            self._scans += 1
            if self._scans <= _SCANS:  # a few linear searches are faster than building an index
                starts, lengths = self.offsets[:-1], np.diff(self.offsets)
                rows = np.flatnonzero(lengths == len(wanted))
                for place, letter in enumerate(wanted):
                    if not len(rows):
                        return None
                    rows = rows[self.text[starts[rows] + place] == letter]
                return int(rows[0]) if len(rows) else None
        return next(iter(self.numbers([wanted])), None)

    def numbers(self, words: list[bytes]) -> list[int]:
        """Return the indices of the given words, omitting words that are not in the list."""
        return self.table.find(words)

    @property
    def table(self) -> core.Table:
        """The words as a hash table in the C core, for fast lookups."""
        if self._index is None:
            # Assign the index only when it is complete, because other threads can use it.
            self._index = self.new_table()
        return self._index

    def new_table(self) -> core.Table:
        """Return a new hash table with these words and counts of zero, to which words are added."""
        table = core.Table()
        table.add(self.text, self.offsets, np.zeros(len(self), dtype=np.int64))
        return table

    def index(self, value: object, start: int = 0, stop: int | None = None) -> int:
        """Return the index of a word; like a list, raise ValueError if it is missing."""
        number = self.find(value)
        if number is None or number not in range(len(self))[start:stop]:
            raise ValueError(f"{value!r} is not in the word list")
        return number

    def equals(self, other: Words) -> bool:
        """Return whether another list has the same words in the same order."""
        pairs = (self.offsets, other.offsets), (self.text, other.text)
        return self is other or all(np.array_equal(*pair) for pair in pairs)

    @classmethod
    def concatenated(cls, parts: Iterable[Any]) -> Words:
        """Concatenate the words of all parts; each part has the attributes `text` and `offsets`."""
        texts, lengths = [np.empty(0, dtype=np.uint8)], [np.zeros(1, dtype=np.int64)]
        for part in parts:
            texts.append(part.text)
            lengths.append(np.diff(part.offsets))
        return Words(np.concatenate(texts), np.cumsum(np.concatenate(lengths)))

    def chosen(self, rows: I64) -> Words:
        """Return the words with the given indices."""
        lengths = np.diff(self.offsets)[rows]
        offsets = np.append(0, np.cumsum(lengths))
        at = np.repeat(self.offsets[rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Words(self.text[at], offsets)

    def _slice(self, start: int, stop: int, step: int) -> Words:
        if step != 1:
            return self.chosen(np.arange(start, stop, step))
        offsets = self.offsets[start : max(start, stop) + 1]
        return Words(self.text[offsets[0] : offsets[-1]], offsets - offsets[0])

    def spellings(self) -> Iterator[bytes]:
        """Yield the words as bytes."""
        block, ends = self.text.tobytes(), self.offsets.tolist()
        return (block[ends[i] : ends[i + 1]] for i in range(len(self)))

    def raw(self, number: int) -> bytes:
        """Return the bytes of a word, which may be invalid UTF-8."""
        return self.text[self.offsets[number] : self.offsets[number + 1]].tobytes()


_WRITTEN_AT_ONCE = 1 << 16  # number of words that are formatted together


class Vocabulary(Words):
    """Distinct words with their counts, in descending order of frequency.

    Parameters
    ----------
    text, offsets : ndarray
        The words; see `Words`. `from_table`, `from_counts` and `load` ensure that they are
        distinct; `save` does not check it again.
    counts : ndarray of int64, shape (n,)
        Count of each word, in descending order.
    figures : mapping
        Statistics from counting the words; see `dcme_w2v.vocab`.
    """

    def __init__(
        self, text: U8, offsets: I64, counts: I64, figures: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        super().__init__(text, offsets)
        self.counts: I64 = read_only(counts)
        self.figures: dict[str, Any] = sealed(dict(figures))

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> Vocabulary:
        """Create a vocabulary from a mapping of words to counts; ties keep the mapping's order."""
        words = Words.from_words(counts)
        table = core.Table()
        table.add(words.text, words.offsets, np.fromiter(counts.values(), np.int64, len(counts)))
        return cls.from_table(table)

    @classmethod
    def from_table(cls, table: core.Table) -> Vocabulary:
        """Create a vocabulary from a C-core hash table; ties keep the table's order."""
        counts = table.counts()
        order = np.argsort(-counts, kind="stable")
        return cls(*table.words(order), counts[order])

    @classmethod
    def load(cls, path: PathLike) -> Vocabulary:
        """Read "word count" lines, as written by `save` or by word2vec.c with -save-vocab.

        The file may be compressed and unsorted; ties keep their order. A line ``</s>``, which
        word2vec.c adds, and lines with a count of 0 are skipped.

        Raises
        ------
        FormatError
            A line is not a word and a count, or a word occurs twice; the message names the line.
        CorpusError
            The file cannot be read.
        """
        name, faults = path_name(path), no_faults()
        data = np.frombuffer(read_whole(name), dtype=np.uint8)
        if not len(data):
            raise FormatError(f"{name} contains no words; use a file with lines 'WORD COUNT'")
        text, offsets, counts, _ = read_counts(data, len(data), faults)
        wrong = [*faults[faults[:, 0] > 0, 1], *np.flatnonzero(counts < 0)]
        if wrong:
            line = f"{name}:{min(wrong) + 1}"
            raise FormatError(
                f"{line}: the line must be a word, a space and a count; use a file written by "
                "dcme-w2v vocab"
            )
        find_duplicates(text, offsets, faults)
        if faults.any():
            raise FormatError(
                f"{name}:{faults[:, 1].max() + 1}: the word in this line occurs twice; remove one "
                "of the two lines"
            )
        if (end := Words(text, offsets).find("</s>")) is not None:
            counts[end] = 0
        table = core.Table()
        table.add(text, offsets, counts)
        found = cls.from_table(table).pruned(VocabularyOptions(min_count=1))
        if not len(found):
            raise FormatError(f"{name} contains no words; use a file with lines 'WORD COUNT'")
        return found

    def items(self) -> Iterator[tuple[str, int]]:
        """Yield words with their counts, like the items of a dict."""
        return zip(self, self.counts.tolist(), strict=True)

    def most_common(self, n: int | None = None) -> list[tuple[str, int]]:
        """Return the n most frequent words (default: all) with their counts, as a Counter does."""
        count = None if n is None else whole_number("n", n, 0)
        return list(itertools.islice(self.items(), count))

    def save(self, path: PathLike) -> None:
        """Write one line "word count" per word; ``-`` is standard output."""
        with atomic_write(path) as file:
            file.writelines(count_lines(self, self.counts))

    def pruned(self, options: VocabularyOptions) -> Vocabulary:
        """Return the vocabulary after applying `min_count`, then `max_vocab`."""
        n = int(np.searchsorted(-self.counts, -options.min_count, side="right"))
        n = min(n, options.max_vocab or n)
        return Vocabulary(self.text[: self.offsets[n]], self.offsets[: n + 1], self.counts[:n])


def count_lines(words: Words, counts: I64) -> Iterator[memoryview]:
    """Yield lines of the form "word count" as bytes, many lines at a time."""
    for rows in blocks_of_rows(len(words), _WRITTEN_AT_ONCE):
        offsets = words.offsets[rows.start : rows.stop + 1]
        yield core.format_counts(words.text, offsets, counts[rows]).data


def merge(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    """Sum the counts of several vocabularies, and sort the words by count."""
    table = core.Table()
    for vocabulary in vocabularies:
        table.add(vocabulary.text, vocabulary.offsets, vocabulary.counts)
    return Vocabulary.from_table(table)
