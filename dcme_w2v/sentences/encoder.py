"""`SentenceEncoder`: sentence vectors as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dcme_w2v.errors import CorpusError
from dcme_w2v.files.opening import is_utf8
from dcme_w2v.formats.sentences import Sentence
from dcme_w2v.formats.texts import as_texts, blocks, joined
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.numeric.sklearn_base import (
    TextTransformer,
    options_of,
    parameters,
)
from dcme_w2v.text.tokenizer import Tokenizer

from .options import EncodeOptions
from .pooling import Components
from .table import SentenceTable, with_manifest

_BLOCK_BYTES = 1 << 20


@parameters(EncodeOptions, first={"vectors": None}, last={"tokenize": None, "threads": None})
class SentenceEncoder(TextTransformer):
    """Sentence vectors: the mean of the pooled rows of the words.

    Parameters
    ----------
    vectors : path or Vectors
        Word vectors. A path is read by `fit`. Without counts the weights follow from the order of
        the words, which is then taken to be the order of their frequency.
    {options}
    tokenize : {"whitespace", "words"} or TokenizerOptions, optional
        How sentences are split. Default: as the text that the vectors were trained on.
    threads : int, optional
        Default: the CPUs that this process may use. Results do not depend on it.

    Attributes
    ----------
    n_features_out_ : int
        Number of columns.

    Notes
    -----
    With ``pooling="usif"``, `fit` finds the components that the given sentences share, and
    `transform` removes them.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> words, rows = ["tea", "green", "car"], [[2, 0], [2, 1], [0, 2]]
    >>> vectors = dw.Vectors(words, rows, counts=[5, 3, 2])
    >>> dw.SentenceEncoder(vectors, pooling="mean").fit_transform(["green tea", "car", "?"])
    array([[2. , 0.5],
           [0. , 2. ],
           [0. , 0. ]], dtype=float32)
    """

    _kind = "sentence"

    def fit(self, X: Iterable[Sentence], y: Any = None) -> SentenceEncoder:
        """Read the vectors and make their rows; only uSIF learns from the sentences X.

        Parameters
        ----------
        X : iterable of str, bytes or lists of str
            Sentences. A list has the tokens of one, which no tokenizer changes; a null is a row of
            zeros.
        y : ignored

        Raises
        ------
        ValueError
            A parameter is not valid, or X has items that are not texts.
        """
        self._fitted(X)
        return self

    def fit_transform(self, X: Iterable[Sentence], y: Any = None) -> F32:
        """Fit, and return the vectors of the same sentences."""
        rows = self._fitted(X)
        return rows if self._components is None else self._components.removed_from(rows)

    def transform(self, X: Iterable[Sentence]) -> F32:
        """Return the vectors of sentences, float32, shape (sentences, n_features_out_)."""
        rows = self._encoded(X)
        return rows if self._components is None else self._components.removed_from(rows)

    def _fitted(self, X: Iterable[Sentence]) -> F32:
        if self.vectors is None:
            raise ValueError("SentenceEncoder needs vectors: SentenceEncoder(path or Vectors)")
        options = options_of(self)
        self._table = SentenceTable(
            with_manifest(self.vectors), options, Tokenizer.of(self.tokenize)
        )
        self.n_features_out_ = int(self._table.rows.shape[1])
        self._components: Components | None = None
        rows = self._encoded(X)
        if options.pooling == "usif":
            self._components = Components.of_products(rows.T.astype(np.float64) @ rows)
        return rows

    def _encoded(self, X: Iterable[Sentence]) -> F32:
        parts = self._table.encode(blocks_of(X), self.threads)
        nothing = np.empty((0, self.n_features_out_), dtype=np.float32)
        return np.concatenate([nothing, *parts])


def blocks_of(sentences: Iterable[Sentence]) -> Iterator[bytes]:
    """Yield sentences as lines, a block at a time; line ends inside of a text become spaces."""
    return map(joined, blocks(_checked(as_texts(sentences, "sentence")), _BLOCK_BYTES))


def _checked(texts: Iterable[bytes]) -> Iterator[bytes]:
    for number, text in enumerate(texts):
        if b"\0" in text:
            raise CorpusError(f"sentence {number} has a NUL character; give text")
        yield text if is_utf8(text) else type(text)(text.decode(errors="replace").encode())
