"""Plot learning curves from logs, reliability diagrams, and two-dimensional maps of vectors."""

import contextlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.declarations import whole_number
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import READS, WRITES, as_paths, guard
from dcme_w2v.formats.sparse_io import is_vectors, read_labels, read_sparse_rows
from dcme_w2v.numeric.arrays import F64, unit_vectors
from dcme_w2v.platform import PathLike, path_name
from dcme_w2v.training.progress import is_log, read_log
from dcme_w2v.words.vectors import Vectors, load_if_path

from .figure import (
    COLORS,
    LETTERS,
    drawable,
    new_figure,
    picture_format,
    plain_text,
    style_of,
    without_glyph_warnings,
    write_figure,
)
from .projection import plane

MIN_POINTS = 3
_IN_LEGEND = 10  # maximum number of legend entries; the last one can represent all other labels
_OF_WORDS, _OF_ROWS = 100, 2000  # default maximum numbers of words and rows in a plot
GRAY = "#B0B0B0"
# Candidate label positions around a point: offsets in pixels (right, up) and text alignment.
PLACES = ((4, 0, "left"), (-4, 0, "right"), (0, 13, "center"), (0, -13, "center"))
# Maps each kind of plot to the options that apply to it.
OPTIONS = {
    "logs": ("fields",),
    "word vectors": ("words", "limit", "method", "seed"),
    "rows": ("labels", "limit", "method", "seed"),
    "measures": (),
}


# The x values (epochs or processed units) and y values of a curve.
Curve = tuple[list[float], list[float]]
_USUAL = re.compile("(heldout_)?(loss|log_probability|accuracy|precision_at_1)")
_MANY_POINTS = 40  # maximum number of points on a curve that is drawn with markers
_MEASURES_BYTES = 1 << 26  # larger files are not searched for calibration measures


def draw_curves(paths: Sequence[str], fields: Sequence[str] = ()) -> Any:
    """Plot one panel per field, with one line per log.

    Parameters
    ----------
    paths : sequence of str
        Logs.
    fields : sequence of str
        Measures of epochs, such as ``lr``; by default losses and mean log-probabilities, or else
        every field that any log has.
    """
    logs = [list(read_log(path)) for path in paths]
    every = list(dict.fromkeys(name for log in logs for name in _fields_of(log)))
    if not every:
        raise FormatError(
            f"{', '.join(paths)}: no loss is recorded for any epoch; finish at least one epoch"
        )
    unknown = [name for name in fields if name not in every]
    if unknown:
        raise UsageError(
            f"--field={unknown[0]} is not a field of these logs; use one of {', '.join(every)}"
        )
    chosen = list(fields) or [name for name in every if _USUAL.fullmatch(name)] or every
    figure = new_figure(7, 3.2 * len(chosen))
    panels = figure.subplots(len(chosen), 1, squeeze=False)[:, 0]
    for panel, name in zip(panels, chosen, strict=True):
        by_epoch = any(len(_curve(log, name, "epoch")[0]) > 1 for log in logs)
        for number, (path, log) in enumerate(zip(paths, logs, strict=True)):
            x, y = _curve(log, name, "epoch" if by_epoch else "progress")
            style, label = style_of(number), plain_text(path)
            if number >= _shown(len(paths)):
                others = len(paths) - _shown(len(paths))
                style["color"] = GRAY
                label = f"{others} other logs" if number == len(paths) - 1 else "_"
            panel.plot(x, y, label=label, markersize=4 if len(x) <= _MANY_POINTS else 0, **style)
        panel.locator_params(axis="x", integer=by_epoch)
        starts = (record for log in logs for record in log if record["event"] == "start")
        units = ["progress", *(str(record["unit"]) for record in starts if record.get("unit"))]
        _label_axes(panel, "epoch" if by_epoch else units[-1], drawable(name.replace("_", " ")))
    if len(paths) > 1:
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, fontsize=LETTERS, loc="outside right upper")
    return figure


