"""`SentenceEncoder`: a scikit-learn transformer that converts sentences to vectors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dcme_w2v.formats.corpus import Sentence
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.numeric.estimators import options_of, parameters
from dcme_w2v.numeric.sklearn_base import TextTransformer
from dcme_w2v.words.vectors import for_text

from .options import EncodeOptions
from .pooling import Components
from .table import SentenceTable


@parameters(
    EncodeOptions,
    first={"vectors": None},
    last={"tokenize": None, "threads": None},
    without=("verbose",),
)
class SentenceEncoder(TextTransformer):
    """A transformer that encodes each sentence as the mean of its words' pooled vectors.

    Parameters
    ----------
    vectors : path or Vectors
        Word vectors. A path is read in `fit`. Vectors without word counts are assumed to be in
        descending order of word frequency, from which the weights of words are computed.
    {options}
    tokenize : {"whitespace", "words"} or dict, optional
        How sentences are split into tokens. By default, they are split in the same way as the
        training text of the vectors, which is recognized if it was lowercase without punctuation. A
        dict sets options of "words": ``{"keep_case": True}``.
    threads : int, optional
        Number of threads (default: the number of CPUs available to this process). Results do not
        depend on this number.

    Attributes
    ----------
    n_features_out_ : int
        Number of columns that `transform` returns.

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
        """Read and pool the word vectors; only with uSIF does the result also depend on X.

        Parameters
        ----------
        X : iterable of str, bytes or lists of str
            Sentences. A list has the tokens of one sentence and is not split further; a null
            becomes a row of zeros.
        y : ignored

        Raises
        ------
        ValueError
            A parameter is not valid, or X contains items that are not texts.
        """
        self._fitted(X)
        return self

    def fit_transform(self, X: Iterable[Sentence], y: Any = None) -> F32:
        """Fit the encoder to sentences, and return the vectors of these sentences."""
        return self._finished(self._fitted(X))

    def transform(self, X: Iterable[Sentence]) -> F32:
        """Return sentence vectors as float32 rows, shape (sentences, n_features_out_)."""
        return self._finished(self._table.vectors_of(X, self.threads))

    def _finished(self, rows: F32) -> F32:
        if self._components is not None:
            rows = self._components.removed_from(rows)
        return self._table.scaled(rows)

    def _fitted(self, X: Iterable[Sentence]) -> F32:
        if self.vectors is None:
            raise ValueError("SentenceEncoder: vectors is None; pass a path or a Vectors object")
        options = options_of(self)
        self._table = SentenceTable(for_text(self.vectors, self.tokenize), options)
        self.n_features_out_ = self._table.columns
        rows = self._table.vectors_of(X, self.threads)
        self._components = Components.of(rows) if options.pooling == "usif" else None
        return rows
