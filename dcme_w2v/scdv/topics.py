"""Describe topics by their words and their coherence, and words by their topics."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from dcme_w2v.declarations import whole_number
from dcme_w2v.errors import CorpusError, DcmeError, UnknownWordError
from dcme_w2v.formats.texts import Text
from dcme_w2v.numeric.arrays import F64, I64, specificity

from .model import DocumentModel, count_rows


@dataclass(frozen=True)
class Topic:
    """A topic, which is a component of the mixture and is described by words.

    Attributes
    ----------
    number : int
        Number, from 1.
    share : float
        P(topic), over the tokens of the training documents.
    words : list of (str, float)
        The most specific words, with P(word | topic). They are ranked by P(topic | word) times
        their `specificity`, given the log of documents / documents with the word.
    coherence : float or None
        See `coherences`.
    """

    number: int
    share: float
    words: list[tuple[str, float]]
    coherence: float | None = None


def topics(
    model: DocumentModel, words: int = 10, texts: Iterable[Text] | None = None
) -> list[Topic]:
    """Describe the topics of a model; if documents are given, also compute the topics' coherence.

    P(word | topic) = P(topic | word) P(word) / P(topic), where P(word) is the word's share of the
    tokens of the training documents. The coherence is computed on the most probable words.

    Parameters
    ----------
    model : DocumentModel
    words : int
        Words per topic.
    texts : iterable of bytes, optional
        Documents on which coherence is computed.

    Raises
    ------
    DcmeError
        The model is of the kind `average` or `tfidf`, which has no topics.
    """
    whole_number("words", words)
    shares, joint = _joint(model)
    columns = [joint.getcol(topic) for topic in range(len(shares))]
    measured: list[float | None] = [None] * len(columns)
    if texts is not None:
        probable = [_highest(column, column.data, words)[0] for column in columns]
        measured[:] = coherences(model, probable, texts)
    own = slice(len(model.vectors))
    specific, result = specificity(model.idf[own] - 1) / np.maximum(model.counts[own], 1), []
    # Rank the words of each topic by P(topic | word) times specificity.
    for topic, column in enumerate(columns):
        found, values = _highest(column, column.data * specific[column.indices], words)
        chances = values / max(float(shares[topic]), np.finfo(float).tiny)
        listed = [(model.words[int(i)], float(p)) for i, p in zip(found, chances, strict=True)]
        result.append(Topic(topic + 1, float(shares[topic]), listed, measured[topic]))
    return result


def senses(
    model: DocumentModel, word: str, words: int = 5, least: float = 0.05
) -> list[tuple[float, Topic]]:
    """Return the topics of a word as pairs of P(topic | word) and topic.

    Parameters
    ----------
    model : DocumentModel
    word : str
    words : int
        Words per topic.
    least : float
        Minimum P(topic | word).

    Raises
    ------
    DcmeError
        The word is not in the vocabulary.
    """
    number = model.words.find(word)
    if number is None or number >= len(model.vectors):
        raise UnknownWordError(
            f"{word} is not among the model's {len(model.words):,} words; check the spelling"
        )
    row = model.posteriors[number]
    everything = topics(model, words)
    order = np.argsort(-row.data, kind="stable")
    return [
        (float(row.data[i]), everything[int(row.indices[i])]) for i in order if row.data[i] >= least
    ]


def coherences(model: DocumentModel, top_words: list[I64], texts: Iterable[Text]) -> list[float]:
    """Return the coherence of each word list. Each list must be sorted from best to worst word.

    The coherence is the sum over pairs of ln((D(w, v) + 1) / D(v)), where v precedes w in the list
    and D counts the documents that words occur in (Mimno, Wallach, Talley, Leenders and McCallum
    2011, Optimizing semantic coherence in topic models). A v that occurs in no document counts as
    if it occurred in one document.

    Raises
    ------
    CorpusError
        There are no documents, or none has any of the words.
    """
    chosen = np.unique(np.concatenate(top_words))
    place = np.full(len(model.words), -1)
    place[chosen] = np.arange(len(chosen))
    together = np.zeros((len(chosen), len(chosen)))
    documents = 0
    for batch in model.numbering().batches(texts):
        documents += len(batch)
        rows = count_rows(batch, len(model.words))[:, chosen]
        rows.data[:] = 1
        together += (rows.T @ rows).toarray()
    if not documents:
        raise CorpusError(
            "topic coherence requires documents, but no documents were found; use a file with one "
            "document per line"
        )
    if not together.any():
        raise CorpusError(
            f"none of the {documents:,} documents contains any topic word; use documents with "
            "the language and the tokenization of the training documents"
        )
    result = []
    for words in top_words:
        own = together[np.ix_(place[words], place[words])]
        before = np.maximum(np.diag(own), 1)
        result.append(float(np.tril(np.log((own + 1) / before), -1).sum()))
    return result


def _joint(model: DocumentModel) -> tuple[F64, sparse.csc_matrix]:
    """Return P(topic) with shape (topics,), and P(topic, word) with one column per topic."""
    if model.mixture is None:
        raise DcmeError(
            f"a model with --representation={model.options.representation} has no topics; fit a "
            "model with --representation=scdv"
        )
    counts = model.counts[: len(model.vectors)]
    chances = counts / counts.sum()
    joint = sparse.csc_matrix(model.posteriors.astype(np.float64).multiply(
        chances[:, None]))  # fmt: skip
    return np.asarray(joint.sum(axis=0)).ravel(), joint


def _highest(column: sparse.csc_matrix, rank: F64, count: int) -> tuple[I64, F64]:
    """Return the rows and the values of the `count` entries with the highest ranks in a column."""
    order = np.lexsort((column.indices, -rank))[:count]
    return column.indices[order].astype(np.int64), column.data[order]
