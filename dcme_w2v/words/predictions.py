"""Predictions of a saved model: the probability of each token of a text, and words for a gap.

A token is predicted from the words on both sides of it in its line, as in training, by the exact
softmax over the vocabulary. Out-of-vocabulary tokens are dropped first.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dcme_w2v.errors import UsageError
from dcme_w2v.formats.documents import checked_line, read_documents
from dcme_w2v.formats.sentences import CorpusLike, paths_or_sentences
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F64, I64, U32
from dcme_w2v.text.cache import LAST
from dcme_w2v.text.token_ids import Numbering, batched

from .language_model import LanguageModel, ModelLike
from .questions import Answer, Line

GAP = "_"
BYTES_AT_ONCE = 1 << 18  # of lines of text


@dataclass(frozen=True)
class ScoredLine:
    """A line of text with the log-probability of each token.

    Attributes
    ----------
    tokens : list of str
    log_probabilities : ndarray of float64, shape (n,)
        NaN for tokens that are out of vocabulary or the only known one of their line.
    """

    tokens: list[str]
    log_probabilities: F64

    @property
    def scored(self) -> int:
        """Number of tokens that have a log-probability."""
        return int(np.count_nonzero(~np.isnan(self.log_probabilities)))

    @property
    def log_probability(self) -> float:
        """Sum over the scored tokens; NaN without any."""
        return float(np.nansum(self.log_probabilities)) if self.scored else float("nan")


def score(
    model: ModelLike,
    corpus: CorpusLike,
    *,
    context: str | None = None,
    read_vocab: str | None = None,
    encoding_errors: str = "strict",
    threads: int | None = None,
) -> Iterator[ScoredLine]:
    """Yield the lines of a corpus, also empty ones, with the log-probability of each token.

    Each token is predicted from the words on both sides of it, so that the sum over a line compares
    lines and is not the log-probability of the line.

    Parameters
    ----------
    model : path, Vectors or LanguageModel
        Vectors of `train`, a folder of --output-tables, or vectors with --output-context.
    corpus : path, paths, or iterable of sentences
        As in `train`.
    context, read_vocab : path, optional
        Context vectors and word counts, if the manifest does not name them.
    encoding_errors : {"strict", "replace", "skip"}
        Tokens of files that are not UTF-8.
    threads : int, optional
        Default: the CPUs that this process may use.

    Yields
    ------
    ScoredLine

    Raises
    ------
    UsageError
        The model has no context vectors.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", objective="dcme", dim=8, epochs=1, threads=1)
    >>> [(line.tokens, line.scored) for line in dw.score(v, ["the king nobody", ["the", "man"]])]
    [(['the', 'king', 'nobody'], 2), (['the', 'man'], 2)]
    """
    loaded = LanguageModel.load(model, context, read_vocab)
    numbering = Numbering(loaded.words)
    for raw in batched(_texts(corpus, encoding_errors), BYTES_AT_ONCE):
        texts = [loaded.tokenizer.tokenize(text)[0] for text in raw]
        starts, ids = numbering.batch(texts)
        logs = _logs(loaded, starts, ids, threads)
        for text, first, end in zip(texts, starts[:-1], starts[1:], strict=True):
            yield ScoredLine([word.decode() for word in text.split()], logs[first:end])


def _texts(corpus: CorpusLike, encoding_errors: str) -> Iterator[bytes]:
    """Yield the lines of a corpus."""
    paths, sentences = paths_or_sentences(corpus)
    if sentences is None:
        for document in read_documents(paths, form="text", encoding_errors=encoding_errors):
            yield document.text
        return
    for number, line in enumerate(sentences.lines(), 1):
        yield checked_line(line.rstrip(b"\r\n"), "the text", number, encoding_errors)


def _logs(model: LanguageModel, starts: I64, ids: U32, threads: int | None) -> F64:
    """Return the log-probability of each token, NaN for those that have none."""
    logs = np.full(len(ids), np.nan)
    line = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    known = np.flatnonzero(ids < len(model.words))
    line = line[known]
    some = np.bincount(line, minlength=len(starts))[line] > 1
    known, line = known[some], line[some]
    if len(known):
        text = ids[known].astype(np.uint32)
        text[np.append(line[1:] != line[:-1], True)] |= LAST
        logs[known] = model.log_probabilities(text, threads)
    return logs


def predict_word(
    model: ModelLike,
    text: str | Sequence[str],
    *,
    k: int = 10,
    context: str | None = None,
    read_vocab: str | None = None,
) -> list[tuple[str, float]]:
    """Return the most probable words for the gap ``_`` in a line, with their probabilities.

    The model predicts from both sides: a gap at the end is the last word of a sentence, not the
    next one. Out-of-vocabulary words are skipped.

    Parameters
    ----------
    model : path, Vectors or LanguageModel
        As in `score`.
    text : str or list of str
        A line or its tokens, one of which is ``_``.
    k : int
        Number of words.
    context, read_vocab : path, optional
        As in `score`.

    Returns
    -------
    list of (word, probability)
        In descending order; empty if no other word of the line is in the vocabulary.

    Raises
    ------
    UsageError
        There is not one gap with words around it.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", objective="dcme", dim=8, epochs=1, threads=1)
    >>> len(dw.predict_word(v, "the king _ the queen", k=3))
    3
    """
    if k < 1:
        raise UsageError(f"-k={k}: must be at least 1")
    line = text.split() if isinstance(text, str) else list(text)
    [answer] = Predictor(LanguageModel.load(model, context, read_vocab), k).gaps([line])
    if answer.problem:
        raise UsageError(answer.problem)
    found = answer.record.get("predictions", [])
    return [(one["word"], one["probability"]) for one in found]


@dataclass(frozen=True)
class Predictor:
    """Answers lines of words with one gap, `GAP`, with the `k` most probable words."""

    model: LanguageModel
    k: int = 10

    @property
    def words(self) -> Words:
        """The vocabulary."""
        return self.model.words

    def gaps(self, lines: Sequence[Line]) -> Iterator[Answer]:
        """Answer lines such as ``the queen _ england``."""
        split = self.model.tokenizer
        for line in lines:
            if not split.is_whitespace:
                parts = ([word] if word == GAP else split.tokens(word) for word in line)
                line = list(itertools.chain.from_iterable(parts))
            yield self._answer(line)

    def _answer(self, line: Line) -> Answer:
        given = [word for word in line if word != GAP]
        missing = [word for word in dict.fromkeys(given) if word not in self.words]
        known = [word for word in line if word == GAP or word not in missing]
        answer = Answer({"words": list(line)}, [], " ".join(line), missing)
        if missing:
            answer.record["missing"] = missing
        if len(line) - len(given) != 1 or not given:
            answer.problem = f"give words around one gap, {GAP}, as: the {GAP} of england"
            answer.record["error"] = answer.problem
        elif len(known) > 1:
            found = self._most_probable(known)
            answer.rows = [(word, f"{share:.6g}") for word, share in found]
            answer.record["predictions"] = [
                {"word": word, "probability": share} for word, share in found
            ]
        return answer

    def _most_probable(self, known: Sequence[str]) -> list[tuple[str, float]]:
        gap = known.index(GAP)
        ids = np.array([self.words.find(word) or 0 for word in known], dtype=np.uint32)
        ids[gap] = 0  # no context contains its own token
        ids[-1] |= LAST
        shares = self.model.distribution(ids, gap)
        best = np.argsort(-shares, kind="stable")[: self.k]
        return [(self.words[row], float(shares[row])) for row in best.tolist()]
