"""Fit a document-vector model: count words, cluster word vectors, and set the threshold.

The documents are read once. Their word IDs are kept in an unnamed temporary file (four bytes per
token), from which a second pass computes the threshold.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from dcme_w2v.errors import CorpusError, FormatError
from dcme_w2v.files.space import shortage, write_with_fallback
from dcme_w2v.formats.artifact import check_model_target
from dcme_w2v.formats.texts import Text
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, I64, U32, infinite_row
from dcme_w2v.numeric.parallel import blocks_of_rows, ordered_map
from dcme_w2v.platform import memory_limit
from dcme_w2v.text.token_ids import NEW_WORDS, Batch, Numbering, Spool
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to
from dcme_w2v.words.neighbors import inverse_lengths
from dcme_w2v.words.vectors import Vectors

from .mixture import Mixture, fit_mixture
from .model import KIND, DocumentModel, count_rows
from .options import ScdvOptions, resolved

# Posteriors below this limit are set to 0, because they hardly change float32 unit vectors.
MIN_POSTERIOR = 1e-7
DOCUMENTS_A_REPORT = 1000


@dataclass
class _WordCounts:
    """Word counts from one pass over the training documents, and the words to keep."""

    numbering: Numbering
    counts: I64
    documents_with: I64
    documents: int
    tokens: int
    without_words: int
    kept: I64  # IDs of the model's words; words with vectors come first
    with_vectors: int


def fit_documents(
    texts: Iterable[Text],
    vectors: Vectors,
    options: ScdvOptions | None = None,
    *,
    threads: int | None = None,
    progress: ProgressLike = False,
    output: str | None = None,
    dry_run: bool = False,
) -> Any:
    """Fit a document-vector model to documents.

    Parameters
    ----------
    texts : iterable of bytes
        The training documents, valid UTF-8; read once.
    vectors : Vectors
        Word vectors from any program, which are scaled to unit length. If they have `subwords`,
        out-of-vocabulary words in the training documents get vectors from their character n-grams.
        Documents are split by the tokenizer of the vectors, which the model stores.
    options : ScdvOptions, optional
    threads : int, optional
        Number of threads (default: the CPUs that this process may use). The result does not depend
        on it.
    progress : bool or callable
        As in `dcme_w2v.train`; the loss is minus the mean log-likelihood.
    output : str, optional
        File to which the model is written.
    dry_run : bool
        Whether to stop after reading the documents.

    Returns
    -------
    DocumentModel, or dict for a dry run
        The model's `figures` describe the fit. The dict has the memory that fitting requires, and
        as "refused" the error if there is not enough.

    Raises
    ------
    CorpusError
        There are no documents, or none of their words has a vector.
    FormatError
        A vector is not finite.
    UsageError
        There are more clusters than words.
    """
    options = resolved(options or ScdvOptions())
    if output is not None:
        check_model_target(output, KIND)
    if dry_run:
        return _resources(texts, vectors, options)
    with contextlib.closing(Spool()) as spool, reporting_to(progress) as reporter:
        texts = _watched(texts, reporter)
        counted = count_words(texts, vectors, options, spool)
        kept = counted.kept
        model = _with_words(vectors, counted, options, threads, reporter)
        model.facts.update(vectors.tokenizer.entry())
        if options.representation == "scdv" and options.sparsity:
            numbers = np.full(len(counted.counts) + 1, len(kept), dtype=np.uint32)
            numbers[kept] = np.arange(len(kept), dtype=np.uint32)
            extremes = _mean_extremes(model, spool, numbers, threads)
            model = replace(model, threshold=options.sparsity / 100 * extremes)
        if found := model.facts.get("log_likelihoods"):
            reporter.message(f"log-likelihood after {len(found) - 1} iterations: {found[-1]:.5f}")
        if output is not None:
            write_with_fallback((output, "model", model.save))
        return model


def _resources(texts: Iterable[Text], vectors: Vectors, options: ScdvOptions) -> dict[str, Any]:
    """Return the numbers of documents, tokens and words, and the memory required for fitting.

    The posteriors, one number for each word and cluster, are counted in full, although most of them
    become 0.
    """
    counted = count_words(texts, vectors, options)
    table = 4 * counted.with_vectors * vectors.dim
    posteriors = 8 * counted.with_vectors * options.clusters
    memory = vectors.vectors.nbytes + 3 * table + 2 * posteriors
    remedy = "lower --clusters, raise --min-df, or use vectors of fewer words or dimensions"
    return {
        "documents": counted.documents,
        "tokens": counted.tokens,
        "words": len(counted.kept),
        "memory_bytes": memory,
        "memory_available_bytes": memory_limit(),
        "refused": shortage(memory, "fitting", remedy),
    }


def _watched(texts: Iterable[Text], reporter: Reporter) -> Iterator[Text]:
    reporter.stage("reading", None, "documents")
    for number, text in enumerate(texts, 1):
        yield text
        if number % DOCUMENTS_A_REPORT == 0:
            reporter.advance(number)


def count_words(
    texts: Iterable[Text], vectors: Vectors, options: ScdvOptions, spool: Spool | None = None
) -> _WordCounts:
    """Count the words in the documents, and select the words of the model."""
    n, has_subwords = len(vectors.words), vectors.subwords is not None
    every = options.representation == "tfidf" or bool(options.tfidf) or has_subwords
    numbering = Numbering(vectors.words, None if every else NEW_WORDS, vectors.tokenizer)
    counts, documents_with = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    documents = tokens = without_words = 0
    for batch in numbering.batches(texts):
        rows = count_rows(batch, numbering.known if every else n)
        width = rows.shape[1]
        counts.resize(width, refcheck=False)
        documents_with.resize(width, refcheck=False)
        documents_with += np.bincount(rows.indices, minlength=width)
        counts += np.bincount(rows.indices, rows.data, width).astype(np.int64)
        documents += len(batch)
        tokens += len(batch.ids)
        without_words += int(np.count_nonzero(np.diff(rows.indptr) == 0))
        if spool is not None:
            spool.add(batch)
    kept = np.flatnonzero(documents_with >= options.min_df)
    first = len(counts) if has_subwords else n
    having = int(np.count_nonzero(kept < first))
    found = _WordCounts(
        numbering, counts, documents_with, documents, tokens, without_words, kept, having
    )
    _check(found, options, first)
    return found


def _check(counted: _WordCounts, options: ScdvOptions, with_vectors: int) -> None:
    kept = counted.kept
    if not counted.documents:
        raise CorpusError("there are no documents; pass at least one text")
    needed = counted.counts if options.representation == "tfidf" else counted.counts[:with_vectors]
    if not needed.any():
        raise CorpusError(
            f"none of the {counted.tokens:,} tokens in the {counted.documents:,} documents has a "
            "vector; use word vectors for the language and the tokenization of the documents"
        )
    if not len(kept) or (options.representation != "tfidf" and kept[0] >= with_vectors):
        raise CorpusError(f"no word occurs in at least {options.min_df} documents; lower --min-df")


def _with_words(
    vectors: Vectors,
    counted: _WordCounts,
    options: ScdvOptions,
    threads: int | None,
    reporter: Reporter,
) -> DocumentModel:
    """Create the model from the word counts, with a threshold of 0."""
    kept = counted.kept
    having = kept[: counted.with_vectors]
    words = counted.numbering.words_of(kept)
    matrix = _unit_vectors(_rows(vectors, having, words), words, bool(options.center))
    counts = counted.counts[kept]
    smooth = (1 + counted.documents) / (1 + counted.documents_with[kept])
    idf = (np.log(smooth) + 1).astype(np.float32)
    facts: dict[str, Any] = {
        "documents": counted.documents,
        "documents_without_words": counted.without_words,
        "tokens": counted.tokens,
        "known_tokens": int(counts.sum()),
        "words": len(kept),
    }
    posteriors, mixture, more = _clusters(matrix, options, threads, reporter)
    return DocumentModel(
        options, words, matrix, idf, counts, posteriors, mixture, 0.0, {**facts, **more}
    )


def _rows(vectors: Vectors, having: I64, words: Words) -> F32:
    """Return the vectors of the words with the IDs `having`, which are the first in `words`."""
    known = having[having < len(vectors.words)]
    matrix = np.asarray(vectors.vectors[known])
    if vectors.subwords is None or len(known) == len(having):
        return matrix
    more = vectors.subwords.vectors_of(words[len(known) : len(having)])
    return np.concatenate([matrix, more])


def _unit_vectors(matrix: F32, words: Words, center: bool) -> F32:
    if (row := infinite_row(matrix)) is not None:
        raise FormatError(
            f"the vector of {words[row]!a} contains NaN or infinity; train or convert the vectors "
            "again"
        )
    unit: F32 = matrix * inverse_lengths(matrix)[:, None]
    if center:
        unit -= unit.mean(axis=0, dtype=np.float64).astype(np.float32)
        unit *= inverse_lengths(unit)[:, None]
    return unit


def _clusters(
    matrix: F32,
    options: ScdvOptions,
    threads: int | None,
    reporter: Reporter,
) -> tuple[sparse.csr_matrix, Mixture | None, dict[str, Any]]:
    words = len(matrix)
    if options.representation != "scdv":
        return sparse.csr_matrix(np.ones((words, 1), dtype=np.float32)), None, {}
    reporter.stage("Gaussian mixture", options.iterations, "iterations")

    def report(number: int, likelihood: float) -> None:
        reporter.advance(number, loss=-likelihood)

    fitted = fit_mixture(matrix, options, threads, report)
    facts = {
        "log_likelihoods": fitted.log_likelihoods,
        "converged": fitted.converged,
    }
    parts = []
    for rows in blocks_of_rows(words):
        shares = fitted.mixture.posteriors(matrix[rows]).astype(np.float32)
        shares[shares < MIN_POSTERIOR] = 0
        parts.append(sparse.csr_matrix(shares))
    return sparse.vstack(parts, format="csr"), fitted.mixture, facts


def _mean_extremes(model: DocumentModel, spool: Spool, numbers: U32, threads: int | None) -> float:
    """Return the mean extreme entry: ``(|mean of minima| + |mean of maxima|) / 2``."""
    composer = model.composer()

    def extremes(batch: Batch) -> tuple[float, float, int]:
        ids = numbers[np.minimum(batch.ids, len(numbers) - 1)]
        lowest, highest = composer.extremes(batch.starts, ids)
        return float(lowest.sum(dtype=float)), float(highest.sum(dtype=float)), len(batch)

    low, high, documents = np.sum(list(ordered_map(extremes, spool, threads)), axis=0)
    return float(abs(low) + abs(high)) / 2 / float(documents)
