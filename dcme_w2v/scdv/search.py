"""Retrieval: ranking of documents by document vectors and by a language model."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from dcme_w2v.errors import FormatError, UnknownWordError, UsageError, warn
from dcme_w2v.files.opening import read_whole
from dcme_w2v.formats.artifact import kind_of_artifact
from dcme_w2v.formats.columns import Source
from dcme_w2v.formats.documents import read_documents
from dcme_w2v.formats.sparse_io import read_labels, read_npz
from dcme_w2v.formats.texts import Text, bytes_of
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F64, I64, Bools
from dcme_w2v.numeric.sparse_rows import unit_rows
from dcme_w2v.sentences.options import EncodeOptions
from dcme_w2v.sentences.table import SentenceTable
from dcme_w2v.text.token_ids import AnyTokenizer, Numbering
from dcme_w2v.words.vectors import for_text

from .model import KIND, DocumentModel, count_rows
from .options import DIRICHLET_PRIOR

SHOWN = 80  # characters of a text


class Hit(NamedTuple):
    """A result: the row of a document, from 0, its score and labels, and where wanted its text."""

    document: int
    score: float
    labels: tuple[str, ...] = ()
    text: str | None = None


def search(
    model: str,
    index: str,
    query: Sequence[str] = (),
    *,
    k: int = 10,
    queries: Source | None = None,
    documents: Source | None = None,
    show: bool = False,
    lm: float = 0.0,
    prior: float = DIRICHLET_PRIOR,
    labels: str | None = None,
    score: bool = False,
    judgments: str | None = None,
) -> list[list[Hit]] | dict[str, Any]:
    """Rank the documents of an index by similarity to queries; see ``dcme-w2v scdv search``.

    Returns
    -------
    list of list of Hit, or dict
        The k best documents of each query; with `score`, the mean average precision.

    Raises
    ------
    UsageError, FormatError
        Options or files do not fit each other.
    UnknownWordError
        No query has a known word.
    """
    rows = read_npz(index)
    asked = _queries(query, queries)
    texts = [text for text, _ in asked]
    names: list[tuple[str, ...]] = [()] * rows.shape[0]
    if labels:
        names = read_labels(labels, rows.shape[0])
    loaded: DocumentModel | SentenceTable
    if kind_of_artifact(model) == KIND:
        loaded = DocumentModel.load(model)
    else:
        loaded = SentenceTable(for_text(model), EncodeOptions())
    language = None
    starts: list[str | None] = [None] * len(names)
    if show and documents is None:
        raise UsageError("--show: requires the documents of INDEX; give --documents")
    if documents is not None:
        given = [one.text for one in read_documents([documents])]
        language = QueryLikelihood(given, prior, loaded.tokenizer)
        starts = [_beginning(text) for text in given] if show else starts
    finder = Finder(loaded, rows, language, lm)
    if score:
        wanted: Iterable[Bools] = sharing_labels([own for _, own in asked], names)
        if judgments:
            wanted = read_judgments(judgments, len(asked), rows.shape[0])
        value = finder.mean_average_precision(texts, wanted)
        return {"mean_average_precision": value, "queries": len(asked)}
    answers = list(finder.answers(texts, k))
    if not any(answers):
        raise UnknownWordError("no query has a word that the model and the documents have")
    return [
        [hit._replace(labels=names[hit.document], text=starts[hit.document]) for hit in hits]
        for hits in answers
    ]


def _queries(query: Iterable[str], queries: Source | None) -> list[tuple[Text, tuple[str, ...]]]:
    """Return texts and labels of all queries."""
    try:
        asked: list[tuple[Text, tuple[str, ...]]] = [(text.encode(), ()) for text in query]
    except UnicodeEncodeError:
        raise UsageError("QUERY: is not UTF-8; convert it, or give --queries FILE") from None
    if queries:
        asked += [(one.text, one.labels) for one in read_documents([queries])]
    if not asked:
        raise UsageError("no query; give one, or --queries FILE")
    return asked


def _beginning(text: Text) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(bytes_of(text)[: 8 * SHOWN].decode("utf-8", "replace").split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"


class QueryLikelihood:
    """Query likelihood with Dirichlet smoothing.

    Parameters
    ----------
    texts : iterable of bytes
        The documents, in the order of the index.
    prior : float
        Dirichlet prior mu, in tokens (Zhai and Lafferty 2004, A study of smoothing methods for
        language models applied to information retrieval).
    tokenizer : optional
        How documents and queries are split (default: at whitespace).
    """

    def __init__(
        self,
        texts: Iterable[Text],
        prior: float = DIRICHLET_PRIOR,
        tokenizer: AnyTokenizer | None = None,
    ) -> None:
        if prior <= 0:
            raise UsageError(f"--prior={prior:g}: must be more than 0")
        self.prior = prior
        self._numbering = Numbering(Words.from_words([]), None, tokenizer)
        batches = list(self._numbering.batches(texts))
        known = self._numbering.known
        none = sparse.csr_matrix((0, known), dtype=np.int64)
        self._counts = sparse.csc_matrix(
            sparse.vstack([none, *(count_rows(batch, known) for batch in batches)])
        )
        self._lengths = np.asarray(self._counts.sum(axis=1)).ravel()
        total = np.asarray(self._counts.sum(axis=0)).ravel()
        self._collection = total / max(float(total.sum()), 1.0)

    def __len__(self) -> int:
        return len(self._lengths)

    def knows(self, query: Text) -> bool:
        """Whether a word of the query occurs in a document."""
        return len(self._ids(query)) > 0

    def _ids(self, query: Text) -> I64:
        """Return the words of a query that documents have."""
        ids = self._numbering.batch([query]).ids
        return ids[ids < len(self._collection)].astype(np.int64)

    def scores(self, query: Text) -> F64:
        """Return the mean log-probability of the query's tokens for each document.

        Words that occur in no document and terms that are the same for all documents are ignored.
        """
        ids = self._ids(query)
        scores = np.log(self.prior / (self._lengths + self.prior))
        for word, count in zip(*np.unique(ids, return_counts=True), strict=True):
            column = self._counts.getcol(int(word))
            gains = np.log1p(column.data / (self.prior * self._collection[word]))
            scores[column.indices] += gains * (count / len(ids))
        return scores


class RowModel(Protocol):
    """Turns texts into rows, as `dcme_w2v.scdv.model.DocumentModel` does."""

    @property
    def columns(self) -> int:
        """The length of a row."""

    def transform(self, texts: Iterable[Text]) -> Iterator[sparse.csr_matrix]:
        """Yield the rows of texts, some at a time."""


class Finder:
    """Scores documents for queries.

    Parameters
    ----------
    model : RowModel
        The model that made the index.
    index : csr_matrix, shape (documents, columns)
        The document vectors.
    language_model : QueryLikelihood, optional
        Language model of the same documents.
    share : float
        Weight of the language model, 0 to 1: the score is share x its score, scaled to 0 .. 1 over
        the documents, plus (1 - share) x cosine.

    Raises
    ------
    UsageError
        `share` is not in 0 .. 1, or is not 0 without a language model.
    FormatError
        The sizes of index, model and language model do not match.
    """

    def __init__(
        self,
        model: RowModel,
        index: sparse.csr_matrix,
        language_model: QueryLikelihood | None = None,
        share: float = 0.0,
    ) -> None:
        if not 0 <= share <= 1 or (share and language_model is None):
            raise UsageError(f"--lm={share:g}: give 0 to 1; a value above 0 requires --documents")
        if index.shape[1] != model.columns:
            raise FormatError(
                f"the index has {index.shape[1]:,} columns, the model {model.columns:,}: "
                "transform the documents with this model"
            )
        if language_model is not None and len(language_model) != index.shape[0]:
            raise FormatError(
                f"the index has {index.shape[0]:,} rows and --documents {len(language_model):,} "
                "documents; give the same documents"
            )
        self._model, self._share = model, share
        self._language_model = language_model if share else None
        self._index = unit_rows(index).T.tocsr()

    def scores(self, queries: Sequence[Text]) -> Iterator[F64]:
        """Yield the documents' scores for each query, shape (documents,).

        They are 0, with a warning, where no word of the query is known.
        """
        if not queries:
            return
        rows = (row for part in self._model.transform(queries) for row in unit_rows(part))
        for number, (query, row) in enumerate(zip(queries, rows, strict=True), 1):
            language = self._language_model
            if row.nnz or (language is not None and language.knows(query)):
                cosines = (row @ self._index).toarray().ravel().astype(np.float64)
                yield self._mixed(cosines, query)
            else:
                warn(f"query {number}: none of its words is known; it has no answers")
                yield np.zeros(self._index.shape[1])

    def answers(self, queries: Sequence[Text], k: int = 10) -> Iterator[list[Hit]]:
        """Yield the k best documents for each query, best first; none where all scores are 0."""
        if k < 1:
            raise UsageError(f"-k {k}: must be at least 1")
        for scores in self.scores(queries):
            order = np.argsort(-scores, kind="stable")[: k if scores.any() else 0]
            yield [Hit(int(i), float(scores[i])) for i in order]

    def mean_average_precision(self, queries: Sequence[Text], relevant: Iterable[Bools]) -> float:
        """Return MAP over the queries that have a relevant document.

        Parameters
        ----------
        queries : sequence of bytes
        relevant : iterable of ndarray of bool, shape (documents,)
            Which documents are relevant to each query.

        Raises
        ------
        UsageError
            No query has a relevant document.
        """
        found = zip(self.scores(queries), relevant, strict=True)
        precisions = [average_precision(scores, wanted) for scores, wanted in found if wanted.any()]
        if not precisions:
            raise UsageError("no query has a relevant document; check the labels or judgments")
        return float(np.mean(precisions))

    def _mixed(self, cosines: F64, query: Text) -> F64:
        if self._language_model is None:
            return cosines
        likelihood = self._language_model.scores(query)
        likelihood -= likelihood.min()
        likelihood /= max(float(likelihood.max()), np.finfo(float).tiny)
        return self._share * likelihood + (1 - self._share) * cosines


def average_precision(scores: F64, relevant: Bools) -> float:
    """Return the mean, over the relevant documents, of the precision at each one's rank."""
    ranks = np.flatnonzero(relevant[np.argsort(-scores, kind="stable")]) + 1
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks))


