"""Points in a plane: projections of document vectors, as in Figure 5 of the SCDV paper.

Requires the extra `[plot]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dcme_w2v.errors import UsageError
from dcme_w2v.plots.figure import (
    COLORS,
    new_figure,
    picture_format,
    plain_text,
    style_of,
    write_figure,
)
from dcme_w2v.plots.layout import DIMENSIONS, check_method, tsne

_IN_LEGEND = 39  # with a color and marker of their own
GRAY = "#B0B0B0"


def plane(
    rows: sparse.csr_matrix, method: str = "tsne", limit: int = 2000, seed: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Project rows to two dimensions.

    Parameters
    ----------
    rows : csr_matrix, shape (n, columns)
    method : {"tsne", "pca"}
        t-SNE from the first 50 principal components, or the first two of these.
    limit : int
        Maximum number of rows, drawn at random.
    seed : int

    Returns
    -------
    chosen : ndarray of int64, shape (m,)
        The rows that were taken, rising.
    points : ndarray of float64, shape (m, 2)
    """
    check_method(method)
    count = min(limit, rows.shape[0])
    if count < 3 or rows.shape[1] < 3:
        raise UsageError(f"{count} rows of {rows.shape[1]} numbers: a picture needs 3 at least")
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(rows.shape[0], count, replace=False))
    dense = rows[chosen].toarray().astype(np.float64)
    dense -= dense.mean(axis=0)
    largest = np.abs(dense).max()
    if not largest:
        raise UsageError("all rows are equal: there is nothing to show; give other rows")
    dense /= largest  # so that no square is too large for a float
    wanted = min(DIMENSIONS if method == "tsne" else 2, min(dense.shape) - 1)
    u, s, _ = sparse.linalg.svds(dense, wanted, random_state=seed)
    order = np.argsort(-s)
    components = (u * s)[:, order]
    return chosen, components[:, :2] if method == "pca" else tsne(components, seed, extra="plot")


def draw(
    path: str, points: NDArray[np.float64], labels: Sequence[str] | None, size: float = 10.0
) -> None:
    """Write a picture of points, a color and marker a label: PNG, or PDF or SVG by the suffix.

    Parameters
    ----------
    path : str
        ``-`` is standard output.
    points : ndarray of float64, shape (n, 2)
    labels : sequence of str, optional
        The label of each point.
    size : float
        Width and height in inches, at 100 points an inch.
    """
    picture_format(path)
    figure = new_figure(size, size)
    axes = figure.add_subplot()
    if labels:
        _scatter(axes, points, np.array(labels, dtype=object))
        figure.legend(fontsize=7, markerscale=2, loc="outside right upper")
    else:
        axes.scatter(*points.T, s=8, color=COLORS[0])
    axes.set_axis_off()
    write_figure(figure, path)


def _scatter(axes: Any, points: NDArray[np.float64], labels: NDArray[np.object_]) -> None:
    """Draw points by label; labels beyond `_IN_LEGEND`, the least frequent, are one in gray."""
    names, counts = np.unique(labels, return_counts=True)
    kept = sorted(names[np.argsort(-counts, kind="stable")][:_IN_LEGEND].tolist())
    others = len(names) - len(kept)
    if others:
        rest = points[~np.isin(labels, kept)]
        axes.scatter(*rest.T, s=8, color=GRAY, zorder=0, label=f"{others} other labels")
    for number, name in enumerate(kept):
        style = style_of(number)
        own = points[labels == name]
        label = plain_text(name) or "(none)"
        axes.scatter(*own.T, s=8, marker=style["marker"], color=style["color"], label=label)
