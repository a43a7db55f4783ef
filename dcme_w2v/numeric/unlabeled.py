"""Labels of which some are missing, marked as in scikit-learn's semi-supervised estimators."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import UsageError

UNLABELED = -1


def split_labels(y: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return labels without gaps, and which rows are unlabeled.

    A row is unlabeled if its label is -1, None, or NaN in an array of objects. The string "-1"
    counts too, since numpy makes it of -1 beside other strings.

    Parameters
    ----------
    y : array or sequence, shape (rows,)
        Any other shape is returned unchanged, for the checks that follow.

    Returns
    -------
    labels : array, shape (rows,)
        Unlabeled rows have the label of another row.
    unlabeled : ndarray of bool, shape (rows,)

    Raises
    ------
    UsageError
        No row has a label.
    """
    if y is None:
        return y, np.zeros(0, dtype=np.bool_)
    array = _as_array(y)
    if array.ndim != 1:
        column = array.ndim == 2 and array.shape[1] == 1
        return y, np.zeros(len(array) if column else 0, dtype=np.bool_)
    if array.dtype.kind in "iuf":
        without = array == UNLABELED
    else:
        without = np.array([_is_unlabeled(one) for one in array.tolist()], dtype=np.bool_)
    if not without.any():
        return y, without
    if without.all():
        raise UsageError(f"no row has a label: all are {array[0]!r}; give labels of two classes")
    filled = array.copy()
    filled[without] = array[~without][0]
    return (np.array(filled.tolist()) if array.dtype == object else filled), without


def _as_array(y: Any) -> NDArray[Any]:
    """Return labels as an array; a list keeps its objects, so that -1 is no string."""
    if hasattr(y, "__array__"):
        return np.asarray(y)
    labels = list(y)
    if any(isinstance(one, list | tuple | np.ndarray) for one in labels):
        return np.asarray(y)
    found = np.empty(len(labels), dtype=object)
    found[:] = labels
    return found


def _is_unlabeled(label: Any) -> bool:
    if label is None or label in ("-1", b"-1"):
        return True
    return isinstance(label, numbers.Real) and (label == UNLABELED or label != label)
