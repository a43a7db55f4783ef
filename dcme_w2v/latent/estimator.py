"""`LatentClassModel`: a scikit-learn estimator of latent classes, for sparse or dense rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcme_w2v.classify.mixins import ProbabilityMixin, check_classes
from dcme_w2v.numeric.arrays import F32, F64, I64
from dcme_w2v.numeric.estimators import options_of, parameters, split_labels
from dcme_w2v.numeric.sklearn_base import (
    Estimator,
    TransformerMixin,
    check_features,
    check_training,
)
from dcme_w2v.training.progress import reporting_to

from .fit import learn
from .options import LatentOptions


@parameters(LatentOptions, without=("unsupervised",))
class LatentClassModel(ProbabilityMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """A classifier or clusterer with discriminative latent classes (Joulin, Bach & Ponce, 2010).

    A row x belongs to each of K latent classes z with a probability that is log-linear in x, and
    its label depends only on z: p(y | x) = sum_k p(z = k | x) p(y | z = k). Without labels, the
    model clusters the rows.

    Parameters
    ----------
    {options}
    {verbose}

    Attributes
    ----------
    classes_ : ndarray, shape (classes,)
        The labels, sorted; without labels, the indices of the latent classes, counted from 0.
    labels_ : ndarray of int64, shape (rows,)
        The most probable latent class of each row of `fit`.
    coef_ : ndarray of float32, shape (latent, features)
        Weights of the latent classes. With `lsa`, the weights apply to rows that are divided by the
        length of their reduced vectors.
    intercept_ : ndarray of float32, shape (latent,)
        Biases.
    alpha_ : ndarray of float32, shape (latent, classes)
        p(label | latent class); the identity matrix if the latent classes are the classes.
    cost_ : float
        The final cost: equation (2) in the paper.
    costs_ : list of float
        The cost after each EM iteration, for the start that was kept.
    n_iter_ : int
        Number of EM iterations.
    n_features_in_ : int
        Number of features seen by `fit`.
    feature_names_in_ : ndarray of str, shape (features,)
        Names of the columns of a DataFrame.

    Notes
    -----
    If all rows have labels, this model classifies no better than `MaxentClassifier`, and worse if
    there are fewer latent classes than labels. Use this model for clustering, for labels with
    subtopics, and to reduce rows to a few columns that depend on the labels (`transform`). `fit`
    skips rows without a label (-1 in `y`); to learn from such rows, use `FusedFeatures`.

    Examples
    --------
    >>> from dcme_w2v import LatentClassModel
    >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.2, 0.8]]
    >>> LatentClassModel(latent=2).fit(X).transform(X).shape
    (4, 2)
    """

    _learned = "_model"

    def fit(self, X: Any, y: ArrayLike | None = None) -> LatentClassModel:
        """Fit the model to rows and, if y is given, to their labels.

        Parameters
        ----------
        X : sparse or dense matrix, shape (rows, features)
            Finite numbers, converted to float32.
        y : array, shape (rows,), optional
            The label of each row; -1, "-1" or None for an unlabeled row. Without `y`, the rows are
            clustered.

        Raises
        ------
        ValueError
            The rows are not finite, the numbers of rows and labels differ, there is only one class,
            or a parameter is not valid.
        """
        given, names = None, list[str]()
        if y is None:
            matrix = rows = check_features(self, X, reset=True)
            options = options_of(self, unsupervised=True)
        else:
            filled, without = split_labels(y)
            matrix, labels = check_training(self, X, filled, reset=True)
            rows, labels = matrix[~without], labels[~without]
            options = options_of(self)
            self.classes_, numbers = np.unique(labels, return_inverse=True)
            check_classes(self.classes_, ", or y=None to cluster")
            names, given = list(map(str, self.classes_)), numbers[:, None].tolist()
        with reporting_to(self._progress, None, False) as reporter:
            self._model = learn(rows, given, names, options, reporter)
        if y is None:
            self.classes_ = np.arange(self._model.latent)
        self.costs_: list[float] = self._model.record["costs"]
        self.cost_, self.n_iter_ = self.costs_[-1], len(self.costs_)
        self.labels_ = self._latent(matrix).argmax(axis=1)
        return self

    def fit_predict(self, X: Any, y: ArrayLike | None = None) -> I64:
        """Fit the model to rows, and return each row's most probable latent class (`labels_`)."""
        return self.fit(X, y).labels_

    def transform(self, X: Any) -> F64:
        """Return `p(latent class | row)`, shape (rows, latent); each row sums to 1."""
        return np.exp(self._latent(check_features(self, X)))

    def predict_log_proba(self, X: Any) -> F64:
        """Return each row's log-probability of every label, shape (rows, classes)."""
        matrix = check_features(self, X)
        return np.concatenate(list(self._model.log_probabilities(matrix, self.threads)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`: ``latent0``, ``latent1``, ..."""
        return np.array([f"latent{k}" for k in range(self._model.latent)], dtype=object)

    @property
    def coef_(self) -> F32:
        """Weights of the latent classes, shape (latent, features)."""
        return self._model.original_weights().T

    @property
    def intercept_(self) -> F32:
        """Biases of the latent classes, shape (latent,)."""
        return self._model.weights.get()[-1]

    @property
    def alpha_(self) -> F32:
        """The probabilities `p(label | latent class)`, shape (latent, classes)."""
        if self._model.alpha is None:
            return np.eye(self._model.latent, dtype=np.float32)
        return self._model.alpha

    def _latent(self, matrix: Any) -> F64:
        """Return `log p(latent class | row)` for checked rows, shape (rows, latent)."""
        return np.concatenate(list(self._model.latent_log_probabilities(matrix, self.threads)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = []
        return tags