def _label_axes(axes: Any, x_name: str, y_name: str) -> None:
    axes.set_xlabel(x_name, fontsize=LETTERS)
    axes.set_ylabel(y_name, fontsize=LETTERS)
    axes.tick_params(labelsize=LETTERS)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _fields_of(log: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of the numeric fields in the epoch events of a log."""
    found: dict[str, None] = {}
    for record in log:
        if record["event"] == "epoch":
            found |= {name: None for name, value in record.items() if _is_number(value)}
    return [name for name in found if name != "epoch"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _curve(log: Sequence[dict[str, Any]], name: str, event: str) -> Curve:
    """Return the values of a log field, by epoch or by the number of processed units."""
    place = "epoch" if event == "epoch" else "done"
    points = {
        record[place]: record[name]
        for record in log
        if record["event"] == event and _is_number(record.get(place))
        and _is_number(record.get(name))
    }  # fmt: skip
    x = sorted(points)
    return x, [points[one] for one in x]


def draw_reliability(paths: Sequence[str]) -> Any:
    """Plot reliability: for each predicted probability, the fraction of correct predictions."""
    figure = new_figure(4.5, 4.5)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=GRAY, linewidth=1)
    for number, path in enumerate(paths):
        rows = _reliability(path) or []
        points = [[float(row[name]) for row in rows] for name in ("predicted", "observed")]
        style = style_of(min(number, _IN_LEGEND))
        axes.plot(*points, label=plain_text(path), markersize=4, **style)
    _label_axes(axes, "probability", "share that is correct")
    if len(paths) > 1:
        axes.legend(fontsize=LETTERS)
    return figure


def _reliability(path: str) -> list[dict[str, Any]] | None:
    """Read a `classify test --calibration --json` table; return None for any other file."""
    file = Path(path)
    if not file.is_file() or file.stat().st_size > _MEASURES_BYTES:
        return None
    # `ValueError` includes UnicodeDecodeError, which is raised if the file is not UTF-8.
    with contextlib.suppress(ValueError, TypeError, KeyError):
        rows = json.loads(file.read_text(encoding="utf-8"))["calibration"]
        if rows and all(_is_number(row[x]) for row in rows for x in ("predicted", "observed")):
            return list(rows)
    return None


def draw_words(
    path: str | Vectors,
    words: str = "",
    limit: int = _OF_WORDS,
    method: str = "tsne",
    seed: int = 1,
) -> Any:
    """Plot words as labeled points; similar words are close to each other."""
    vectors = load_if_path(path)
    chosen = list(dict.fromkeys(words.split())) or list(vectors.words[:limit])
    axes, points = _points(unit_vectors(vectors[chosen]), method, seed)
    axes.scatter(*points.T, s=8, color=COLORS[0])
    axes.margins(0.06)
    axes.figure.draw_without_rendering()  # fix the scale before labels are placed
    box_of = axes.figure.bbox_inches.from_bounds
    boxes = [box_of(x - 2, y - 2, 4, 4) for x, y in axes.transData.transform(points)]
    for word, point in zip(chosen, points.tolist(), strict=True):
        for x, y, side in PLACES:
            label = axes.annotate(
                drawable(word), point, (x, y), textcoords="offset pixels", fontsize=LETTERS,
                ha=side, va="center", parse_math=False,
            )  # fmt: skip
            with without_glyph_warnings():
                box = label.get_window_extent()
            if not box.count_overlaps(boxes) or (x, y, side) == PLACES[-1]:
                break
            label.set_visible(False)
        boxes.append(box)
    return axes.figure


def draw_rows(
    path: str,
    labels: str | None = None,
    limit: int = _OF_ROWS,
    method: str = "tsne",
    seed: int = 1,
) -> Any:
    """Plot the rows of a file as points, with a color and marker for each label.

    If there are more than `limit` rows, a random sample is drawn.
    """
    rows, found = read_sparse_rows(path, None)
    names = found if labels is None else read_labels(labels, rows.shape[0])
    count = min(limit, rows.shape[0])
    chosen = np.sort(np.random.default_rng(seed).choice(rows.shape[0], count, replace=False))
    axes, points = _points(rows[chosen], method, seed)
    if any(names):
        _scatter(axes, points, np.array(["|".join(names[i]) for i in chosen], dtype=object))
        axes.figure.legend(fontsize=LETTERS, markerscale=2, loc="outside right upper")
    else:
        axes.scatter(*points.T, s=8, color=COLORS[0])
    return axes.figure


def _points(rows: Any, method: str, seed: int) -> tuple[Any, F64]:
    """Create the axes of a plot, and compute the position of each row in two dimensions."""
    if rows.shape[0] < MIN_POINTS:
        raise UsageError(
            f"there are {rows.shape[0]} points, but a plot requires at least {MIN_POINTS} points; "
            "use more words or rows"
        )
    points = plane(rows, method, seed)
    axes = new_figure(10, 10).add_subplot()
    axes.set_axis_off()
    return axes, points


def _shown(count: int) -> int:
    """Return how many of `count` lines or labels have a color and legend entry of their own."""
    return count if count <= _IN_LEGEND else _IN_LEGEND - 1


def _scatter(axes: Any, points: F64, labels: NDArray[np.object_]) -> None:
    """Plot points colored by label, with the least frequent labels in gray."""
    names, counts = np.unique(labels, return_counts=True)
    shown = _shown(len(names))
    kept = sorted(names[np.argsort(-counts, kind="stable")][:shown].tolist())
    others = len(names) - len(kept)
    if others:
        rest = points[~np.isin(labels, kept)]
        axes.scatter(*rest.T, s=8, color=GRAY, zorder=0, label=f"{others} other labels")
    for number, name in enumerate(kept):
        style = style_of(number)
        own = points[labels == name]
        label = plain_text(name) or "(none)"
        axes.scatter(*own.T, s=8, marker=style["marker"], color=style["color"], label=label)


def plot(
    files: PathLike | Vectors | Sequence[PathLike],
    output: PathLike | None = None,
    *,
    fields: Sequence[str] | None = None,
    words: str | None = None,
    labels: PathLike | None = None,
    limit: int | None = None,
    method: str | None = None,
    seed: int | None = None,
) -> Any:
    """Plot learning curves, reliability diagrams, or a map of words or rows, using matplotlib.

    Parameters
    ----------
    files : path, Vectors or sequence of paths
        One or several logs that ``--log-json`` wrote, or outputs of ``classify test --calibration
        --json``. For a map: word vectors, or a file of rows (.npz, .svm).
    output : path, optional
        File to write the plot to (.png, .pdf or .svg); ``-`` is standard output.
    fields : sequence of str, optional
        Fields of the logs to plot, such as ``lr`` (default: the loss and the log-probabilities).
    words : str, optional
        Words to plot, separated by spaces (default: the `limit` most frequent words).
    labels : path, optional
        File with one label per line, in row order; the labels determine the colors.
    limit : int, optional
        Number of words (default: 100) or number of randomly sampled rows (default: 2000) to plot.
    method : {"tsne", "pca"}, optional
        Projection method for the map (default: tsne).
    seed : int, optional
        Random seed of the projection (default: 1).

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    UsageError
        An option does not apply to this kind of file, or the suffix of `output` is not supported.
    DcmeError
        matplotlib or openTSNE is not installed.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", dim=8, epochs=2, threads=1, log_json="train.log")
    >>> len(dw.plot("train.log", "curves.svg").axes)
    1
    """
    limit = None if limit is None else whole_number("limit", limit, 3)
    seed = None if seed is None else whole_number("seed", seed, 0)
    paths = [] if isinstance(files, Vectors) else as_paths(files)
    name = "" if output is None else path_name(output, "output")
    guard((READS, "FILES", paths), (READS, "--labels", labels), (WRITES, "--output", output))
    picture_format(name)
    kind = "word vectors" if isinstance(files, Vectors) else _kind_of(paths)
    values: dict[str, Any] = {
        "fields": fields, "words": words, "labels": labels, "limit": limit,
        "method": method, "seed": seed,
    }  # fmt: skip
    given = {name: value for name, value in values.items() if value not in (None, "", ())}
    for option, value in given.items():
        if option not in OPTIONS[kind]:
            flag, shown = ("field", value[0]) if option == "fields" else (option, value)
            raise UsageError(
                f"--{flag}={shown} is not supported for plots of {kind}; omit --{flag}"
            )
    if kind == "logs":
        figure = draw_curves(paths, **given)
    elif kind == "measures":
        figure = draw_reliability(paths)
    elif kind == "rows":
        figure = draw_rows(paths[0], **given)
    else:
        figure = draw_words(files if isinstance(files, Vectors) else paths[0], **given)
    if name:
        write_figure(figure, name)
    return figure


def _kind_of(paths: Sequence[str]) -> str:
    """Return the kind of plot for the files, which must be either all logs or all measures.

    Raises
    ------
    UsageError
        There are several files, but not all are logs.
    """
    for path in paths:
        if is_stream(path):
            raise UsageError(f"{path}: a stream cannot be plotted; save the data to a file")
    logs = [not (Path(path).is_dir() or is_vectors(path)) and is_log(path) for path in paths]
    if all(logs):
        return "logs"
    if all(_reliability(path) is not None for path in paths):
        return "measures"
    if len(paths) > 1:
        other = paths[logs.index(False)]
        raise UsageError(f"{other} is not a log written by --log-json; plot this file separately")
    return "rows" if is_vectors(paths[0]) else "word vectors"
