"""Convert text to sparse vectors that contain weighted counts of words and n-grams.

Texts are UTF-8 bytes. Columns are in descending order of frequency. Words and word n-grams form one
block of columns, character n-grams another. Each block is limited by frequency and scaled to unit
length separately, so that many character n-grams do not outweigh the words.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dcme_w2v._core.codec import count_parts, weight_counts
from dcme_w2v.errors import CorpusError
from dcme_w2v.formats.columns import Source
from dcme_w2v.formats.documents import Document, read_documents, read_sentences, token_documents
from dcme_w2v.formats.texts import Text, Tokenized, blocks, bytes_of
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, F64, I64, Bools, read_only
from dcme_w2v.numeric.sparse_rows import CompressedRows, transposed_parts
from dcme_w2v.options import TokenizerOptions, ngram_lengths
from dcme_w2v.text.token_ids import Numbering
from dcme_w2v.text.tokenizer import Tokenizer

from .ngrams import (
    NO_COUNTS,
    NO_TEXTS,
    NGrams,
    Subwords,
    counts_of,
    joined_batches,
    joined_counts,
)
from .options import NO_SUBWORDS, SUBWORDS, FeatureOptions

DOCUMENTS_AT_ONCE, BYTES_AT_ONCE = 4096, 1 << 20
# If --hashing exceeds this limit, only hash values that occur get a column, which saves memory.
DENSE_HASHING = 1 << 24
REPEATED = 2  # character n-grams must occur in at least this many documents
# Sums of weights are rounded to this many decimals, so that rounding errors do not affect ties.
DECIMALS = 6


@dataclass
class Counted:
    """Counts of all features in the documents, from which the columns are chosen.

    Attributes
    ----------
    words : Words
        The words by first appearance.
    grams : NGrams
    subwords : Words or None
        The character n-grams by first appearance, if they were counted.
    counts : CompressedRows
        Counts by feature, shape (features, documents): words, word n-grams by length, and character
        n-grams.
    totals, present : ndarray of float64, shape (features,)
        The total count of each feature, and the number of documents that contain it. Each document
        counts as often as its weight says.
    total : float
        The total weight of the documents.
    """

    words: Words
    grams: NGrams
    subwords: Words | None
    counts: CompressedRows
    totals: F64
    present: F64
    total: float


class TextFeatures:
    """A converter from texts to sparse rows, whose columns `fit_transform` chooses.

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
        Factor of each column: log(documents / documents with the feature) + 1, or 1. A document
        counts as often as its weight says.
    tag_pairs : ndarray of int64, shape (classes + 1, classes + 1), or None
        If tokens are classified: how often each tag follows each other tag; see
        `dcme_w2v.classify.sequences`.
    """

    def __init__(self, options: FeatureOptions, room: float = 0) -> None:
        self.options, self._room = options.resolved(), room
        is_raw = self.options.tokens == "words"
        self._tokenizer = Tokenizer(TokenizerOptions(tokenize="words")) if is_raw else None
        # Maximum length of n-grams in the first words of a text, and in the whole text.
        is_text = not self.is_by_token
        self._lead = (self.options.lead or 0) if is_text else 0
        self._everywhere = (self.options.ngrams or 1) if is_text else 1
        longest = max(self._everywhere, self.options.lead_ngrams or 1) if is_text else 1
        self._lengths = range(2, longest + 1)
        is_counted = is_text and self.options.hashing is None
        self._may_have_subwords = bool(room) and is_counted and options.subwords is None
        if self._may_have_subwords:
            self.options = replace(self.options, subwords=SUBWORDS)
        given = None if self.options.subwords == NO_SUBWORDS else self.options.subwords
        self._subwords = ngram_lengths(given if is_counted else None)
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
        """Restore the features from the arrays and settings in a model file."""
        self = cls(options)
        self.names, self.idf = names, idf
        if buckets is not None:
            self._set_buckets(buckets)
        return self

    @property
    def names(self) -> Words | None:
        """The names of the columns, computed on first use because trials do not need them."""
        if callable(self._names):
            self._names = self._names()
        return self._names

    @names.setter
    def names(self, names: Words | Callable[[], Words] | None) -> None:
        self._names = names
        self.__dict__.pop("is_subword", None)

    @functools.cached_property
    def is_subword(self) -> Bools:
        """Whether each column is a character n-gram, whose name begins with a space."""
        if self.names is None or self._subwords == (0, 0):
            return read_only(np.zeros(self.columns, dtype=bool))
        return read_only(self.names.text[self.names.offsets[:-1]] == ord(" "))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle, without values that can be recomputed."""
        state = {k: v for k, v in self.__dict__.items() if k != "is_subword"}
        return state | {"_counted": None, "_names": self.names}

    @property
    def columns(self) -> int:
        """Number of feature columns."""
        return len(self.idf)

    @property
    def is_by_token(self) -> bool:
        """Whether tokens are classified, rather than documents."""
        return self.options.by == "token"

    def read(self, docs: Sequence[Source]) -> Iterator[Document]:
        """Read documents or, if tokens are classified, sentences with each token as a document."""
        errors = self.options.encoding_errors
        if self.is_by_token:
            return token_documents(read_sentences(docs, encoding_errors=errors))
        return read_documents(docs, encoding_errors=errors, by_class=True)

    def fit_transform(
        self,
        documents: Iterable[Text],
        most: Callable[[], tuple[int, bool]] | None = None,
        weights: Sequence[float] | F64 = (),
    ) -> CompressedRows:
        """Choose the columns and return the documents' rows, in one pass over the documents.

        Parameters
        ----------
        documents : iterable of bytes
        most : callable, optional
            Called after the documents were read; returns how many features to keep (default:
            `features` of the options), and whether to keep word n-grams.
        weights : sequence of float
            Positive weights of the documents, which may be appended while documents are read; empty
            if all are equal. Only `min_df` and `REPEATED` ignore them, because a heavy document is
            no further evidence that a feature repeats.

        Raises
        ------
        CorpusError
            There are no features.
        """
        if self.options.hashing is not None:
            counts = self._counts(documents, self._hashed, self.options.hashing)
            if self.options.hashing > DENSE_HASHING:
                counts = self._occurring(counts)
            own = _multiples(weights)
            total = counts.shape[0] if own is None else float(own.sum())
            return self._fitted(counts, documents_with(counts, own), total)
        counted, size, count = self._read(documents, most, weights)
        self._counted = counted if size <= self._room else None
        return self._fitted(*self._chosen(counted, count), counted.total)

    def under(self, options: FeatureOptions, most: int) -> tuple[TextFeatures, CompressedRows]:
        """Return features with fewer kinds of n-grams, and the documents' rows with these features.

        `options` must equal those of `fit_transform`, except for fewer `lead_ngrams` or no
        `subwords`.
        """
        assert self._counted is not None
        found = TextFeatures(options)
        counts, present = found._chosen(self._counted, most)
        return found, found._fitted(counts, present, self._counted.total)

    @property
    def keeps_counts(self) -> bool:
        """Whether counts are kept in memory, as `under` requires."""
        return self._counted is not None

    def _fitted(self, counts: CompressedRows, present: F64, total: float) -> CompressedRows:
        """Set the idf of each column, and return the weighted counts.

        `present` is the total weight of the documents that contain each column's feature, and
        `total` the weight of all documents. Hash values without documents count as the rarest.
        """
        self.idf = np.ones(len(present), dtype=np.float32)
        if self.options.weighting == "tfidf":
            least = present.min(initial=total, where=present > 0)
            self.idf += np.log(total / np.maximum(present, least)).astype(np.float32)
        return self._weighted(counts)

    def _occurring(self, counts: CompressedRows) -> CompressedRows:
        """Assign columns to the hash values that occur, and return the counts in these columns."""
        found, indices = np.unique(counts.indices, return_inverse=True)
        if not len(found):
            raise CorpusError(
                "the documents contain no words; check the input and the selected text columns"
            )
        self._set_buckets(found.astype(np.int64))
        shape = (counts.shape[0], len(found))
        return CompressedRows((counts.data, indices.astype(np.int32), counts.indptr), shape)

    def _set_buckets(self, buckets: I64) -> None:
        self.buckets = buckets
        self._column_of_bucket = {bucket: i for i, bucket in enumerate(buckets.tolist())}

    def transform(self, documents: Iterable[Text]) -> CompressedRows:
        """Convert documents to rows of float32, shape (documents, columns)."""
        if self.names is None:
            return self._weighted(self._counts(documents, self._hashed, self.columns))
        texts = list(documents)
        # Count the words and word n-grams, ignoring those that have no column.
        parts = list(map(self._tokenized, texts))
        offsets = np.append(0, np.cumsum(list(map(len, parts)), dtype=np.int64))
        text = np.frombuffer(b"".join(parts), dtype=np.uint8)
        lengths = self._lead, self._everywhere, self._lengths.stop - 1
        starts, columns, counts = self.names.table.count_grams(text, offsets, *lengths)
        words = CompressedRows((counts, columns, starts), (len(parts), self.columns))
        if self._subwords == (0, 0):
            return self._weighted(words)
        subwords = Subwords(*self._subwords)
        for some in blocks(texts, BYTES_AT_ONCE):
            subwords.add(list(map(self._spelled, some)))
        return self._weighted(_sum(words, subwords.counts(self.names.table)))

    def name(self, column: int) -> str:
        """Return the name of a column."""
        if self.buckets is not None:
            return f"hash value {self.buckets[column]}"
        return f"column {column}" if self.names is None else self.names[column]

    def _tokenized(self, text: Text) -> bytes:
        """Split a text into words, and join the words with spaces."""
        if self._tokenizer is None or self.is_by_token:
            return bytes_of(text)
        return self._tokenizer.tokenize(text)[0]

    def _spelled(self, text: Text) -> bytes:
        """Return the words, including punctuation, from which character n-grams are extracted."""
        if isinstance(text, Tokenized) or self._tokenizer is None:
            return self._tokenized(text)
        return " ".join(unicodedata.normalize("NFC", text.decode()).lower().split()).encode()

    def _grams(self, text: Text) -> list[bytes]:
        words = self._tokenized(text).split()
        lead = words[: self._lead]
        found = words + lead
        for n in self._lengths:
            some = words if n <= self._everywhere else lead
            found += [b" ".join(some[i : i + n]) for i in range(len(some) - n + 1)]
        return found

    def _hashed(self, text: Text) -> list[int]:
        """Return the column of each n-gram in a text, or ~column if the sign of its hash is -1."""
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

    def _chosen(self, counted: Counted, count: int) -> tuple[CompressedRows, F64]:
        """Choose the `count` most frequent words and n-grams, and as many character n-grams.

        Return the counts of the columns, and the total weight of the documents that contain each
        column.
        """
        words, grams, subwords = counted.words, counted.grams, counted.subwords
        every, totals = counted.counts, counted.totals
        first = grams.order  # this order breaks ties
        orders = [first[first < grams.up_to(1 + len(self._lengths))]]
        if subwords is not None and self._subwords != (0, 0):
            is_repeated = np.diff(every.indptr[len(first) :]) >= REPEATED
            orders.append(len(first) + np.flatnonzero(is_repeated))
        elif self._may_have_subwords:
            self.options, self._subwords = replace(self.options, subwords=NO_SUBWORDS), (0, 0)
        is_eligible = self._eligible(counted, orders[0])
        kept = [one[is_eligible[one]] for one in orders]
        kept = [one[np.argsort(-totals[one], kind="stable")][:count] for one in kept]
        order = np.concatenate(kept)
        order = order[np.argsort(-totals[order], kind="stable")]

        def names() -> Words:
            is_gram, place = (order >= len(words)) & (order < len(first)), order.copy()
            longer = grams.names(words, order[is_gram])
            place[is_gram] = len(words) + np.arange(len(longer))
            place[order >= len(first)] += len(words) + len(longer) - len(first)
            spelled = [words, longer, *([] if subwords is None else [subwords])]
            return Words.concatenated(spelled).chosen(place)

        self.names = names
        self.is_subword = read_only(order >= len(first))
        return every.transposed(order), counted.present[order]

    def _eligible(self, counted: Counted, words: I64) -> Bools:
        """Return whether each feature occurs in enough documents, but not in too many.

        At least one of `words`, the words and their n-grams, must be eligible.
        """
        counts = counted.counts
        eligible: Bools = counted.present <= round(self.options.max_df * counted.total, DECIMALS)
        eligible &= np.diff(counts.indptr) >= self.options.min_df
        if not eligible[words].any():
            advice = ["lower --min-df"] * (self.options.min_df > 1)
            advice += ["raise --max-df"] * (self.options.max_df < 1)
            raise CorpusError(
                f"no word occurs in at least {self.options.min_df} and at most "
                f"{self.options.max_df * counts.shape[1]:.0f} documents; {' or '.join(advice)}"
            )
        return eligible

    def _read(
        self,
        documents: Iterable[Text],
        most: Callable[[], tuple[int, bool]] | None,
        weights: Sequence[float] | F64,
    ) -> tuple[Counted, int, int]:
        """Count all features; return the counts, the texts' size and how many features to keep.

        See `fit_transform` for the parameters.
        """
        tokenizer = None if self.is_by_token else self._tokenizer
        numbering = Numbering(Words.from_words([]), None, tokenizer)
        texts, pieces = [NO_TEXTS], [NO_COUNTS]
        subwords = Subwords(*self._subwords) if self._subwords != (0, 0) else None
        size = 0
        for some in blocks(documents, BYTES_AT_ONCE, DOCUMENTS_AT_ONCE):
            size += sum(map(len, some))
            if self._may_have_subwords and size > self._room:
                subwords = None
            if subwords is not None:
                subwords.add(list(map(self._spelled, some)))
            batch, known = numbering.batch(some), np.arange(numbering.known + 1)
            each = known[:-1].astype(np.int32)
            pieces.append(count_parts(*batch, known, each, len(each), self._lead))
            if self._lengths and self._everywhere == 1:
                batch = batch.beginning(self._lead)
            texts.append(batch if self._lengths else NO_TEXTS)
        if not numbering.known:
            raise CorpusError(
                "the documents contain no words; check the input and the selected text columns"
            )
        count, has_pairs = most() if most else (self.options.most_features, True)
        if not has_pairs:
            self.options, self._lengths = replace(self.options, lead_ngrams=1), range(0)
        counts = joined_counts(pieces, None)
        own = (counts, self._lengths, self._everywhere, self._lead)
        grams = NGrams(joined_batches(texts), *own)
        words = numbering.words_of(np.arange(numbering.known))
        parts, spelled = [counts, *grams.counts], None
        if subwords is not None:
            spelled, by_text = subwords.distinct()
            parts.append(by_text)
        by_feature = transposed_parts(parts)
        sums = _sums(by_feature, _multiples(weights))
        return Counted(words, grams, spelled, by_feature, *sums), size, count

    def _counts(
        self,
        documents: Iterable[Text],
        numbered: Callable[[Text], list[int]],
        columns: int | None,
    ) -> CompressedRows:
        """Count how often `numbered` returns each column for each document."""
        pieces = [NO_COUNTS]
        for some in blocks(documents, BYTES_AT_ONCE, DOCUMENTS_AT_ONCE):
            lists = list(map(numbered, some))
            flat = np.fromiter(itertools.chain.from_iterable(lists), dtype=np.int64)
            rows = np.repeat(np.arange(len(lists)), list(map(len, lists)))
            pieces.append(counts_of(rows, flat, len(lists)))
        return joined_counts(pieces, columns)

    def _weighted(self, counts: CompressedRows) -> CompressedRows:
        """Weight counts in place, which avoids the cost of new memory, and return them."""
        blocks = self.is_subword.view(np.uint8) if self.options.norm == "l2" else None
        arrays = counts.data, counts.indices, counts.indptr
        is_log = self.options.weighting != "count"
        weight_counts(*arrays, is_log, self.idf, blocks)
        return counts


