"""`SCDV`: a scikit-learn transformer that converts documents to vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dcme_w2v.formats.texts import as_texts
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.numeric.estimators import options_of, parameters
from dcme_w2v.numeric.sklearn_base import TextTransformer
from dcme_w2v.words.vectors import for_text

from .fit import fit_documents
from .model import DocumentModel
from .options import ScdvOptions

Document = str | bytes | Sequence[str]


@parameters(
    ScdvOptions,
    first={"vectors": None},
    last={"tokenize": None, "threads": None, "sparse_output": True},
)
class SCDV(TextTransformer):
    """A transformer that computes sparse composite document vectors (Mekala et al. 2017).

    Parameters
    ----------
    vectors : path or Vectors
        Word vectors. A path is read only in `fit`, so that clones in a grid search stay small.
    {options}
    tokenize : {"whitespace", "words"} or dict, optional
        How texts are split into tokens. By default, they are split in the same way as the training
        text of the vectors, which is recognized if it was lowercase without punctuation. A dict
        sets options of "words": ``{"keep_case": True}``.
    threads : int, optional
        Number of threads (default: the number of CPUs available to this process). Results do not
        depend on this number.
    sparse_output : bool, default True
        If True, `transform` returns a sparse matrix; if False, an array, which `set_output`
        requires.
    {verbose}

    Attributes
    ----------
    model_ : DocumentModel
        The fitted model; its `save` writes the file that ``dcme-w2v transform`` reads.
    n_features_out_ : int
        Number of columns that `transform` returns.

    Examples
    --------
    >>> import numpy as np
    >>> from dcme_w2v import SCDV
    >>> from dcme_w2v.formats.vocabulary import Words
    >>> from dcme_w2v.words.vectors import Vectors
    >>> words = Words.from_words(["tea", "coffee", "car", "bus"])
    >>> vectors = Vectors(words, np.array([[2, 0], [2, 1], [0, 2], [1, 2]], dtype=np.float32))
    >>> SCDV(vectors, clusters=2).fit_transform(["tea coffee", "car bus", "tea"]).shape
    (3, 8)
    >>> SCDV(vectors, clusters=2, tfidf=0).fit_transform([["tea", "coffee"], ["car"]]).shape
    (2, 4)
    """

    _kind = "scdv"

    def fit(self, X: Iterable[Document], y: Any = None) -> SCDV:
        """Fit the model to training documents.

        Parameters
        ----------
        X : iterable of str, bytes or token lists, such as a list or a Series
            Documents; a list of tokens is not split further.
        y : ignored

        Raises
        ------
        ValueError
            A parameter is not valid, or X contains an item that is not a document.
        """
        if self.vectors is None:
            raise ValueError("SCDV: vectors is None; pass a path or a Vectors object")
        options, texts = options_of(self), as_texts(X)
        loaded = for_text(self.vectors, self.tokenize)
        own = {"threads": self.threads, "progress": self._progress}
        self.model_: DocumentModel = fit_documents(texts, loaded, options, **own)
        self.n_features_out_ = self.model_.columns
        return self

    def fit_transform(self, X: Iterable[Document], y: Any = None) -> sparse.csr_matrix | F32:
        """Fit the model to documents, and return their vectors; X is read twice."""
        kept = list(X) if isinstance(X, Iterator) else X
        return self.fit(kept).transform(kept)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the column names: ``scdv0``, ``scdv1``, ..., then the words of tf-idf columns."""
        names, options = super().get_feature_names_out(), self.model_.options
        if options.tfidf or options.representation == "tfidf":
            words = list(self.model_.words)
            names[len(names) - len(words) :] = words
        return names

    def transform(self, X: Iterable[Document]) -> sparse.csr_matrix | F32:
        """Return document vectors as float32 rows, shape (documents, n_features_out_)."""
        parts = list(self.model_.transform(as_texts(X), self.threads))
        nothing = sparse.csr_matrix((0, self.model_.columns), dtype=np.float32)
        rows = sparse.vstack(parts, format="csr") if parts else nothing
        return rows if self.sparse_output else rows.toarray()
