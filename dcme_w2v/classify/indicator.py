"""Convert to and from indicator matrices, scikit-learn's format for multilabel data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.sparse_rows import is_sparse

from .labeled import instances_of

MAX_LABELS = 2**31 - 2  # class indices in the C core have 32 bits, and one value means "no label"


class Indicator(NamedTuple):
    """The format of the indicator matrix in which predictions are returned."""

    is_sparse: bool
    columns: int
    dtype: Any


def is_indicator(y: Any) -> bool:
    """Return whether `y` is an indicator matrix, which is sparse or has several columns."""
    try:
        return is_sparse(y) or np.asarray(y).shape[1:] > (1,)
    except ValueError:  # `np.asarray` fails if the lists in y have different lengths
        raise UsageError(
            "y contains lists of labels; convert it to an indicator matrix with "
            "MultiLabelBinarizer().fit_transform(y)"
        ) from None


def label_sets(y: Any, rows: int) -> tuple[list[list[int]], int]:
    """Return each row's labels in an indicator matrix, and the total number of labels.

    Raises
    ------
    UsageError
        The matrix has entries other than 0 and 1, only one column, or a number of rows other than
        `rows`.
    """
    from scipy.sparse import csr_matrix

    try:
        found = csr_matrix(y)
    except (TypeError, ValueError):
        raise UsageError(
            "y has several columns, but its values are not numbers; pass an indicator matrix of "
            "zeros and ones"
        ) from None
    if found.shape[0] != rows:
        raise UsageError(
            f"X has {rows} rows, but y has {found.shape[0]} rows; pass one row of y for each row "
            "of X"
        )
    if not 2 <= found.shape[1] <= MAX_LABELS:
        raise UsageError(
            f"y is an indicator matrix with {found.shape[1]} columns, which is not supported; use "
            "an indicator matrix with at least two columns, one per label"
        )
    found.sum_duplicates()
    if wrong := [one for one in set(found.data.tolist()) if one not in (0, 1)]:
        raise UsageError(
            f"y has the entry {wrong[0]!r}, but an indicator matrix can contain only 0 and 1; "
            "correct this entry"
        )
    found.eliminate_zeros()
    return [part.tolist() for part in np.split(found.indices, found.indptr[1:-1])], found.shape[1]


def indicator_of(labels: Iterable[Sequence[int]], is_sparse: bool, columns: int, dtype: Any) -> Any:
    """Return the indicator matrix for lists of labels, one list per row."""
    from scipy.sparse import csr_matrix

    sets = list(labels)
    rows, numbers = instances_of(sets)
    found = csr_matrix((np.ones(len(rows), dtype), (rows, numbers)), (len(sets), columns))
    return found if is_sparse else found.toarray()
