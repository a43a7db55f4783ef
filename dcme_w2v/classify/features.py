"""Convert text to sparse vectors of weighted counts of words and n-grams.

Texts are UTF-8 bytes. Columns are in descending order of frequency. Words and word n-grams form one
block of columns, character n-grams another. Each block is limited by frequency and scaled to unit
length separately, so that many character n-grams do not outweigh the words.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcme_w2v.errors import CorpusError
from dcme_w2v.formats.columns import Source
from dcme_w2v.formats.documents import Document, read_documents, read_sentences, token_documents
from dcme_w2v.formats.texts import Text, Tokenized, bytes_of
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, F64, I32, I64, Bools
from dcme_w2v.numeric.sparse_rows import CompressedRows, unit_rows, within_blocks
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.text.tokenizer import Tokenizer

from .ngrams import NGrams, Subwords
from .options import NO_SUBWORDS, SUBWORDS, FeatureOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

DOCUMENTS_AT_ONCE = 4096
# With more hash values than this, only those that occur get a column, because 2^30 floats take 4
# GB.
DENSE_HASHING = 1 << 24
REPEATED = 2  # minimum number of documents in which a character n-gram must occur


@dataclass
class Counted:
    """The counts of all features in documents, from which columns are chosen.

    Attributes
    ----------
    words : list of bytes
        The words by first appearance.
    matrices : list of csr_matrix
        Counts of words, and of word n-grams of each length.
    grams : NGrams
    subwords : tuple of list and csr_matrix, or None
        The character n-grams by first appearance, and their counts.
    """

    words: list[bytes]
    matrices: list[csr_matrix]
    grams: NGrams
    subwords: tuple[list[bytes], csr_matrix] | None


class TextFeatures:
    """Converts texts to sparse rows, with the columns that `fit_transform` chose.

    Parameters
    ----------
    options : FeatureOptions
        Options of the features.
    room : float
        Number of bytes of text up to which counts are kept for `under`, and character n-grams are
        features by default.

    Attributes
    ----------
    names : Words or None
        The name of each column; the words of an n-gram are joined by spaces. None with hashing.
    buckets : ndarray of int64, shape (columns,), or None
        The hash value of each column, ascending, if only some hash values have a column.
    idf : ndarray of float32, shape (columns,)
        Factor of each column: log((1 + documents) / (1 + documents with the feature)) + 1, or 1.
    tag_pairs : ndarray of int64, shape (classes + 1, classes + 1), or None
        If tokens are classified: how often each tag follows each other tag; see
        `dcme_w2v.classify.sequences`.
    """

    def __init__(self, options: FeatureOptions, room: float = 0) -> None:
        self.options, self._room = options.resolved(), room
        is_raw = self.options.tokens == "words"
        self._tokenizer = Tokenizer(TokenizerOptions(tokenize="words")) if is_raw else None
        # lengths of n-grams in the first words, and in the whole text
        is_text = not self.is_by_token
        self._lead = (self.options.lead or 0) if is_text else 0
        self._everywhere = (self.options.ngrams or 1) if is_text else 1
        longest = max(self._everywhere, self.options.lead_ngrams or 1) if is_text else 1
        self._lengths = range(2, longest + 1)
        is_counted = is_text and self.options.hashing is None
        self._may_have_subwords = bool(room) and is_counted and options.subwords is None
        if self._may_have_subwords:
            self.options = replace(self.options, subwords=SUBWORDS)
        self._subwords = self.options.subword_lengths if is_counted else (0, 0)
        self._names: Words | Callable[[], Words] | None = None
        self.buckets: I64 | None = None
        self._column_of_bucket: dict[int, int] = {}
        self.idf: F32 = np.zeros(0, dtype=np.float32)
        self.tag_pairs: I64 | None = None
        self._counted: Counted | None = None

    @classmethod
    def restored(
        cls,
        options: FeatureOptions,
        names: Words | None,
        idf: F32,
        buckets: I64 | None = None,
    ) -> TextFeatures:
        """Restore features from the stored parts of a model."""
        self = cls(options)
        self.names, self.idf = names, idf
        if buckets is not None:
            self._set_buckets(buckets)
        return self

    @property
    def names(self) -> Words | None:
        """The name of each column; computed when first used, because trials do not need names."""
        if callable(self._names):
            self._names = self._names()
        return self._names

    @names.setter
    def names(self, names: Words | Callable[[], Words] | None) -> None:
        self._names = names
        self.__dict__.pop("_is_subword", None)

    @functools.cached_property
    def _is_subword(self) -> Bools:
        """Whether each column is a character n-gram, whose name begins with a space."""
        if self.names is None or self._subwords == (0, 0):
            return np.zeros(self.columns, dtype=bool)
        return self.names.text[self.names.offsets[:-1]] == ord(" ")

    def __getstate__(self) -> dict[str, Any]:
        """Omit values that can be recomputed, and values that only `under` needs."""
        state = {k: v for k, v in self.__dict__.items() if k != "_is_subword"}
        return state | {"_counted": None, "_names": self.names}

    @property
    def columns(self) -> int:
        """Number of columns."""
        return len(self.idf)

    @property
    def is_by_token(self) -> bool:
        """Whether tokens are classified, rather than documents."""
        return self.options.by == "token"

    def read(self, docs: Sequence[Source]) -> Iterator[Document]:
        """Read documents, or the tokens of sentences as documents."""
        errors = self.options.encoding_errors
        if self.is_by_token:
            return token_documents(read_sentences(docs, encoding_errors=errors))
        return read_documents(docs, encoding_errors=errors, by_class=True)

    def fit_transform(
        self, documents: Iterable[Text], most: Callable[[], tuple[int, bool]] | None = None
    ) -> csr_matrix:
        """Choose the columns, and return the documents' rows, in one pass.

        Parameters
        ----------
        documents : iterable of bytes
        most : callable, optional
            Called after the documents were read; returns how many features to keep (default:
            `features` of the options), and whether to keep word n-grams.

        Raises
        ------
        CorpusError
            There are no features.
        """
        if self.options.hashing is not None:
            counts = self._counts(documents, self._hashed, self.options.hashing)
            if self.options.hashing > DENSE_HASHING:
                counts = self._occurring(counts)
        else:
            counted, size, count = self._read(documents, most)
            self._counted = counted if size <= self._room else None
            counts = self._chosen(counted, count)
        return self._fitted(counts)

    def under(self, options: FeatureOptions, most: int) -> tuple[TextFeatures, csr_matrix]:
        """Return features with fewer kinds of n-grams, and the documents' rows with these features.

        `options` must equal those of `fit_transform`, except for fewer `lead_ngrams` or no
        `subwords`.
        """
        assert self._counted is not None
        found = TextFeatures(options)
        counts = found._chosen(self._counted, most)
        return found, found._fitted(counts)

    @property
    def keeps_counts(self) -> bool:
        """Whether counts are kept, so that `under` can be called."""
        return self._counted is not None

    def _fitted(self, counts: CompressedRows | csr_matrix) -> csr_matrix:
        """Compute the idf from counts, and return the weighted counts."""
        present = np.bincount(counts.indices, minlength=counts.shape[1])
        self.idf = np.ones(counts.shape[1], dtype=np.float32)
        if self.options.weighting == "tfidf":
            self.idf = (np.log((1 + counts.shape[0]) / (1 + present)) + 1).astype(np.float32)
        return self._weighted(counts).matrix()

    def _occurring(self, counts: CompressedRows) -> CompressedRows:
        """Assign columns to the hash values that occur."""
        found, indices = np.unique(counts.indices, return_inverse=True)
        if not len(found):
            raise CorpusError("the documents contain no words; give documents with text")
        self._set_buckets(found.astype(np.int64))
        shape = (counts.shape[0], len(found))
        return CompressedRows((counts.data, indices.astype(np.int32), counts.indptr), shape)

    def _set_buckets(self, buckets: I64) -> None:
        self.buckets = buckets
        self._column_of_bucket = {bucket: i for i, bucket in enumerate(buckets.tolist())}

    def transform(self, documents: Iterable[Text]) -> csr_matrix:
        """Convert documents to rows of float32, shape (documents, columns)."""
        return self.rows(documents).matrix()

    def rows(self, documents: Iterable[Text]) -> CompressedRows:
        """Convert documents to rows like `transform`, but do not import scipy for few documents."""
        if self.names is None:
            return self._weighted(self._counts(documents, self._hashed, self.columns))
        texts = list(documents)
        words = self._known(texts)
        if self._subwords == (0, 0):
            return self._weighted(words)
        subwords = Subwords(*self._subwords)
        for text in texts:
            subwords.add(self._spelled(text))
        return self._weighted(_sum(words, subwords.counts(self.names.table)))

    def _known(self, texts: Sequence[Text]) -> CompressedRows:
        """Count those words and word n-grams of texts that have a column."""
        parts = list(map(self._tokenized, texts))
        offsets = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum(list(map(len, parts)), out=offsets[1:])
        text = np.frombuffer(b"".join(parts), dtype=np.uint8)
        lengths = self._lead, self._everywhere, self._lengths.stop - 1
        assert self.names is not None
        starts, columns, counts = self.names.table.count_grams(text, offsets, *lengths)
        return CompressedRows((counts, columns, starts), (len(parts), self.columns))

    def name(self, column: int) -> str:
        """Return the name of a column."""
        if self.buckets is not None:
            return f"hash value {self.buckets[column]}"
        return f"column {column}" if self.names is None else self.names[column]

    def _tokenized(self, text: Text) -> bytes:
        """Split a text into words, and join them by spaces."""
        if self._tokenizer is None or self.is_by_token:
            return bytes_of(text)
        return self._tokenizer.tokenize(text)[0]

    def _words(self, text: Text) -> list[bytes]:
        return self._tokenized(text).split()

    def _spelled(self, text: Text) -> list[str]:
        """Return the words, with punctuation, from which character n-grams are extracted."""
        if isinstance(text, Tokenized) or self._tokenizer is None:
            return [word.decode() for word in self._words(text)]
        return unicodedata.normalize("NFC", text.decode()).lower().split()

    def _grams(self, text: Text) -> list[bytes]:
        words = self._words(text)
        lead = words[: self._lead]
        found = words + lead
        for n in self._lengths:
            some = words if n <= self._everywhere else lead
            found += [b" ".join(some[i : i + n]) for i in range(len(some) - n + 1)]
        return found

    def _hashed(self, text: Text) -> list[int]:
        """Return the hashed columns of a text; ~column is a column with the sign -1."""
        width, found, some = self.options.hashing, [], self._column_of_bucket
        assert width is not None
        for gram in self._grams(text):
            number = zlib.crc32(gram)
            column = number % width
            if self.buckets is not None:
                if column not in some:
                    continue
                column = some[column]
            found.append(column if number >> 31 else ~column)
        return found

    def _chosen(self, counted: Counted, count: int) -> csr_matrix:
        """Choose the `count` most frequent columns of each block, and return their counts."""
        from scipy.sparse import hstack

        words, grams = counted.words, counted.grams
        blocks = [hstack(counted.matrices[: 1 + len(self._lengths)], format="csr")]
        width = blocks[0].shape[1]
        first = grams.order()  # this order breaks ties
        kept = [self._most_frequent(blocks[0], first[first < width], count)]
        if counted.subwords is not None and self._subwords != (0, 0):
            blocks.append(counted.subwords[1])
            every = np.arange(blocks[1].shape[1])
            kept.append(width + self._most_frequent(blocks[1], every, count, may_be_empty=True))
        elif self._may_have_subwords:
            self.options, self._subwords = replace(self.options, subwords=NO_SUBWORDS), (0, 0)
        everything = hstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]
        order, totals = np.concatenate(kept), np.concatenate([_totals(one) for one in blocks])
        order = order[np.argsort(-totals[order], kind="stable")]
        column_of = np.full(len(totals), -1, dtype=np.int32)
        column_of[order] = np.arange(len(order), dtype=np.int32)

        def names() -> Words:
            longer = iter(grams.names(words, order[(order >= len(words)) & (order < width)]))
            subwords = counted.subwords[0] if counted.subwords is not None else []
            return Words.from_words(
                words[i] if i < len(words) else next(longer) if i < width else subwords[i - width]
                for i in order.tolist()
            )

        self.names = names
        self._is_subword = order >= width
        chosen = _renumbered(everything, column_of, len(order))
        chosen.sort_indices()
        return chosen

    def _most_frequent(
        self, counts: csr_matrix, order: I64, count: int, may_be_empty: bool = False
    ) -> I64:
        """Return the most frequent columns of a block; `order` breaks ties."""
        order = order[np.argsort(-_totals(counts)[order], kind="stable")]
        eligible = self._eligible(counts, may_be_empty)
        found: I64 = order[eligible[order]][:count]
        return found

    def _eligible(self, counts: csr_matrix, may_be_empty: bool) -> Bools:
        """Return for each column whether it occurs in enough documents, but not in too many."""
        present = np.bincount(counts.indices, minlength=counts.shape[1])
        highest = self.options.max_df * counts.shape[0]
        eligible: Bools = (present >= self.options.min_df) & (present <= highest)
        if not (may_be_empty or eligible.any()):
            advice = ["lower --min-df"] * (self.options.min_df > 1)
            advice += ["raise --max-df"] * (self.options.max_df < 1)
            raise CorpusError(
                f"no word occurs in {self.options.min_df} to {highest:.0f} documents; "
                f"{' or '.join(advice)}"
            )
        return eligible

    def _read(
        self, documents: Iterable[Text], most: Callable[[], tuple[int, bool]] | None = None
    ) -> tuple[Counted, int, int]:
        """Count all features; also return the size of the texts, and how many features to keep.

        See `fit_transform` for the parameters.
        """
        numbers: defaultdict[bytes, int] = defaultdict()
        # A new word gets the number of earlier words as its ID.
        numbers.default_factory = numbers.__len__
        texts: list[I32] = []
        subwords = Subwords(*self._subwords) if self._subwords != (0, 0) else None
        size = 0

        def numbered(text: Text) -> list[int]:
            nonlocal subwords, size
            size += len(text)
            if self._may_have_subwords and size > self._room:
                subwords = None
            if subwords is not None:
                subwords.add(self._spelled(text))
            found = list(map(numbers.__getitem__, self._words(text)))
            if self._lengths:
                some = found if self._everywhere > 1 else found[: self._lead]
                texts.append(np.array(some, dtype=np.int32))
            return found + found[: self._lead]

        counts = self._counts(documents, numbered, None)
        if not numbers:
            raise CorpusError("the documents contain no words; give documents with text")
        count, has_pairs = most() if most else (self.options.most_features, True)
        if not has_pairs:
            self.options, self._lengths = replace(self.options, lead_ngrams=1), range(0)
        grams = NGrams(texts, counts, self._lengths, self._everywhere, self._lead)
        spelled = None if subwords is None else _repeated(*subwords.distinct())
        matrices = [counts.matrix(), *grams.counts]
        return Counted(list(numbers), matrices, grams, spelled), size, count

    def _counts(
        self,
        documents: Iterable[Text],
        numbered: Callable[[Text], list[int]],
        columns: int | None,
    ) -> CompressedRows:
        """Count for each document how often `numbered` returns each column."""
        pieces, lists = [], []
        for text in documents:
            lists.append(numbered(text))
            if len(lists) == DOCUMENTS_AT_ONCE:
                pieces.append(_counts_of_lists(lists))
                lists = []
        pieces.append(_counts_of_lists(lists))
        sizes, indices, data = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        starts = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=starts[1:])
        width = columns if columns is not None else int(indices.max(initial=0)) + 1
        return CompressedRows((data, indices, starts), (len(sizes), width))

    def _weighted(self, counts: CompressedRows | csr_matrix) -> CompressedRows:
        data = counts.data
        if self.options.weighting != "count":
            data = np.sign(data) * (1 + np.log(np.maximum(np.abs(data), 1)))
        data = (data * self.idf[counts.indices]).astype(np.float32)
        rows = CompressedRows((data, counts.indices, counts.indptr), counts.shape)
        if self.options.norm != "l2":
            return rows
        return within_blocks(rows, self._is_subword) if self._is_subword.any() else unit_rows(rows)


def _counts_of_lists(
    lists: list[list[int]],
) -> tuple[I64, I32, F32]:
    """Return each list's sorted distinct columns, their number, and their counts."""
    flat = np.fromiter(itertools.chain.from_iterable(lists), dtype=np.int64)
    rows = np.repeat(np.arange(len(lists)), [len(numbers) for numbers in lists])
    negative = flat < 0
    columns = np.where(negative, ~flat, flat)
    keys = (rows << 32) | columns
    order = np.argsort(keys, kind="stable")
    is_first = np.diff(keys[order], prepend=-1) != 0  # np.unique would import numpy.ma
    keys = keys[order[is_first]]
    counts = np.bincount(np.cumsum(is_first) - 1, np.where(negative, -1.0, 1.0)[order], len(keys))
    kept = counts != 0  # hashed features with opposite signs may cancel each other out
    keys, counts = keys[kept], counts[kept]
    sizes = np.bincount(keys >> 32, minlength=len(lists))
    return sizes, (keys & 0xFFFFFFFF).astype(np.int32), counts.astype(np.float32)


