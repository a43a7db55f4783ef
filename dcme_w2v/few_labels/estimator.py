"""`FusedFeatures`: few labels and many unlabelled rows, with scikit-learn's conventions."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.classify.mixins import LinearMixin, check_classes
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.declarations import default_threads
from dcme_w2v.errors import UsageError
from dcme_w2v.few_labels.fit import Data, Fitted, check_data, fit, ones
from dcme_w2v.few_labels.initial import Rows
from dcme_w2v.few_labels.options import FusedOptions, resolved
from dcme_w2v.few_labels.statistics import check_values
from dcme_w2v.numeric.sklearn_base import (
    BaseEstimator,
    TransformerMixin,
    check_features,
    check_fitted,
    check_training,
    options_of,
    parameters,
)

UNLABELLED = -1


@parameters(FusedOptions)
class FusedFeatures(LinearMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for few labels and many unlabelled rows (Suzuki & Nagata, AAAI 2014).

    Parameters
    ----------
    {options}

    Attributes
    ----------
    classes_ : ndarray, shape (classes,)
        The labels, sorted.
    coef_ : ndarray of float32, shape (classes, features)
        Weights of the final model; with two classes, too, a row for each.
    intercept_ : ndarray of float32, shape (classes,)
        Biases.
    levels_ : csr_matrix of int8, shape (features, classes)
        The level of each pair of feature and class with its sign; level 1 has the highest value.
        Not there where plain maximum entropy or self-training was chosen.
    values_ : ndarray of float64, shape (levels,)
        v of each level.
    weights_ : ndarray of float64, shape (levels,)
        w of each level; not there with ``final="columns"``.
    record_ : dict
        Rounds, and what the choice was made by.
    n_features_in_ : int
        Columns of the rows that it was fitted on.
    feature_names_in_ : ndarray of str, shape (features,)
        Names of the columns of a DataFrame.

    Notes
    -----
    Rows are not negative, as counts or tf-idf. Where no row is unlabelled, the labelled ones serve
    as unlabelled ones, too: then `MaxentClassifier` is as good.

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

    def fit(self, X: Any, y: ArrayLike) -> FusedFeatures:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : sparse or dense matrix, shape (rows, features)
            Finite numbers, not negative; they are made float32.
        y : array, shape (rows,)
            A label for each; -1 or None for a row without one.

        Raises
        ------
        ValueError
            The rows are not finite, or negative, the numbers of rows and labels differ, there is
            one class, or a parameter cannot be used.
        """
        labels, unlabelled = _split_labels(y)
        matrix, labels = check_training(self, X, labels, reset=True)
        self.classes_, numbers_of = np.unique(labels[~unlabelled], return_inverse=True)
        check_classes(self.classes_)
        try:
            check_values(matrix)
        except UsageError as error:
            kind = "Negative values" if matrix.data.min() < 0 else "Values too large"
            raise UsageError(f"{kind} in data: {error.message}") from None
        labelled = csr_matrix(matrix[~unlabelled])
        others = csr_matrix(matrix[unlabelled]) if unlabelled.any() else labelled
        options = resolved(options_of(self), len(numbers_of), len(self.classes_))
        data = Data(labelled, numbers_of, others, len(self.classes_), options)
        check_data(data)
        self._fitted: Fitted = fit(data)
        self.record_ = self._fitted.record
        evidence, tied = self._fitted.evidence, self._fitted.tied
        for name in ("levels_", "values_", "weights_"):
            self.__dict__.pop(name, None)
        if evidence is not None:
            self.levels_, self.values_ = evidence.levels, evidence.values
        if tied is not None:
            self.weights_ = tied.weights
        return self

    def transform(self, X: Any) -> csr_matrix:
        """Return a column for each level and class: float32, shape (rows, classes x levels)."""
        check_fitted(self, "_fitted")
        matrix = check_features(self, X)
        if self._fitted.evidence is None:
            raise UsageError(f"the final model ({self._fitted.final}) has no levels")
        found = csr_matrix(
            (ones(matrix) if self._fitted.binary else matrix) @ self._fitted.evidence.columns()
        )
        found.sort_indices()
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of `transform`: ``fusedfeatures_CLASS_LEVEL``."""
        check_fitted(self, "_fitted")
        count = len(self._fitted.evidence.values) if self._fitted.evidence is not None else 0
        names = [f"fusedfeatures_{c}_{k + 1}" for c in self.classes_ for k in range(count)]
        return np.array(names, dtype=object)

    def _linear(self) -> Weights:
        check_fitted(self, "_fitted")
        return self._fitted.weights

    def _scores(self, X: Any) -> NDArray[np.float64]:
        weights = self._linear()
        matrix = check_features(self, X)
        rows = ones(matrix) if self._fitted.predicts_binary else matrix
        threads = self.threads or default_threads()
        return np.concatenate(list(Rows(rows, threads).scores(weights)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _split_labels(y: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return labels in which unlabelled rows have that of another row, and which they are."""
    if y is None:
        return y, np.zeros(0, dtype=np.bool_)
    given = y
    if hasattr(y, "__array__"):
        given = np.asarray(y)
    else:
        given = list(y)
        if any(_is_unlabelled(one) for one in given if isinstance(one, (type(None), numbers.Real))):
            own = np.empty(len(given), dtype=object)
            own[:] = given
            given = own
    array = np.asarray(given)
    if (array.ndim == 2 and array.shape[1] == 1) or array.ndim != 1:
        return given, np.zeros(len(array) if array.ndim else 0, dtype=np.bool_)
    if array.dtype.kind in "iuf":
        without = array == UNLABELLED
    elif array.dtype == object:
        without = np.array([_is_unlabelled(one) for one in array], dtype=np.bool_)
    else:
        without = np.zeros(len(array), dtype=np.bool_)
    if not without.any() or without.all():
        return given, without
    filled = array.copy()
    filled[without] = array[~without][0]
    return (np.array(filled.tolist()) if array.dtype == object else filled), without


def _is_unlabelled(label: Any) -> bool:
    """Return whether an object is None, which pandas makes NaN of, or -1."""
    if label is None:
        return True
    return isinstance(label, numbers.Real) and (label == UNLABELLED or label != label)