def _sum(one: CompressedRows, other: CompressedRows) -> CompressedRows:
    """Add two matrices whose nonzero columns do not overlap."""
    rows = [np.repeat(np.arange(x.shape[0]), np.diff(x.indptr)) for x in (one, other)]
    columns = np.concatenate([one.indices, other.indices])
    order = np.argsort((np.concatenate(rows) << 32) | columns, kind="stable")
    data = np.concatenate([one.data, other.data])[order]
    return CompressedRows((data, columns[order], one.indptr + other.indptr), one.shape)


def _multiples(weights: Sequence[float] | F64) -> F64 | None:
    """Divide weights by the smallest weight, or return None if all weights are equal."""
    own = np.asarray(weights, dtype=np.float64)
    return own / own.min() if len(own) and np.ptp(own) else None


def _sums(counts: CompressedRows, weights: F64 | None) -> tuple[F64, F64, float]:
    """Return the fields `totals`, `present` and `total` of `Counted`.

    Each feature must occur in a document.
    """
    starts = counts.indptr[:-1]
    if weights is None:
        totals = np.add.reduceat(counts.data, starts, dtype=np.float64).round(DECIMALS)
        return totals, np.diff(counts.indptr).astype(np.float64), counts.shape[1]
    own = weights[counts.indices]
    totals = np.add.reduceat(counts.data * own, starts).round(DECIMALS)
    return totals, np.add.reduceat(own, starts).round(DECIMALS), float(weights.sum())


def documents_with(counts: CompressedRows, weights: F64 | None) -> F64:
    """Return the total weight of the documents that contain each column's feature."""
    of_entries = None if weights is None else np.repeat(weights, np.diff(counts.indptr))
    found = np.bincount(counts.indices, of_entries, counts.shape[1]).astype(np.float64)
    return found.round(DECIMALS)
