"""Figures of matplotlib: styles, names as plain text, files."""

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
LETTERS = 13  # points, so that a projected picture can be read from some rows away
MARKERS = "osD^vPX*<>"
LINES = ("-", "--", "-.", ":")
_SETTINGS: Any = {
    "svg.hashsalt": "dcme-w2v",  # the same picture is the same file
    "svg.fonttype": "none",  # text stays text
}


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure, which a notebook shows; width and height in inches of 100 points.

    Raises
    ------
    DcmeError
        matplotlib is not installed.
    """
    figure = import_optional("matplotlib.figure", " to draw pictures")
    found = figure.Figure(figsize=(width, height), dpi=100, layout="constrained")
    found._repr_png_ = partial(_drawn, found, "png")
    return found


def style_of(number: int) -> dict[str, Any]:
    """Return the color, marker and line style of the n-th of several lines."""
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": LINES[number % len(LINES)],
    }


def drawable(text: str) -> str:
    """Return a text with U+FFFD for what XML or a font cannot have, such as control characters."""
    return "".join(
        "\ufffd" if one == "\ufeff" or unicodedata.category(one) in _NOT_DRAWN else one
        for one in text
    )


def plain_text(name: str) -> str:
    """Return a name as matplotlib draws it unchanged.

    It reads ``$`` as mathematics, and leaves names that start with an underscore out of legends.
    """
    return (" " if name.startswith("_") else "") + drawable(name).replace("$", r"\$")


@contextlib.contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Ignore the warnings of matplotlib about letters that its font does not have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph|Matplotlib currently does not support")
        yield


def write_figure(figure: Any, path: str) -> None:
    """Write a picture: PNG, or PDF or SVG by the suffix; ``-`` is standard output."""
    data = _drawn(figure, picture_format(path))
    with atomic_write(path) as file:
        file.write(data)


def _drawn(figure: Any, format: str) -> bytes:
    """Return a picture as bytes."""
    import matplotlib

    dates = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    with io.BytesIO() as file, without_glyph_warnings():
        with matplotlib.rc_context(_SETTINGS):
            figure.savefig(file, format=format, bbox_inches="tight", metadata=dates[format])
        return file.getvalue()


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