def _sum(one: CompressedRows, other: CompressedRows) -> CompressedRows:
    """Add two matrices that have no columns in common."""
    rows = [np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)) for x in (one, other)]
    columns = np.concatenate([one.indices, other.indices])
    order = np.argsort((np.concatenate(rows) << 32) | columns, kind="stable")
    data = np.concatenate([one.data, other.data])[order]
    return CompressedRows((data, columns[order], one.indptr + other.indptr), one.shape)


def _repeated(names: list[bytes], counts: csr_matrix) -> tuple[list[bytes], csr_matrix]:
    """Keep the columns that occur in at least `REPEATED` documents."""
    kept = np.bincount(counts.indices, minlength=counts.shape[1]) >= REPEATED
    column_of = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    own = [names[i] for i in np.flatnonzero(kept).tolist()]
    return own, _renumbered(counts, column_of, len(own))


def _totals(counts: csr_matrix) -> F64:
    """Return the sum of each column."""
    return np.bincount(counts.indices, counts.data, counts.shape[1]).astype(np.float64)


def _renumbered(matrix: csr_matrix, column_of: I32, columns: int) -> csr_matrix:
    """Renumber the columns of a matrix, without sorting them; drop those numbered -1."""
    moved = column_of[matrix.indices]
    rows = CompressedRows((matrix.data, moved, matrix.indptr), (matrix.shape[0], columns))
    return rows.entries(moved >= 0).matrix()
