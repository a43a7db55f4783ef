"""`FusedFeatures`: a scikit-learn classifier for few labels and many unlabeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from dcme_w2v.classify.mixins import LinearMixin, check_classes
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.declarations import threads_of
from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.arrays import F64, Array
from dcme_w2v.numeric.estimators import options_of, parameters, split_labels
from dcme_w2v.numeric.sklearn_base import (
    Estimator,
    TransformerMixin,
    check_features,
    check_training,
)
from dcme_w2v.training.progress import reporting_to

from .choose import fit_chosen
from .fit import Fitted, TrainingRows, check_data
from .options import FusedOptions, resolved
from .statistics import check_values


@parameters(FusedOptions)
class FusedFeatures(LinearMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """A classifier for few labels and many unlabeled rows (Suzuki & Nagata, AAAI 2014).

    Parameters
    ----------
    {options}
    {verbose}

    Attributes
    ----------
    classes_ : ndarray, shape (classes,)
        The labels, sorted.
    coef_ : ndarray of float32, shape (classes, features)
        Weights of the final model, with one row per class even if there are only two classes.
    intercept_ : ndarray of float32, shape (classes,)
        Biases.
    levels_ : csr_matrix of int8, shape (features, classes)
        The signed level of each pair of feature and class; level 1 has the highest value.
    values_ : ndarray of float64, shape (levels,)
        The value v of each level.
    weights_ : ndarray of float64, shape (levels,)
        The weight w of each level.
    record_ : dict
        Measures of every round and of cross-validation.
    n_features_in_ : int
        Number of features seen by `fit`.
    feature_names_in_ : ndarray of str, shape (features,)
        Names of the columns of a DataFrame.

    Notes
    -----
    Feature values must not be negative; counts and tf-idf values are suitable. If all rows are
    labeled, they are also used as unlabeled rows, and `MaxentClassifier` classifies equally well.

    Examples
    --------
    >>> from dcme_w2v import FusedFeatures
    >>> X = [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    >>> y = ["tea", "tea", "bus", "bus", None, None]
    >>> model = FusedFeatures(folds=2).fit(X, y)
    >>> model.predict([[0, 1, 0, 0], [0, 0, 0, 1]]).tolist()
    ['tea', 'bus']
    >>> model.transform(X).shape
    (6, 16)
    """

    _learned = "_fitted"

    def fit(self, X: Any, y: ArrayLike) -> FusedFeatures:
        """Fit the classifier to labeled and unlabeled rows.

        Parameters
        ----------
        X : sparse or dense matrix, shape (rows, features)
            Finite, nonnegative numbers, converted to float32.
        y : array, shape (rows,)
            The label of each row; -1, "-1" or None for an unlabeled row.

        Raises
        ------
        ValueError
            A value is negative or not finite, the numbers of rows and labels differ, there is only
            one class, or a parameter is not valid.
        """
        labels, unlabeled = split_labels(y)
        matrix, labels = check_training(self, X, labels, reset=True)
        self.classes_, numbers_of = np.unique(labels[~unlabeled], return_inverse=True)
        check_classes(self.classes_)
        try:
            check_values(matrix)
        except UsageError as error:
            kind = "Negative values" if matrix.data.min() < 0 else "Values too large"
            raise UsageError(f"{kind} in data: {error.message}") from None
        labeled = matrix[~unlabeled]
        others = matrix[unlabeled] if unlabeled.any() else labeled
        options = resolved(options_of(self))
        data = TrainingRows(labeled, numbers_of, others, len(self.classes_), options)
        check_data(data)
        with reporting_to(self._progress, None, False) as reporter:
            self._fitted: Fitted = fit_chosen(data, reporter)
        self.record_ = self._fitted.record
        evidence, tied = self._fitted.evidence, self._fitted.tied
        assert evidence is not None and tied is not None
        self.levels_, self.values_, self.weights_ = evidence.levels, evidence.values, tied.weights
        return self

    def transform(self, X: Any) -> csr_matrix:
        """Return the fused features as float32, shape (rows, classes x levels)."""
        fitted = self._fitted
        assert fitted.evidence is not None
        return fitted.evidence.transform(check_features(self, X), fitted.binary)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the column names of `transform`, such as ``fusedfeatures_CLASS_LEVEL``."""
        levels = range(1, len(self.values_) + 1)
        names = [f"fusedfeatures_{c}_{k}" for c in self.classes_ for k in levels]
        return np.array(names, dtype=object)

    def _linear(self) -> Weights:
        return self._fitted.weights

    def _scores(self, X: Any) -> F64:
        self._linear()  # raises an error if `fit` has not been called
        return self._fitted.scores(check_features(self, X), threads_of(self.threads))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags
