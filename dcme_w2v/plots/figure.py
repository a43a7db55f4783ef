"""Figures of matplotlib, and the layout of points in a plane by t-SNE."""

import contextlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.declarations import default_threads
from dcme_w2v.errors import UsageError, import_optional
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.numeric.arrays import F64, Array

PICTURES = (".png", ".pdf", ".svg")
COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
MARKERS = "osD^vPX*<>"
LINES = ("-", "--", "-.", ":")
_SETTINGS: Any = {
    "svg.hashsalt": "dcme-w2v",  # the same picture is the same file
    "svg.fonttype": "none",  # text stays text
}


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure; width and height in inches, at 100 points an inch.

    Raises
    ------
    DcmeError
        matplotlib is not installed.
    """
    figure = import_optional("matplotlib.figure", " to draw pictures")
    return figure.Figure(figsize=(width, height), dpi=100, layout="constrained")


def style_of(number: int) -> dict[str, Any]:
    """Return the color, marker and line style of the n-th of several lines."""
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number % len(LINES)],
    }


def plain_text(name: str) -> str:
    """Return a name as matplotlib draws it unchanged.

    It reads ``$`` as mathematics, and leaves names that start with an underscore out of legends.
    """
    return (" " if name.startswith("_") else "") + name.replace("$", r"\$")


def write_figure(figure: Any, path: str) -> None:
    """Write a picture: PNG, or PDF or SVG by the suffix; ``-`` is standard output."""
    import matplotlib

    format = picture_format(path)
    dates = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with atomic_write(path) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a label with letters that the font does not have
        with matplotlib.rc_context(_SETTINGS):
            figure.savefig(file, format=format, bbox_inches="tight", metadata=dates[format])


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


METHODS = ("tsne", "pca")
DIMENSIONS = 50  # that t-SNE starts from
PERPLEXITY = 30.0
_EARLY, _LATE = 250, 500  # iterations with and without exaggeration
ITERATIONS = _EARLY + _LATE


def check_method(method: str) -> None:
    """Raise `UsageError` if there is no such method of projection."""
    if method not in METHODS:
        raise UsageError(f"--method={method}: must be one of {', '.join(METHODS)}")


def tsne(
    components: Array,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
) -> F64:
    """Return points in a plane that keep the nearest neighbors of rows together.

    Parameters
    ----------
    components : ndarray of shape (n, d)
        The first two columns are the start.
    seed : int
    progress : callable
        Called with the number of iterations done.

    Returns
    -------
    ndarray of float64, shape (n, 2)

    References
    ----------
    van der Maaten and Hinton 2008, Visualizing Data using t-SNE, JMLR. Poličar et al. 2024,
    openTSNE, Journal of Statistical Software.
    """
    package = import_optional("openTSNE", ", or use --method=pca")
    start = components[:, :2] / max(float(np.std(components[:, 0])), 1e-12) * 1e-4
    done = 0

    def report(iteration: int, error: float, embedding: Any) -> None:
        nonlocal done
        done += 50
        progress(min(done, ITERATIONS))

    with warnings.catch_warnings(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        model = package.TSNE(
            perplexity=min(PERPLEXITY, (len(components) - 1) / 3), initialization=start,
            early_exaggeration_iter=_EARLY, n_iter=_LATE, random_state=seed,
            n_jobs=default_threads(), callbacks=report, callbacks_every_iters=50,
        )  # fmt: skip
        return np.array(model.fit(components), dtype=np.float64)
