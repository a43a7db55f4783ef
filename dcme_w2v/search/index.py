"""Score documents for a query by BM25 on words and n-grams, and by the cosines of vectors.

BM25 (Robertson et al. 1994) of a document is the sum over the query's terms t of::

    idf(t) n (k1 + 1) / (n + k1 (1 - b + b length / mean length)),   n the count of t
    idf(t) = ln(1 + (N - df + 0.5) / (df + 0.5))

The sum is divided by its upper bound, so that word scores and n-gram scores can be added. Words
rank all documents. N-grams and vectors only rerank the best documents and need no separate index:
the n-grams of a document are the n-grams of its words, and only the query's n-grams are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from dcme_w2v.classify.ngrams import Subwords
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, F64, I64, Array, unit_vectors

from .options import SearchOptions

SHORTEST, LONGEST = 3, 5  # minimum and maximum n-gram length, counting < and > around words
GRAMS = 1 << 20  # number of buckets into which n-grams are hashed
# Number of documents with the best word scores that are reranked using n-grams and vectors.
CANDIDATES = 1000
SIMILAR = 0.3  # minimum cosine similarity between an unknown query word and its replacements
ALIKE = 20  # maximum number of replacements per unknown query word
TINY = 1e-9  # replaces a divisor of 0


class Query(NamedTuple):
    """The words and n-grams of a query that occur in the indexed documents, and their weights.

    `most` and `most_grams` are the sums of all weights, including terms that no document contains.
    `alike` and `alike_weights` are the words that replace unknown query words, and their weights.
    """

    words: I64
    weights: F64
    most: float
    grams: I64
    gram_weights: F64
    most_grams: float
    alike: I64
    alike_weights: F64


def gram_rows(words: Sequence[str]) -> csr_matrix:
    """Count the hashed n-grams in each word; the result has shape (words, GRAMS)."""
    grams = Subwords(SHORTEST, LONGEST)
    if words:
        grams.add([word.encode() for word in words])
    names, counts = grams.distinct()
    hashed = [crc32(name) % GRAMS for name in names.spellings()]
    columns = np.array(hashed, dtype=np.int32)[counts.indices]
    found = csr_matrix((counts.data, columns, counts.indptr), (len(words), GRAMS))
    found.sum_duplicates()
    return found


def idf_of(frequency: F64 | I64, documents: int) -> F64:
    """Return the idf weight of each term, given the number of documents that contain it."""
    return np.log1p((documents - frequency + 0.5) / (frequency + 0.5))


class Index:
    """An index of documents, which is built from the word counts of the documents.

    Parameters
    ----------
    words : Words
        The vocabulary of the documents.
    counts : csr_matrix of float32, shape (documents, words)
    grams : csr_matrix of float32, shape (words, GRAMS)
        See `gram_rows`.
    options : SearchOptions
    rows : ndarray of float32, shape (words, d), optional
        A vector for each word; the vector of a text is the mean over its words.
    """

    def __init__(
        self,
        words: Words,
        counts: csr_matrix,
        grams: csr_matrix,
        options: SearchOptions,
        rows: F32 | None = None,
    ) -> None:
        self.words, self.counts, self.grams, self.rows = words, counts, grams, rows
        self.options = options
        documents = max(1, counts.shape[0])
        frequency = np.bincount(counts.indices, minlength=len(words)).astype(np.float64)
        self.idf = idf_of(frequency, documents)
        self.lengths = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
        self._unknown_idf = float(idf_of(np.zeros(1), documents)[0])
        # Estimate the document frequencies of n-grams as if words occurred independently.
        missing = np.log(np.maximum(1 - frequency / documents, TINY))
        self.gram_idf = idf_of(documents * -np.expm1(grams.T @ missing), documents)
        sizes = np.asarray(grams.sum(axis=1), dtype=np.float64).ravel()
        self._gram_sizes, self._gram_lengths = sizes, counts @ sizes
        self._words_of = grams.tocsc()
        self.vectors = None if rows is None else unit_vectors(np.asarray(counts @ rows))
        # Term-frequency factors of BM25 (documents x words), which are the same for all queries.
        postings = counts.tocsc()
        data = self._saturated(postings.data, self.lengths, postings.indices)
        parts = (data.astype(np.float32), postings.indices, postings.indptr)
        self._postings = csc_matrix(parts, shape=counts.shape)

    def query(self, tokens: Sequence[str]) -> Query:
        """Return the weighted words and n-grams of a query."""
        ids = [self.words.find(token) for token in tokens]
        known = np.array([one for one in ids if one is not None], dtype=np.int64)
        unknown = [token for token, one in zip(tokens, ids, strict=True) if one is None]
        words, counts = np.unique(known, return_counts=True)
        weights = counts * self.idf[words]
        most = float(weights.sum()) + len(unknown) * self._unknown_idf
        # Compute n-grams only if the query has unknown words, because the computation is slow.
        new = gram_rows(list(dict.fromkeys(unknown))) if unknown else self.grams[:0]
        grams = np.unique(np.append(self.grams[words].indices, new.indices)).astype(np.int64)
        by_gram = self.gram_idf[grams]
        has = self._words_of.indptr[grams + 1] > self._words_of.indptr[grams]
        most_grams = float(by_gram.sum())
        return Query(words, weights, most, grams[has], by_gram[has], most_grams, *self._alike(new))

    def _alike(self, tokens: csr_matrix) -> tuple[I64, F64]:
        """Return the similar words that replace unknown query words, with their weights."""
        ids, weights = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for row in tokens:
            shared = self._words_of[:, row.indices] @ row.data
            cosines = shared / np.sqrt(np.maximum(self._gram_sizes * row.sum(), 1))
            best = best_rows(cosines, ALIKE)
            best = best[cosines[best] >= SIMILAR]
            ids.append(best)
            weights.append(cosines[best] * self.idf[best])
        return np.concatenate(ids), np.concatenate(weights)

    def best(self, query: Query, k: int) -> tuple[I64, F64]:
        """Return the rows and scores of the k best documents; ties are in row order.

        Scores are above 0, and at most 1 plus the weights of n-grams and vectors.
        """
        scores = self._postings[:, query.words] @ query.weights
        scores /= max(query.most, TINY) * (self.options.k1 + 1)
        if self.options.characters or self.vectors is not None:
            rows = self._candidates(query, scores, max(k, CANDIDATES))
            scores = scores[rows]
            if self.options.characters:
                scores += self.options.characters * self._by_grams(rows, query)
            if self.vectors is not None:
                scores += self.options.vector_weight * self._cosines(self.vectors[rows], query)
        else:
            rows = np.arange(len(scores))
        order = best_rows(scores, k)
        return rows[order], scores[order]

    def _candidates(self, query: Query, scores: F64, most: int) -> I64:
        """Return the documents with the highest scores; similar words stand for unknown words."""
        if len(query.alike):
            scores = scores + self._postings[:, query.alike] @ query.alike_weights
        return np.sort(best_rows(scores, most))

    def _by_grams(self, rows: I64, query: Query) -> F64:
        """Return the n-gram scores of documents, which lie between 0 and 1."""
        counts = self.counts[rows] @ self._words_of[:, query.grams]
        places = np.repeat(np.arange(len(rows)), np.diff(counts.indptr))
        data = self._saturated(counts.data, self._gram_lengths, rows[places])
        found = csr_matrix((data, counts.indices, counts.indptr), shape=counts.shape)
        most = max(query.most_grams, TINY) * (self.options.k1 + 1)
        return np.asarray(found @ query.gram_weights) / most

    def _cosines(self, vectors: F32, query: Query) -> F64:
        """Return the cosines between documents and a query; negative cosines become 0."""
        assert self.rows is not None
        own = unit_vectors((query.weights @ self.rows[query.words])[None])[0]
        # Sum each row separately, because a matrix product can round the scores of equal rows
        # differently.
        return np.maximum((vectors * own).sum(axis=1), 0).astype(np.float64)

    def _saturated(self, counts: F32, lengths: F64, rows: Array) -> F64:
        """Convert term counts to the BM25 factors by which idf weights are multiplied."""
        k1, b = self.options.k1, self.options.b
        mean = max(float(lengths.mean()) if len(lengths) else 0.0, TINY)
        norms = np.maximum(k1 * (1 - b + b * lengths / mean), TINY)
        exact = counts.astype(np.float64)
        return exact * (k1 + 1) / (exact + norms[rows])


def best_rows(scores: F64, k: int) -> I64:
    """Return the rows with the k highest positive scores, best first; ties are in row order."""
    rows = np.flatnonzero(scores > 0)
    found = scores[rows]
    if k < len(rows):
        lowest = np.partition(found, len(rows) - k)[len(rows) - k]
        above = np.flatnonzero(found > lowest)
        kept = np.concatenate([above, np.flatnonzero(found == lowest)[: k - len(above)]])
        rows, found = rows[kept], found[kept]
    return rows[np.lexsort((rows, -found))]
