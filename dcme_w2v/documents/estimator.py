"""SCDV as a scikit-learn transformer, for Pipelines and grid searches.

Needs scikit-learn (the extra `[sklearn]`); everything else of this package works without it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dcme_w2v.documents.fit import fit_documents
from dcme_w2v.documents.options import ScdvOptions
from dcme_w2v.documents.scdv import DocumentModel
from dcme_w2v.words.vectors import Vectors


class SCDV(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sparse composite document vectors (Mekala et al. 2017).

    Parameters
    ----------
    vectors : path or Vectors
        Word vectors; a path is read when `fit` is called.
    features, clusters, covariance, sparsity, weighting, term_frequency, centre, power, tfidf, \
min_df, tolerance, iterations, seed
        See `dcme_w2v.documents.options.ScdvOptions`, which checks them when `fit` is called.
    threads : int, optional
        The CPUs that this process may use by default; results do not depend on it.

    Attributes
    ----------
    model_ : DocumentModel
        What was learnt; its `save` writes the folder that ``dcme-w2v scdv transform`` reads.
    n_features_out_ : int
        The length of a row.

    Examples
    --------
    >>> import numpy as np
    >>> from dcme_w2v.text.words import Words
    >>> from dcme_w2v.words.vectors import Vectors
    >>> words = Words.from_words(["tea", "coffee", "car", "bus"])
    >>> vectors = Vectors(words, np.array([[2, 0], [2, 1], [0, 2], [1, 2]], dtype=np.float32))
    >>> SCDV(vectors, clusters=2).fit_transform(["tea coffee", "car bus", "tea"]).shape
    (3, 4)
    """

    def __init__(
        self,
        vectors: str | os.PathLike[str] | Vectors | None = None,
        *,
        features: str = "scdv",
        clusters: int = 60,
        covariance: str = "tied",
        sparsity: float = 4.0,
        weighting: str = "idf",
        term_frequency: str = "count",
        centre: bool = False,
        power: float = 1.0,
        tfidf: float = 0.0,
        min_df: int = 1,
        tolerance: float = 1e-4,
        iterations: int = 100,
        seed: int = 1,
        threads: int | None = None,
    ) -> None:
        self.vectors = vectors
        self.features = features
        self.clusters = clusters
        self.covariance = covariance
        self.sparsity = sparsity
        self.weighting = weighting
        self.term_frequency = term_frequency
        self.centre = centre
        self.power = power
        self.tfidf = tfidf
        self.min_df = min_df
        self.tolerance = tolerance
        self.iterations = iterations
        self.seed = seed
        self.threads = threads

    def fit(self, X: Iterable[str | bytes], y: Any = None) -> SCDV:
        """Learn from training documents.

        Parameters
        ----------
        X : iterable of str or bytes
            Documents, of words with white space between them.
        y : ignored

        Returns
        -------
        SCDV
        """
        if self.vectors is None:
            raise ValueError("SCDV needs word vectors: SCDV(vectors=path or Vectors)")
        given = self.get_params(deep=False)
        vectors, threads = given.pop("vectors"), given.pop("threads")
        loaded = vectors if isinstance(vectors, Vectors) else Vectors.load(vectors)
        options = ScdvOptions.from_mapping(given)
        self.model_: DocumentModel = fit_documents(_texts(X), loaded, options, threads=threads)
        self.n_features_out_ = self.model_.columns
        return self

    def transform(self, X: Iterable[str | bytes]) -> sparse.csr_matrix:
        """Return the vectors of documents, a csr_matrix of float32, shape (n, n_features_out_)."""
        check_is_fitted(self)
        parts = list(self.model_.transform(_texts(X), self.threads))
        nothing = sparse.csr_matrix((0, self.model_.columns), dtype=np.float32)
        return sparse.vstack(parts, format="csr") if parts else nothing

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return names of the columns: ``scdv0``, ``scdv1`` and so on."""
        check_is_fitted(self)
        return np.array([f"scdv{i}" for i in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.no_validation = True
        return tags


def _texts(documents: Iterable[str | bytes]) -> Iterator[bytes]:
    if isinstance(documents, str | bytes):
        raise ValueError("give an iterable of documents, not one document")
    for number, document in enumerate(documents):
        if isinstance(document, bytes):
            yield document
        elif isinstance(document, str):
            yield document.encode("utf-8", "replace")
        else:
            raise ValueError(f"document {number} is a {type(document).__name__}; give str or bytes")
