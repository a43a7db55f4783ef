"""The mean of tables weighted by row: the mixture weight of Mann et al. (2009), with counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]


def mean_by_counts(
    start: Rows, learned: Sequence[Rows], counts: Sequence[NDArray[np.integer | np.floating]]
) -> Rows:
    """Return the mean of tables, each row weighted by the count of the row in each table.

    Parameters
    ----------
    start : ndarray of float32, shape (n, d)
        The result for rows whose counts are all 0.
    learned : sequence of ndarray of float32, shape (n, d)
    counts : sequence of ndarray, shape (n,)
        Counts of the rows in each table, at least 0.
    """
    weights = [np.asarray(one, dtype=np.float64)[:, None] for one in counts]
    total = np.zeros((len(start), 1))
    mixed = np.zeros(start.shape)
    for rows, weight in zip(learned, weights, strict=True):
        total += weight
        mixed += weight * rows
    seen = total[:, 0] > 0
    np.divide(mixed, total, out=mixed, where=total > 0)
    return np.where(seen[:, None], mixed.astype(np.float32), start)
