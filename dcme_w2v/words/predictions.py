"""Predict a missing word in a line of text with a saved model.

A word is predicted from the words on both sides of it in its line, as in training, by the exact
softmax over the vocabulary. Out-of-vocabulary tokens are dropped first.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from dcme_w2v.declarations import whole_number
from dcme_w2v.errors import UnknownWordError, UsageError, warn
from dcme_w2v.formats.texts import tokens_of
from dcme_w2v.numeric.shown import Rows
from dcme_w2v.text.cache import LAST

from .language_model import LanguageModel, ModelLike

GAP = "_"


def predict_word(
    model: ModelLike,
    text: str | Sequence[str],
    *,
    topn: int = 10,
) -> list[tuple[str, float]]:
    """Return the most probable words for the gap ``_`` in a line, and their probabilities.

    The model uses the words on both sides of the gap. A gap at the end of the line is the last word
    of a sentence, not the next word of an unfinished text. Out-of-vocabulary words are skipped with
    a warning.

    Parameters
    ----------
    model : path, Vectors or LanguageModel
        Vectors that `train` returned, or a file that ``train --output-tables`` wrote.
    text : str or list of str
        A line or its tokens, one of which is ``_``.
    topn : int
        Number of words to return.

    Returns
    -------
    list of (word, probability)
        The words with their probabilities, in descending order of probability.

    Raises
    ------
    UsageError
        The line does not contain exactly one gap, or contains no other words.
    KeyError
        No word around the gap is in the vocabulary.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", dim=8, epochs=1, threads=1)
    >>> len(dw.predict_word(v, "the king _ the queen", topn=3))
    3
    """
    whole_number("topn", topn)
    loaded = LanguageModel.load(model)
    split, words = loaded.tokenizer, loaded.words
    line = tokens_of(text) if isinstance(text, str) else list(text)
    if not split.is_whitespace:
        parts = ([word] if word == GAP else split.tokens(word) for word in line)
        line = list(itertools.chain.from_iterable(parts))
    missing = [word for word in dict.fromkeys(line) if word != GAP and word not in words]
    known = [word for word in line if word not in missing]
    if line.count(GAP) != 1 or len(line) == 1:
        raise UsageError(
            f"the line must contain exactly one gap ({GAP}) and other words; use a line such as: "
            f"the {GAP} of england"
        )
    if missing:
        message = f"no vector for {', '.join(missing)}"
        if len(known) == 1:
            raise UnknownWordError(f"{message}; check spelling and case")
        warn(f"{message}; skipped")
    gap = known.index(GAP)
    ids = np.array([words.find(word) or 0 for word in known], dtype=np.uint32)
    ids[gap] = 0  # use any ID, because a token's context does not contain the token itself
    ids[-1] |= LAST
    shares = loaded.distribution(ids, gap)
    best = np.argsort(-shares, kind="stable")[:topn]
    return Rows((words[row], float(shares[row])) for row in best.tolist())
