"""`MaxentClassifier`: the classifier with scikit-learn's conventions, for sparse or dense rows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.classify.fit import Labelled, fit
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.trainer import ClassifierTrainer, Weights, core_documents
from dcme_w2v.errors import UsageError
from dcme_w2v.options import default_threads
from dcme_w2v.sparse_check import check_rows


class MaxentClassifier:
    """Multinomial logistic regression over many classes (Wang, Wang & Zhai, AAAI 2017).

    Parameters
    ----------
    **options
        The fields of `dcme_w2v.classify.options.ClassifyOptions`: `objective` ("dcme", "gd",
        "nce", "ns"), `solver` ("sgd", "lbfgs"), `epochs`, `lr`, `l2`, `threads`, `seed` and so on.

    Attributes
    ----------
    classes_ : ndarray, shape (classes,)
        The labels, sorted.
    coef_ : ndarray of float32, shape (classes, features)
        Weights.
    intercept_ : ndarray of float32, shape (classes,)
        Biases.
    n_features_in_ : int
        Columns of the rows that it was fitted on.

    Notes
    -----
    The default learning rates are for rows of unit length; other rows are allowed for by the mean
    of their squared lengths.
    """

    _estimator_type = "classifier"

    def __init__(self, **options: Any) -> None:
        self._options = ClassifyOptions.from_mapping(options)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all options by name."""
        return dataclasses.asdict(self._options)

    def set_params(self, **options: Any) -> MaxentClassifier:
        """Change options; returns the classifier."""
        self._options = ClassifyOptions.from_mapping({**self.get_params(), **options})
        return self

    def fit(self, X: Any, y: ArrayLike) -> MaxentClassifier:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : sparse or dense matrix, shape (rows, features)
            Finite numbers.
        y : array, shape (rows,)
            A label for each.

        Raises
        ------
        UsageError
            The rows are not finite, the numbers of rows and labels differ, or there is one class.
        """
        matrix, labels = check_rows(X), _as_labels(y)
        _check_sizes(matrix, labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        _check_classes(self.classes_)
        options = resolved(self._options, len(self.classes_))
        data = Labelled(matrix, numbers[:, None].tolist())
        self._weights, self.epochs_ = fit(data, len(self.classes_), options)
        return self

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None
    ) -> MaxentClassifier:
        """Learn from some more rows, once, at the rate `lr`.

        Parameters
        ----------
        X, y
            As in `fit`.
        classes : array, optional
            All labels that will ever come; needed in the first call only.
        """
        matrix, labels = check_rows(X), _as_labels(y)
        _check_sizes(matrix, labels)
        first = not hasattr(self, "_weights")
        if first:
            if classes is None:
                raise UsageError("partial_fit: give classes in the first call")
            self.classes_ = np.unique(_as_labels(classes))
            _check_classes(self.classes_)
        numbers = np.searchsorted(self.classes_, labels)
        known = self.classes_[np.minimum(numbers, len(self.classes_) - 1)] == labels
        if not known.all():
            raise UsageError(f"partial_fit: label {labels[~known][0]} is not one of classes")
        options = resolved(
            dataclasses.replace(self._options, epochs=1, solver="sgd"), len(self.classes_)
        )
        options = dataclasses.replace(options, min_lr=options.lr)
        training = ClassifierTrainer(
            matrix if first else self._fitting(matrix), np.arange(len(labels)),
            numbers.astype(np.int32), len(self.classes_), options,
            None if first else self._weights,
        )  # fmt: skip
        training.epoch(0)
        self._weights = training.weights
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores of all classes, shape (rows, classes)."""
        matrix = self._fitting(check_rows(X))
        threads = self._options.threads or default_threads()
        return self._weights.scores(core_documents(matrix), 0, matrix.shape[0], threads)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities, shape (rows, classes)."""
        return log_softmax(self.decision_function(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probabilities, shape (rows, classes); each row's sum is 1."""
        probabilities: NDArray[np.float64] = np.exp(self.predict_log_proba(X))
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likeliest label of each row."""
        best = self.decision_function(X).argmax(axis=1)
        found: NDArray[Any] = self.classes_[best]
        return found

    def score(self, X: Any, y: ArrayLike) -> float:
        """Return the accuracy."""
        return float(np.mean(self.predict(X) == _as_labels(y)))

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return self._fitted().features

    @property
    def coef_(self) -> NDArray[np.float32]:
        """Weights."""
        weights: NDArray[np.float32] = self._fitted().get()[:-1].T
        return weights

    @property
    def intercept_(self) -> NDArray[np.float32]:
        """Biases."""
        weights = self._fitted()
        biases: NDArray[np.float32] = weights.get()[-1] * np.float32(weights.bias)
        return biases + weights.offset

    def _fitted(self) -> Weights:
        if not hasattr(self, "_weights"):
            raise UsageError("the classifier is not fitted; call fit first")
        return self._weights

    def _fitting(self, matrix: csr_matrix) -> csr_matrix:
        wanted = self._fitted().features
        if matrix.shape[1] != wanted:
            raise UsageError(f"rows have {matrix.shape[1]} columns; give the {wanted} of fit")
        return matrix


def _as_labels(y: ArrayLike) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise UsageError(f"labels have the shape {labels.shape}; give one label a row")
    return labels


def _check_sizes(matrix: csr_matrix, labels: NDArray[Any]) -> None:
    if matrix.shape[0] != len(labels):
        raise UsageError(f"{matrix.shape[0]} rows and {len(labels)} labels; give one label a row")


def _check_classes(classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        shown = f"only the label {classes[0]!r}" if len(classes) else "no labels"
        raise UsageError(f"there is {shown}: nothing to tell apart; give two classes or more")
