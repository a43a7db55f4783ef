"""Base classes that inherit from scikit-learn, and checks of rows that use scikit-learn."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from dcme_w2v.errors import UsageError

from .arrays import Array
from .estimators import Fitted, tags_of_texts
from .sparse_rows import check_rows

try:
    from sklearn.base import BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import TransformerMixin as TransformerMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data
except ImportError:
    raise ImportError(
        "estimators require scikit-learn 1.6 or later; run: pip install -U scikit-learn"
    ) from None


class Estimator(Fitted, BaseEstimator):  # type: ignore[misc]
    """Base class of transformers, and of estimators that are fitted to rows."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        BaseEstimator.__setstate__(self, state)
        super().__setstate__({})


class TextTransformer(TransformerMixin, Estimator):  # type: ignore[misc]
    """Base class of transformers that convert texts to float32 rows."""

    _learned = "n_features_out_"

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the output columns, such as ``sentence0`` and ``sentence1``."""
        return np.array([f"{self._kind}{i}" for i in range(self.n_features_out_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = tags_of_texts(super().__sklearn_tags__())
        tags.transformer_tags.preserves_dtype = []  # `transform` always returns float32
        return tags


def check_training(estimator: Any, X: Any, y: Any, reset: bool) -> tuple[csr_matrix, Array]:
    """Check rows and labels; if `reset`, set `n_features_in_` (and `feature_names_in_`).

    Returns
    -------
    rows : csr_matrix of float32, shape (rows, features)
    labels : ndarray, shape (rows,)

    Raises
    ------
    ValueError
        Values are not finite, shapes do not match, or the labels are not class labels.
    """
    with _advising(estimator):
        rows, labels = validate_data(estimator, _sound(X), y, reset=reset, **_ACCEPTED)
    check_classification_targets(labels)
    return check_rows(csr_matrix(rows)), labels


def check_features(estimator: Any, X: Any, reset: bool = False) -> csr_matrix:
    """Check rows without labels; return the rows in the form that `check_training` returns."""
    with _advising(estimator):
        rows = validate_data(estimator, _sound(X), reset=reset, **_ACCEPTED)
    return check_rows(csr_matrix(rows))


@contextlib.contextmanager
def _advising(estimator: Any) -> Iterator[None]:
    """Add remedies to errors about text and huge numbers, and hide numpy's warnings."""
    try:
        with np.errstate(over="ignore"):
            yield
    except OverflowError:
        raise UsageError("X: a value is too large for float32; use values below 3.4e38") from None
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        raise UsageError(
            f"X contains text, not numbers ({error}); to learn from texts, use "
            f"make_pipeline(TfidfVectorizer(), {type(estimator).__name__}())"
        ) from None


_ACCEPTED = {"accept_sparse": "csr", "dtype": np.float32}


def _sound(X: Any) -> Any:
    """Check the structure of a sparse matrix, which scikit-learn does not check."""
    return check_rows(X) if issparse(X) else X
