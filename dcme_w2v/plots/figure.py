"""Helpers for matplotlib figures: styles, plain-text names and output files."""

import contextlib
import io
import unicodedata
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dcme_w2v.errors import UsageError, import_optional
from dcme_w2v.files.atomic import atomic_write

_NOT_DRAWN = "Cc", "Cn", "Co", "Cs"
PICTURES = (".png", ".pdf", ".svg")
COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
LETTERS = 13  # font size in points, large enough to be read on a projected slide
MARKERS = "osD^vPX*<>"
LINES = ("-", "--", "-.", ":")
_SETTINGS: Any = {
    "svg.hashsalt": "dcme-w2v",  # a constant salt makes SVG files bit-identical in every run
    "svg.fonttype": "none",  # write text as text elements instead of outlines
}


def new_figure(width: float, height: float) -> Any:
    """Create an empty figure that notebooks can show; width and height are in hundreds of pixels.

    Raises
    ------
    DcmeError
        matplotlib is not installed.
    """
    figure = import_optional("matplotlib.figure", " to draw plots")
    found = figure.Figure(figsize=(width, height), dpi=100, layout="constrained")
    found._repr_png_ = partial(_drawn, found, "png")
    return found


def style_of(number: int) -> dict[str, Any]:
    """Return the color, marker and line style of the n-th line in a plot."""
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number % len(LINES)],
    }


def drawable(text: str) -> str:
    """Replace characters that cannot be drawn, such as control characters, with U+FFFD."""
    return "".join(
        "\ufffd" if one == "\ufeff" or unicodedata.category(one) in _NOT_DRAWN else one
        for one in text
    )


def plain_text(name: str) -> str:
    """Escape a name so that matplotlib draws it unchanged.

    Matplotlib reads ``$`` as mathematics, and omits names that start with _ from legends.
    """
    return (" " if name.startswith("_") else "") + drawable(name).replace("$", r"\$")


@contextlib.contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Ignore matplotlib's warnings about letters that its font lacks, and about very long words."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Glyph|Matplotlib currently does not support|constrained_layout not applied"
        )
        yield


def write_figure(figure: Any, path: str) -> None:
    """Write a plot as PNG, PDF or SVG, depending on the suffix; ``-`` is standard output."""
    data = _drawn(figure, picture_format(path))
    with atomic_write(path) as file:
        file.write(data)


def _drawn(figure: Any, format: str) -> bytes:
    """Encode a plot in a file format, and return the bytes of the file."""
    import matplotlib

    dates = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with io.BytesIO() as file, without_glyph_warnings():
        with matplotlib.rc_context(_SETTINGS):
            figure.savefig(file, format=format, bbox_inches="tight", metadata=dates[format])
        return file.getvalue()


def picture_format(path: str) -> str:
    """Return the image format for a file name: the format of its suffix, or PNG without a suffix.

    Raises
    ------
    UsageError
        The suffix is not .png, .pdf or .svg.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in ("", *PICTURES):
        raise UsageError(
            f"{path} is not a PNG, PDF or SVG file name; use a name ending in .png, .pdf or .svg"
        )
    return suffix.removeprefix(".") or "png"
