"""Indicator matrices: a row for each document, a column for each label, as in scikit-learn."""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from dcme_w2v.errors import UsageError
from dcme_w2v.training.progress import Quiet

from .calibration import Calibrated, calibration_data, calibration_on
from .fit import Fit, Labelled
from .options import ClassifyOptions
from .resources import resource_estimate, resource_shortage
from .trainer import Weights

MAX_LABELS = 2**31 - 2  # the core has numbers of 32 bits; one class is for rows without a label


def is_indicator(y: Any) -> bool:
    """Return whether labels are a sparse matrix, or have several columns."""
    try:
        return issparse(y) or np.asarray(y).shape[1:] > (1,)
    except ValueError:  # rows of different lengths
        return False


def label_sets(y: Any, rows: int) -> tuple[list[list[int]], int]:
    """Return the labels of each row of an indicator matrix, and their number.

    Raises
    ------
    UsageError
        The matrix has other entries than 0 and 1, no entry, one column, or not `rows` rows.
    """
    try:
        found = csr_matrix(y)
    except (TypeError, ValueError):
        raise UsageError("y has several columns, but not of numbers; give 0 and 1") from None
    if found.shape[0] != rows:
        raise UsageError(f"{rows} rows of X and {found.shape[0]} of y; give one row of y for each")
    if not 2 <= found.shape[1] <= MAX_LABELS:
        raise UsageError(f"y is a sparse matrix of {found.shape[1]} columns; give a column a label")
    found.sum_duplicates()
    if wrong := [one for one in set(found.data.tolist()) if one not in (0, 1)]:
        raise UsageError(f"y has the entry {wrong[0]!r}: an indicator matrix has 0 and 1")
    found.eliminate_zeros()
    if not found.nnz:
        raise UsageError("y has no label: all its entries are 0")
    return [part.tolist() for part in np.split(found.indices, found.indptr[1:-1])], found.shape[1]


def fit_sets(data: Labelled, labels: int, options: ClassifyOptions) -> tuple[Fit, Calibrated]:
    """Train on documents with sets of labels, which may be empty, by the squared hinge loss.

    Parameters
    ----------
    data : Labelled
    labels : int
        Number of labels.
    options : ClassifyOptions
        Resolved.

    Returns
    -------
    Fit
        After training.
    tuple
        Calibration and threshold by documents that were left out, see
        `dcme_w2v.classify.calibration`.
    """
    # a class of its own for documents without a label: the core needs one label or more
    sets, classes = [one or [labels] for one in data.labels], labels
    if any(one == [labels] for one in sets):
        classes += 1
        data = Labelled(data.matrix, sets, data.weights)
    plan = resource_estimate(data.matrix, sum(map(len, sets)), classes, options, holdout=False)
    if shortage := resource_shortage(plan):
        raise shortage
    data, left_out, by = calibration_data(data, classes, options, Quiet(), True)
    task = Fit(data, classes, options, multilabel=True)
    task.train(Quiet())
    if left_out is not None:
        by = calibration_on(task.weights, left_out, options, True)
    if classes > labels:
        task.weights = _without_last(task.weights)
    return task, by or ((1.0, 0.0), 0.5)


def _without_last(weights: Weights) -> Weights:
    found = Weights(weights.features, weights.classes - 1, weights.bias)
    found.set(weights.get()[:, :-1])
    return found
