"""Groups of similar rows for a map: a color for each row, and labels for each level of zoom.

Without given labels the groups are k-means clusters of the centered unit vectors, and clusters of
their centers for the coarser levels, so that each fine group lies in one coarse group. A group of
words is labeled by its most specific words: of its more frequent members, those with the highest
cosines to the group's mean. Subtracting the mean of all rows removes the direction that all words
share (Mu and Viswanath 2018, All-but-the-Top).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.words.neighbors import inverse_lengths

COLORS = 12  # the last one is for all other groups
_LEVELS = ((10, 3), (48, 2), (200, 1))  # groups, and words of a label, from coarse to fine
_MIN_ROWS = 30  # of a fine group, on average
_CANDIDATES = 12  # most frequent members of a group that can label it, or a tenth of all
_ROUNDS = 20


class Label(NamedTuple):
    """A label on the map: words, the row where it stands, level of zoom and number of color."""

    words: list[str]
    row: int
    level: int
    color: int


Groups = tuple[NDArray[np.uint8], list[Label]]  # a color for each row, and labels


def given_groups(groups: Sequence[str], points: NDArray[np.float64]) -> Groups:
    """Return colors and labels of the groups of a file of labels, the largest first."""
    own = _by_size(np.unique(np.array(groups, dtype=object), return_inverse=True)[1])
    colors, labels = np.minimum(own, COLORS - 1), []
    for group in range(min(int(own.max()) + 1, _LEVELS[-1][0])):
        rows = np.flatnonzero(own == group)
        row = _middle(rows, points)
        labels.append(Label([groups[row]], row, 0, int(colors[row])))
    return colors.astype(np.uint8), labels


def similar_groups(
    matrix: NDArray[np.float32],
    names: Sequence[str] | None,
    points: NDArray[np.float64],
    seed: int,
) -> Groups:
    """Return colors and labels of groups of similar rows.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, d)
        Rows of unit length, the most frequent words first.
    names : sequence of str, optional
        The words; without them labels have no words.
    points : ndarray of float64, shape (n, 2)
        The map.
    seed : int
    """
    fine = min(_LEVELS[-1][0], len(matrix) // _MIN_ROWS)
    if fine < 2:
        return np.zeros(len(matrix), dtype=np.uint8), []
    unit = _unit(matrix - matrix.mean(axis=0))
    centers, own = kmeans(unit, fine, seed, rounds=_ROUNDS)
    starts = _unit(centers.astype(np.float32))
    counts = [count for count, _ in _LEVELS if count < fine]
    at_level = [_by_size(kmeans(starts, count, seed)[1][own]) for count in counts]
    at_level.append(_by_size(own))
    colors = at_level[0].astype(np.uint8)
    labels: list[Label] = []
    for level, groups in enumerate(at_level):
        width = _LEVELS[level][1]
        for group in range(int(groups.max()) + 1):
            rows = np.flatnonzero(groups == group)
            words = [names[row] for row in _specific(unit, rows)[:width]] if names else []
            labels.append(Label(words, _middle(rows, points), level, int(colors[rows[0]])))
    return colors, labels


def _by_size(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the groups numbered by size, the largest first, without empty ones."""
    found, own, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    rank = np.empty(len(found), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(found))
    return np.asarray(rank[own])


def _specific(unit: NDArray[np.float32], rows: NDArray[np.int64]) -> list[int]:
    """Return the frequent rows of a group, the nearest to the group's mean first."""
    frequent = rows[: max(_CANDIDATES, len(rows) // 10)]
    cosines = unit[frequent] @ unit[rows].mean(axis=0)
    return [int(row) for row in frequent[np.argsort(-cosines, kind="stable")]]


def _middle(rows: NDArray[np.int64], points: NDArray[np.float64]) -> int:
    """Return the row nearest to the median of a group's points on the map."""
    apart = points[rows] - np.median(points[rows], axis=0)
    return int(rows[np.argmin((apart**2).sum(axis=1))])


def _unit(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(matrix * inverse_lengths(matrix)[:, None], dtype=np.float32)
