"""Plot of document vectors in two dimensions, as in Figure 5 of the SCDV paper.

Needs the extra `[plot]`. Called by `dcme_w2v.cli.search`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dcme_w2v.errors import DcmeError, UsageError
from dcme_w2v.files import atomic_write

METHODS = ("tsne", "pca")
PICTURES = (".png", ".pdf", ".svg")
_DIMENSIONS = 50  # that t-SNE starts from


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
    if method not in METHODS:
        raise UsageError(f"--method={method}: must be one of {', '.join(METHODS)}")
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
    wanted = min(_DIMENSIONS if method == "tsne" else 2, min(dense.shape) - 1)
    u, s, _ = sparse.linalg.svds(dense, wanted, random_state=seed)
    order = np.argsort(-s)
    components = (u * s)[:, order]
    return chosen, components[:, :2] if method == "pca" else _tsne(components, seed)


def draw(
    path: str, points: NDArray[np.float64], labels: Sequence[str] | None, size: float = 10.0
) -> None:
    """Write a picture of points, a colour a label: PNG, or PDF or SVG by the suffix.

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
    format = picture_format(path)
    figure_class, colours = _matplotlib()
    figure = figure_class(figsize=(size, size), dpi=100)
    axes = figure.add_subplot()
    names = sorted(set(labels)) if labels else []
    if labels:
        own = np.array(labels)
        for number, name in enumerate(names):
            x, y = points[own == name].T
            axes.scatter(x, y, s=6, color=colours(number % 20), label=name or "(none)")
        if len(names) <= 40:
            axes.legend(fontsize=7, markerscale=2, loc="best")
    else:
        axes.scatter(*points.T, s=6)
    axes.set_axis_off()
    with atomic_write(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a label with letters that the font does not have
        figure.savefig(file, format=format, bbox_inches="tight")


def picture_format(path: str) -> str:
    """Return the format of a picture by its file's suffix; PNG where it has none, as stdout.

    Raises
    ------
    UsageError
        The suffix is another.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in ("", *PICTURES):
        raise UsageError(f"{path}: name a file that ends in .png, .pdf or .svg, or - for PNG")
    return suffix.removeprefix(".") or "png"


def _matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib import colormaps
        from matplotlib.figure import Figure
    except ImportError:
        raise DcmeError("pip install 'dcme-w2v[plot]' to draw pictures") from None
    return Figure, colormaps["tab20"]


def _tsne(components: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise DcmeError("pip install 'dcme-w2v[plot]', or use --method=pca") from None
    perplexity = min(30.0, (len(components) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="pca", random_state=seed)
    return np.asarray(tsne.fit_transform(components), dtype=np.float64)
