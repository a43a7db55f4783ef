"""Encode batches of documents as word IDs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.errors import CorpusError
from dcme_w2v.formats.texts import Text, blocks, joined
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import I64, U32

from .cache import LAST, NUMBER, IdCache
from .tokenizer import Tokenizer

BATCH_DOCUMENTS = 256
BATCH_BYTES = 1 << 20
_NEWLINE = ord("\n")
_IS_SEPARATOR = np.isin(np.arange(256), list(b" \t\n\r\v\f"))
NEW_WORDS = 1 << 20  # maximum number of new words in the word table before it is reset


class AnyTokenizer(Protocol):
    """The methods of `dcme_w2v.text.tokenizer.Tokenizer` that are needed for encoding."""

    def tokenize(self, text: Text, /) -> tuple[bytes, int]:
        """Join each line's tokens with spaces; also return the offset of an invalid byte, or -1."""


class Batch(NamedTuple):
    """A batch of documents that are encoded as word IDs.

    Attributes
    ----------
    starts : ndarray of int64, shape (n + 1,)
        Document i is at starts[i] .. starts[i + 1] - 1.
    ids : ndarray of uint32
        Word IDs; IDs of out-of-vocabulary words are at least the vocabulary size.
    """

    starts: I64
    ids: U32

    def __len__(self) -> int:
        return len(self.starts) - 1

    def beginning(self, length: int) -> Batch:
        """Return the first `length` words of each document."""
        sizes = np.minimum(np.diff(self.starts), length)
        starts = np.append(0, np.cumsum(sizes))
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1] - starts[:-1], sizes)
        return Batch(starts, self.ids[places])


class Numbering:
    """Encode texts as word IDs; several threads can use the same object.

    Parameters
    ----------
    words : Words
        The vocabulary.
    forget : int or None
        Out-of-vocabulary words, which also get IDs, are removed when there are more than this;
        None keeps them.
    tokenizer : optional
        How texts are split (default: at whitespace).

    Attributes
    ----------
    lock : RLock
        Held while a text is encoded; hold it while IDs of out-of-vocabulary words are in use.
    """

    def __init__(
        self,
        words: Words,
        forget: int | None = NEW_WORDS,
        tokenizer: AnyTokenizer | None = None,
    ) -> None:
        self.words = words
        self._tokenizer = tokenizer or Tokenizer()
        self._forget = forget
        self._table = self.words.new_table()
        self.lock = threading.RLock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Numbering, (self.words, self._forget, self._tokenizer)

    @property
    def known(self) -> int:
        """Number of words that have an ID, whether or not they are in the vocabulary."""
        return len(self._table)

    def words_of(self, ids: I64) -> Words:
        """Return the words with the given IDs."""
        return Words(*self._table.words(ids))

    def batches(self, texts: Iterable[Text]) -> Iterator[Batch]:
        """Encode texts (valid UTF-8) in batches of a few hundred documents."""
        return map(self.batch, blocks(texts, BATCH_BYTES, BATCH_DOCUMENTS))

    def batch(self, texts: list[Text]) -> Batch:
        """Encode a list of texts; either all texts or none must be `Tokenized`."""
        return self.lines(joined(texts))

    def lines(self, text: Text) -> Batch:
        """Encode texts, passed as a byte string with one text per line."""
        lines, _ = self._tokenizer.tokenize(text)
        ids = np.empty(len(lines) // 2 + 1, dtype=np.uint32)
        with self.lock:
            if self._forget is not None and len(self._table) > len(self.words) + self._forget:
                self._table = self.words.new_table()
            tokens, _, _, bad = self._table.encode(lines, core.REFUSE_NUL, ids)
        if bad >= 0:
            number, count = lines[:bad].count(b"\n") + 1, lines.count(b"\n")
            raise CorpusError(f"document {number} of {count} contains a NUL character; remove it")
        marked = ids[:tokens]
        # The last token of each line is marked, but lines without tokens have no mark.
        ends = np.flatnonzero(marked & LAST) + 1
        if len(ends) == lines.count(b"\n"):
            return Batch(np.concatenate([[0], ends]), marked & NUMBER)
        characters = np.frombuffer(lines, dtype=np.uint8)
        letters = np.cumsum(~_IS_SEPARATOR[characters], dtype=np.int64)[characters == _NEWLINE]
        starts = np.zeros(len(letters) + 1, dtype=np.int64)
        starts[1:][np.diff(letters, prepend=0) > 0] = ends
        np.maximum.accumulate(starts, out=starts)
        return Batch(starts, marked & NUMBER)


class Spool:
    """Store batches in an unnamed temporary file, from which a second pass reads them."""

    def __init__(self) -> None:
        self._cache = IdCache()
        self._starts: list[I64] = []

    def add(self, batch: Batch) -> None:
        """Append a batch to the temporary file."""
        self._cache.write(self._cache.length, batch.ids)
        self._starts.append(batch.starts)

    def __iter__(self) -> Iterator[Batch]:
        first = 0
        for starts in self._starts:
            yield Batch(starts, self._cache.read(first, int(starts[-1])))
            first += int(starts[-1])

    def close(self) -> None:
        """Close the temporary file, which releases its disk space."""
        self._cache.close()
