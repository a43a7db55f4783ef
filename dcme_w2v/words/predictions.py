"""What a saved model predicts: the probability of each token of a text, and the words of a gap.

A token is predicted from the words on both sides of it in its line, as in training, by the exact
softmax over the vocabulary. Out-of-vocabulary tokens are dropped first. Called by the commands
`score` and `predict-word`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.formats.documents import read_documents
from dcme_w2v.formats.word_list import Words
from dcme_w2v.text.cache import LAST
from dcme_w2v.text.token_ids import Numbering
from dcme_w2v.words.language_model import LanguageModel
from dcme_w2v.words.questions import Answer, Line

GAP = "_"
AT_ONCE, BYTES_AT_ONCE = 256, 1 << 18  # lines of text


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
    log_probabilities: NDArray[np.float64]

    @property
    def scored(self) -> int:
        """Number of tokens that have a log-probability."""
        return int(np.count_nonzero(~np.isnan(self.log_probabilities)))

    @property
    def log_probability(self) -> float:
        """Sum over the scored tokens; NaN without any."""
        return float(np.nansum(self.log_probabilities)) if self.scored else float("nan")


def scored_lines(
    model: LanguageModel,
    corpus: Sequence[str],
    threads: int | None = None,
    encoding_errors: str = "strict",
) -> Iterator[ScoredLine]:
    """Yield the lines of a corpus, also empty ones, with the log-probability of each token."""
    lines = (
        one.text for one in read_documents(corpus, form="text", encoding_errors=encoding_errors)
    )
    numbering = Numbering(model.words)
    for texts in _batches(lines):
        starts, ids = numbering.batch(texts)
        logs = _logs(model, starts, ids, threads)
        for text, first, end in zip(texts, starts[:-1], starts[1:], strict=True):
            yield ScoredLine([word.decode() for word in text.split()], logs[first:end])


def _batches(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    held: list[bytes] = []
    for line in lines:
        held.append(line)
        if len(held) == AT_ONCE or sum(map(len, held)) > BYTES_AT_ONCE:
            yield held
            held = []
    if held:
        yield held


def _logs(
    model: LanguageModel, starts: NDArray[np.int64], ids: NDArray[np.uint32], threads: int | None
) -> NDArray[np.float64]:
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
        for line in lines:
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
