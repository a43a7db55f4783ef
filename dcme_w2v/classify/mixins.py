"""Mixins for scikit-learn classifiers that predict probabilities or linear scores."""

from abc import abstractmethod
from typing import Any

import numpy as np

from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.arrays import F32, F64, Array
from dcme_w2v.numeric.sklearn_base import ClassifierMixin

from .metrics import log_softmax
from .trainer import Weights


class ProbabilityMixin(ClassifierMixin):  # type: ignore[misc]
    """Mixin for classifiers that define `predict_log_proba` and accept sparse rows."""

    classes_: Array

    @abstractmethod
    def predict_log_proba(self, X: Any) -> F64:
        """Return each row's log-probability of every class, shape (rows, classes)."""

    def predict_proba(self, X: Any) -> F64:
        """Return each row's probability of every class, shape (rows, classes)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, shape (rows,)."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return self.classes_[best]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LinearMixin(ProbabilityMixin):
    """Mixin for classifiers whose scores come from a linear model."""

    @abstractmethod
    def _linear(self) -> Weights:
        """Return the fitted weights, or raise NotFittedError."""

    @abstractmethod
    def _scores(self, X: Any) -> F64:
        """Return each row's score for every class, shape (rows, classes)."""

    def decision_function(self, X: Any) -> F64:
        """Return each row's score for every class, shape (rows, classes).

        With two classes, the result is the difference of their scores, shape (rows,), as in
        scikit-learn.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_log_proba(self, X: Any) -> F64:
        """Return each row's log-probability of every class, shape (rows, classes)."""
        return log_softmax(self._scores(X))

    @property
    def coef_(self) -> F32:
        """Weights of the features, shape (classes, features)."""
        return self._linear().get()[:-1].T

    @property
    def intercept_(self) -> F32:
        """Biases of the classes, shape (classes,)."""
        weights = self._linear()
        biases: F32 = weights.get()[-1] * np.float32(weights.bias)
        return biases + weights.offset


def check_classes(classes: Array, hint: str = "") -> None:
    """Raise `UsageError` if there are fewer than two classes."""
    if len(classes) < 2:
        shown = f"1 class ({classes.tolist()[0]!r})" if len(classes) else "no class"
        raise UsageError(f"the labels contain {shown}; use labels of at least two classes{hint}")