def sharing_labels(
    queries: Sequence[tuple[str, ...]], documents: Sequence[tuple[str, ...]]
) -> Iterator[Bools]:
    """Yield for each query which documents share a label with it."""
    having: dict[str, Bools] = {}
    for number, labels in enumerate(documents):
        for label in labels:
            having.setdefault(label, np.zeros(len(documents), dtype=np.bool_))[number] = True
    for labels in queries:
        wanted = np.zeros(len(documents), dtype=np.bool_)
        for label in labels:
            wanted |= having.get(label, wanted)
        yield wanted


def read_judgments(path: str, queries: int, documents: int) -> list[Bools]:
    """Read relevant pairs, lines "query document", numbered from 1.

    Raises
    ------
    FormatError
        A line is not two numbers, or a number is out of range.
    """
    relevant = [np.zeros(documents, dtype=np.bool_) for _ in range(queries)]
    for number, line in enumerate(read_whole(path).splitlines(), 1):
        parts = line.split()
        numbers = [int(part) for part in parts if part.isdigit()]
        if len(parts) != 2 or len(numbers) != 2:
            raise FormatError(f"{path}:{number}: give two numbers, a query and a document")
        query, document = numbers
        if not (0 < query <= queries and 0 < document <= documents):
            raise FormatError(
                f"{path}:{number}: there are {queries} queries and {documents} documents"
            )
        relevant[query - 1][document - 1] = True
    return relevant
