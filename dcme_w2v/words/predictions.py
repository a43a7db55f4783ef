"""Predictions of a saved model: words for a gap in a line.

A word is predicted from the words on both sides of it in its line, as in training, by the exact
softmax over the vocabulary. Out-of-vocabulary tokens are dropped first.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from dcme_w2v.errors import UsageError
from dcme_w2v.text.cache import LAST

from .language_model import LanguageModel, ModelLike
from .questions import Answer, Line

GAP = "_"


def predict_word(
    model: ModelLike,
    text: str | Sequence[str],
    *,
    topn: int = 10,
) -> list[tuple[str, float]]:
    """Return the most probable words for the gap ``_`` in a line, with their probabilities.

    The model predicts from both sides: a gap at the end is the last word of a sentence, not the
    next one. Out-of-vocabulary words are skipped.

    Parameters
    ----------
    model : path, Vectors or LanguageModel
        Vectors of `train`, or a file of --output-tables.
    text : str or list of str
        A line or its tokens, one of which is ``_``.
    topn : int
        Number of words.

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
    >>> len(dw.predict_word(v, "the king _ the queen", topn=3))
    3
    """
    if topn < 1:
        raise UsageError(f"--topn={topn}: must be at least 1")
    line = text.split() if isinstance(text, str) else list(text)
    [answer] = gaps_of(LanguageModel.load(model), [line], topn)
    if answer.problem:
        raise UsageError(answer.problem)
    found = answer.record.get("predictions", [])
    return [(one["word"], one["probability"]) for one in found]


def gaps_of(model: LanguageModel, lines: Sequence[Line], topn: int) -> Iterator[Answer]:
    """Answer lines with one gap, such as ``the queen _ england``, by the most probable words."""
    split = model.tokenizer
    for line in lines:
        if not split.is_whitespace:
            parts = ([word] if word == GAP else split.tokens(word) for word in line)
            line = list(itertools.chain.from_iterable(parts))
        given = [word for word in line if word != GAP]
        missing = [word for word in dict.fromkeys(given) if word not in model.words]
        known = [word for word in line if word == GAP or word not in missing]
        answer = Answer({"words": list(line)}, [], " ".join(line), missing)
        if missing:
            answer.record["missing"] = missing
        if len(line) - len(given) != 1 or not given:
            answer.problem = f"give words around one gap, {GAP}, as: the {GAP} of england"
            answer.record["error"] = answer.problem
        elif len(known) > 1:
            found = _most_probable(model, known, topn)
            answer.rows = [(word, f"{share:.6g}") for word, share in found]
            answer.record["predictions"] = [
                {"word": word, "probability": share} for word, share in found
            ]
        yield answer


def _most_probable(
    model: LanguageModel, known: Sequence[str], topn: int
) -> list[tuple[str, float]]:
    gap = known.index(GAP)
    ids = np.array([model.words.find(word) or 0 for word in known], dtype=np.uint32)
    ids[gap] = 0  # no context contains its own token
    ids[-1] |= LAST
    shares = model.distribution(ids, gap)
    best = np.argsort(-shares, kind="stable")[:topn]
    return [(model.words[row], float(shares[row])) for row in best.tolist()]
