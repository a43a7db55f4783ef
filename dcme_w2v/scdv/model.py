"""Compute document vectors by SCDV or by one of the baselines in the SCDV paper.

For each topic, idf x P(topic | word) x word vector is summed over the tokens of a document. The
document vector is the concatenation of these sums, scaled to unit length, with small entries set to
zero. A `DocumentModel` has the parameters learned from the training documents.

Mekala, Gupta, Paranjape and Karnick 2017, SCDV: Sparse Composite Document Vectors using soft
clustering over distributional representations.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dcme_w2v._core.models import Composer, SparseRows
from dcme_w2v.errors import DcmeError
from dcme_w2v.formats.artifact import Model, load_model, rows_arrays, save_model, words_arrays
from dcme_w2v.formats.documents import Document
from dcme_w2v.formats.texts import Text
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, I64, Array, Sealed
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.numeric.shown import Shown
from dcme_w2v.numeric.sparse_rows import unit_rows
from dcme_w2v.platform import PathLike
from dcme_w2v.text.token_ids import Batch, Numbering
from dcme_w2v.text.tokenizer import Tokenizer
from dcme_w2v.training.trainer import kernels_named

from .mixture import Mixture
from .options import ScdvOptions


def count_rows(batch: Batch, words: int) -> sparse.csr_matrix:
    """Return the count of each vocabulary word in each document, shape (documents, words)."""
    known = batch.ids < words
    starts = np.append(0, np.cumsum(known))[batch.starts]
    ids = batch.ids[known].astype(np.int32)
    ones = np.ones(len(ids), dtype=np.float32)
    rows = sparse.csr_matrix((ones, ids, starts), shape=(len(batch), words))
    rows.sum_duplicates()
    return rows


def tfidf_rows(batch: Batch, idf: F32, log_counts: bool) -> sparse.csr_matrix:
    """Return tf-idf rows; the term frequency of a word with count n is n or 1 + ln n."""
    rows = count_rows(batch, len(idf))
    if log_counts:
        rows.data = 1 + np.log(rows.data)
    rows.data *= idf[rows.indices]
    return rows


KIND, VERSION = "scdv", 1
POSTERIOR_ARRAYS = ("posterior_starts", "posterior_topics", "posterior_shares")
_MAX_TOPICS = 1 << 16
_MAX_NUMBER = 1e6  # limit for numbers in model files, far above all valid numbers


@dataclass(frozen=True, repr=False)
class DocumentModel(Sealed, Shown):
    """A fitted model that converts documents to vectors.

    Attributes
    ----------
    options : ScdvOptions
    words : Words
        The vocabulary: words with vectors, then words that only tf-idf uses.
    vectors : ndarray of float32, shape (words with vectors, dim)
        Unit vectors.
    idf : ndarray of float32, shape (words,)
        ln((1 + documents) / (1 + documents with the word)) + 1.
    counts : ndarray of int64, shape (words,)
        Count of each word in the training documents.
    posteriors : csr_matrix of float32, shape (words with vectors, topics)
        P(topic | word), without negligible values.
    mixture : Mixture or None
        The Gaussian mixture; None for `average` and `tfidf`.
    threshold : float
        Entries with a smaller absolute value are set to zero.
    facts : dict
        Record of the fit: documents, tokens, log-likelihoods and so on.
    """

    options: ScdvOptions
    words: Words
    vectors: F32
    idf: F32
    counts: I64
    posteriors: sparse.csr_matrix
    mixture: Mixture | None
    threshold: float
    facts: dict[str, Any]

    @property
    def columns(self) -> int:
        """Number of columns of a document vector."""
        composed = self.posteriors.shape[1] * self.vectors.shape[1]
        beside = len(self.words) if self.options.tfidf else 0
        return len(self.words) if self.options.representation == "tfidf" else composed + beside

    def _facts(self) -> dict[str, Any]:
        return {
            "features": self.options.representation, "words": self.words, "columns": self.columns,
            "topics": self.posteriors.shape[1], "documents": self.facts.get("documents"),
        }  # fmt: skip

    @property
    def figures(self) -> dict[str, Any]:
        """Statistics of the fit, with the number of columns and the threshold."""
        return {**self.facts, "columns": self.columns, "threshold": self.threshold}

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that splits documents into tokens."""
        return Tokenizer.of_entry(self.facts)

    def numbering(self) -> Numbering:
        """Return an object that encodes documents as the IDs of words in the model."""
        return Numbering(self.words, tokenizer=self.tokenizer)

    def composer(self) -> Composer:
        """Return the C core's composer of document vectors, which allows at most 2^31 columns."""
        if self.columns > np.iinfo(np.int32).max:
            raise DcmeError(
                f"document vectors would have {self.columns:,} columns, which is too many; lower "
                "--clusters"
            )
        is_log = self.options.term_frequency == "log"
        weights = self.idf[: len(self.vectors)]
        if self.options.representation == "average":
            weights = np.ones_like(weights)
        rows = SparseRows(self.posteriors)
        return Composer(self.vectors, weights, rows, is_log, kernels_named())

    def transform(
        self, texts: Iterable[Text], threads: int | None = None
    ) -> Iterator[sparse.csr_matrix]:
        r"""Yield the vectors of documents in order, a few hundred rows at a time.

        Parameters
        ----------
        texts : iterable of bytes
            Valid UTF-8; tokens are separated by 0x20 \t \n \r \v \f.
        threads : int, optional
            Number of threads (default: the CPUs that this process may use). The result does not
            depend on it.

        Yields
        ------
        csr_matrix of float32, shape (some, columns)
            Rows of unit length before small entries are set to zero; a document without a
            vocabulary word has a row of zeros.
        """
        make = self._rows()
        yield from ordered_map(make, self.numbering().batches(texts), threads)

    def transform_labeled(
        self, documents: Iterable[Document], threads: int | None
    ) -> Iterator[tuple[sparse.csr_matrix, list[tuple[str, ...]]]]:
        """Yield the vectors and labels of documents, which are read only once."""
        labeled, read = itertools.tee(documents)
        labels = (document.labels for document in labeled)
        for rows in self.transform((document.text for document in read), threads):
            yield rows, list(itertools.islice(labels, rows.shape[0]))

    def _rows(self) -> Any:
        options, alone = self.options, self.options.representation == "tfidf"
        log, tfidf = options.term_frequency == "log", options.tfidf or 0.0
        composer = None if alone else self.composer()
        # Factor that scales a concatenation of two vectors, with lengths 1 and `tfidf`, to length
        # 1.
        length = 1 / float(np.hypot(1, tfidf))

        def make(batch: Batch) -> sparse.csr_matrix:
            parts = []
            if composer is not None:
                starts, columns, values = composer.rows(batch.starts, batch.ids, self.threshold)
                shape = (len(batch), self.posteriors.shape[1] * self.vectors.shape[1])
                rows = sparse.csr_matrix((values, columns, starts), shape=shape)
                # Apply the signed power normalization of Fisher vectors (Perronnin et al. 2010).
                if options.power not in (None, 1):
                    rows.data = np.copysign(
                        np.abs(values) ** np.float32(options.power or 0), values
                    )
                    rows = unit_rows(rows)
                rows.data *= np.float32(length)
                parts.append(rows)
            if alone or tfidf:
                scale = 1.0 if alone else tfidf * length
                parts.append(scale * unit_rows(tfidf_rows(batch, self.idf, log)))
            return parts[0] if len(parts) == 1 else sparse.hstack(parts, format="csr")

        return make

    def save(self, path: PathLike) -> None:
        """Atomically write the model to a file."""
        arrays: dict[str, Array] = {
            **words_arrays(self.words),
            "vectors": self.vectors,
            "idf": self.idf,
            "counts": self.counts,
        }
        arrays |= rows_arrays(POSTERIOR_ARRAYS, self.posteriors)
        if self.mixture:
            arrays["mixture_weights"] = self.mixture.weights
            arrays["mixture_means"] = self.mixture.means
            arrays["mixture_covariance"] = self.mixture.covariance
        description = {
            "options": asdict(self.options),
            "topics": self.posteriors.shape[1],
            "threshold": self.threshold,
            "facts": self.facts,
        }
        save_model(path, KIND, VERSION, arrays, description)

    @classmethod
    def load(cls, path: PathLike) -> DocumentModel:
        """Read a model from a file; large arrays are memory-mapped.

        Raises
        ------
        FormatError
            The file is not a model of this kind and version, or is corrupt.
        """
        model = load_model(path, KIND, VERSION)
        options, facts = model.options("options", ScdvOptions), model.value("facts", dict)
        topics = model.value("topics", int)
        if not 1 <= topics <= _MAX_TOPICS:
            raise model.fault("topics", f"is {topics}, must be 1 to {_MAX_TOPICS:,}")
        threshold = model.number("threshold", 0, math.inf)
        words = model.words()
        counts = model.array("counts", "int64", len(words))
        if counts.min(initial=0) < 0:
            raise model.fault("counts", "contains a negative number")
        vectors = _bounded(model, "vectors", None, None)
        if len(vectors) > len(words) or not vectors.shape[1]:
            raise model.fault(
                "vectors", f"has the shape {vectors.shape}, which does not match {len(words)} words"
            )
        return cls(
            options,
            words,
            vectors,
            _bounded(model, "idf", len(words)),
            counts,
            model.rows(POSTERIOR_ARRAYS, len(vectors), topics),
            _load_mixture(model, topics, vectors.shape[1]),
            threshold,
            facts,
        )


def _bounded(model: Model, name: str, *shape: int | None) -> F32:
    """Read an array from a model; raise an error if products of its values could overflow."""
    found = model.array(name, "float32", *shape)
    if max(found.max(initial=0), -found.min(initial=0)) > _MAX_NUMBER:
        raise model.fault(name, f"contains a number whose size exceeds {_MAX_NUMBER:g}")
    return found


def _load_mixture(model: Model, topics: int, dim: int) -> Mixture | None:
    if "mixture_means" not in model.arrays:
        return None
    return Mixture(
        model.array("mixture_weights", "float64", topics),
        model.array("mixture_means", "float64", topics, dim),
        model.array("mixture_covariance", "float64", dim, dim),
    )
