"""Pictures of files: learning curves, and points in a plane (Figure 5 of the SCDV paper)."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from dcme_w2v.classify.dataset import pieces
from dcme_w2v.errors import CorpusError, FormatError, UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import Paths, listed
from dcme_w2v.formats.sparse_io import join
from dcme_w2v.latent.jobs import DOCUMENTS_AT_ONCE
from dcme_w2v.latent.model import LatentClassifier
from dcme_w2v.latent.reduction import svd_of_rows
from dcme_w2v.numeric.arrays import F64, I64
from dcme_w2v.platform import PathLike
from dcme_w2v.training.progress import is_log, read_log
from dcme_w2v.words.vectors import Vectors

from .figure import (
    COLORS,
    DIMENSIONS,
    check_method,
    new_figure,
    picture_format,
    plain_text,
    style_of,
    tsne,
    write_figure,
)

_IN_LEGEND = 39  # with a color and marker of their own
GRAY = "#B0B0B0"


def plane(
    rows: sparse.csr_matrix, method: str = "tsne", limit: int = 2000, seed: int = 1
) -> tuple[I64, F64]:
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
    chosen = _sample(rows.shape[0], count, seed)
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
    return chosen, components[:, :2] if method == "pca" else tsne(components, seed)


def _sample(rows: int, count: int, seed: int) -> I64:
    """Return so many numbers of rows, drawn at random, ascending."""
    return np.sort(np.random.default_rng(seed).choice(rows, count, replace=False))


def draw(path: str, points: F64, labels: Sequence[str] | None) -> None:
    """Write a picture of points, a color and marker a label: PNG, or PDF or SVG by the suffix.

    Parameters
    ----------
    path : str
        ``-`` is standard output.
    points : ndarray of float64, shape (n, 2)
    labels : sequence of str, optional
        The label of each point.
    """
    picture_format(path)
    figure = new_figure(10, 10)
    axes = figure.add_subplot()
    if labels:
        _scatter(axes, points, np.array(labels, dtype=object))
        figure.legend(fontsize=7, markerscale=2, loc="outside right upper")
    else:
        axes.scatter(*points.T, s=8, color=COLORS[0])
    axes.set_axis_off()
    write_figure(figure, path)


def _scatter(axes: Any, points: F64, labels: NDArray[np.object_]) -> None:
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


# ---- documents by latent class ----

COMPONENTS, WORDS = 50, 2


def plot_files(
    model: LatentClassifier,
    docs: Sequence[str],
    output: str,
    *,
    method: str = "tsne",
    limit: int = 2000,
    seed: int = 1,
) -> None:
    """Draw documents; the legend names each latent class by specific words, or by its label.

    Parameters
    ----------
    model : LatentClassifier
    docs : sequence of str
    output : str
        PNG; ``-`` is standard output.
    method : {"tsne", "pca"}
    limit : int
        Maximum number of documents, sampled at random.
    seed : int
    """
    parts = [csr_matrix(part) for part, _, _ in pieces(model, docs, None, DOCUMENTS_AT_ONCE)]
    if not parts:
        raise CorpusError(f"{docs[0]}: has no documents; a picture needs 3")
    rows = join(parts)
    rows = csr_matrix(rows[_sample(rows.shape[0], min(limit, rows.shape[0]), seed)])
    if min(rows.shape) < 3:
        count, width = rows.shape
        raise UsageError(
            f"{docs[0]}: {count} rows of {width} numbers; a picture needs 3 at least of each"
        )
    left, squares, _ = svd_of_rows(rows, COMPONENTS, seed, centered=True)
    components = np.zeros((len(left), max(3, left.shape[1])))
    components[:, : left.shape[1]] = left * np.sqrt(squares)
    _, points = plane(csr_matrix(components), method, len(components), seed)
    classes = np.concatenate([p.argmax(axis=1) for p in model.latent_log_probabilities(rows)])
    names = class_names(model)
    draw(output, points, [names[int(k)] for k in classes])


def class_names(model: LatentClassifier) -> list[str]:
    """Return a name for each latent class: its number, and its first words or its label."""
    found = []
    for one in model.describe(WORDS):
        words = [name for name, _ in (one["words"] if model.clusters else one["labels"][:1])]
        found.append(" ".join([f"{one['class']}:", *words]))
    return found


# ---- words ----

MIN_WORDS = 3
_LETTER, _HEIGHT = 6.4, 12.0  # pixels of a letter and of a line of 8 points
_DISTANCES = (4.0, 9.0, 16.0, 25.0, 36.0, 50.0, 66.0)
_DIRECTIONS = ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 0), (-1, 1), (-1, -1))
_FAR = 20.0  # from which a line joins a label to its point


def draw_words(
    vectors: Vectors,
    output: str,
    words: Sequence[str] = (),
    *,
    method: str = "tsne",
    limit: int = 200,
    seed: int = 1,
) -> None:
    """Draw words as points with labels, close together where their vectors have a high cosine.

    Parameters
    ----------
    vectors : Vectors
    output : str
        Picture; ``-`` is standard output.
    words : sequence of str
        These words; by default the `limit` most frequent ones.
    method : {"tsne", "pca"}
    limit : int
    seed : int
    """
    chosen = list(dict.fromkeys(words)) or list(vectors.words[:limit])
    rows = vectors[chosen]
    if len(chosen) < MIN_WORDS:
        raise UsageError(f"{len(chosen)} words; a picture needs {MIN_WORDS} at least")
    lengths = (rows**2).sum(axis=1, keepdims=True) ** 0.5
    rows = rows / (lengths + (lengths == 0))
    _, points = plane(csr_matrix(rows), method, len(rows), seed)
    figure = new_figure(10, 10)
    axes = figure.add_subplot()
    axes.scatter(*points.T, s=8, color=COLORS[0])
    axes.margins(0.06)
    axes.set_axis_off()
    figure.draw_without_rendering()  # sets the scale
    pixels = axes.transData.transform(points)
    widths = [_LETTER * (len(word) + 0.5) for word in chosen]
    places = free_places(pixels.tolist(), widths)
    for word, point, (x, y), width in zip(chosen, points.tolist(), places, widths, strict=True):
        is_far = max(x, -x - width, abs(y)) > _FAR
        line = {"arrowstyle": "-", "lw": 0.4, "color": GRAY} if is_far else None
        axes.annotate(
            word, point, xytext=(x, y), textcoords="offset pixels", fontsize=8, va="center",
            parse_math=False, arrowprops=line,
        )  # fmt: skip
    write_figure(figure, output)


def free_places(
    points: Sequence[Sequence[float]], widths: Sequence[float]
) -> list[tuple[float, float]]:
    """Return the offset of each label from its point, such that labels do not overlap.

    Offsets are tried from near to far in eight directions; a label that has no place nearby stands
    at the right of its point.

    Parameters
    ----------
    points : sequence of (x, y)
        In pixels.
    widths : sequence of float
        Of the labels, in pixels.
    """
    taken = [(x - 2.0, y - 2.0, x + 2.0, y + 2.0) for x, y in points]
    offsets = []
    for (x, y), width in zip(points, widths, strict=True):
        ways = (
            (
                distance * across - (width if across < 0 else width / 2 if not across else 0),
                distance * up,
            )
            for distance in _DISTANCES
            for across, up in _DIRECTIONS
        )
        for dx, dy in ways:
            left, low = x + dx, y + dy - _HEIGHT / 2
            right, high = left + width, low + _HEIGHT
            if not any(left < c and a < right and low < d and b < high for a, b, c, d in taken):
                break
        else:
            dx, dy = 4.0, 0.0
            left, low, right, high = x + dx, y - _HEIGHT / 2, x + dx + width, y + _HEIGHT / 2
        taken.append((left, low, right, high))
        offsets.append((dx, dy))
    return offsets


Curve = tuple[list[float], list[float]]  # epochs, or examples, and values
_USUAL = re.compile("(heldout_)?(loss|log_probability|accuracy|precision_at_1)")
_MANY_POINTS = 40  # without markers


def draw_curves(paths: Sequence[str], output: str, fields: Sequence[str] = ()) -> None:
    """Draw a panel for each field, with a line for each log.

    Parameters
    ----------
    paths : sequence of str
        Logs.
    output : str
        Picture; ``-`` is standard output.
    fields : sequence of str
        Figures of epochs, such as ``lr``; by default the losses and mean log-probabilities, or else
        all that some log has.
    """
    logs = [list(read_log(path)) for path in paths]
    every = list(dict.fromkeys(name for log in logs for name in _fields_of(log)))
    if not every:
        raise FormatError(f"{', '.join(paths)}: has no epoch with a loss; train for longer")
    unknown = [name for name in fields if name not in every]
    if unknown:
        raise UsageError(f"--field={unknown[0]}: the logs have {', '.join(every)}")
    chosen = list(fields) or [name for name in every if _USUAL.fullmatch(name)] or every
    figure = new_figure(7, 3.2 * len(chosen))
    panels = figure.subplots(len(chosen), 1, squeeze=False)[:, 0]
    for panel, name in zip(panels, chosen, strict=True):
        by_epoch = any(len(_curve(log, name, "epoch")[0]) > 1 for log in logs)
        for number, (path, log) in enumerate(zip(paths, logs, strict=True)):
            x, y = _curve(log, name, "epoch" if by_epoch else "progress")
            style = style_of(number)
            panel.plot(
                x, y, label=plain_text(path), markersize=4 if len(x) <= _MANY_POINTS else 0, **style
            )
        panel.set_xlabel("epoch" if by_epoch else _unit_of(logs))
        panel.set_ylabel(name.replace("_", " "))
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    if len(paths) > 1:
        panels[0].legend(fontsize=8)
    write_figure(figure, output)


def _fields_of(log: Sequence[dict[str, Any]]) -> list[str]:
    """Return the fields of epochs that are numbers."""
    found: dict[str, None] = {}
    for record in log:
        if record["event"] == "epoch":
            found |= {name: None for name, value in record.items() if _is_number(value)}
    return [name for name in found if name != "epoch"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _curve(log: Sequence[dict[str, Any]], name: str, event: str) -> Curve:
    """Return a field over epochs, or over the progress of training; resumed logs are continued."""
    place = "epoch" if event == "epoch" else "done"
    points = {
        record[place]: record[name]
        for record in log
        if record["event"] == event and _is_number(record.get(place))
        and _is_number(record.get(name))
    }  # fmt: skip
    x = sorted(points)
    return x, [points[one] for one in x]


def _unit_of(logs: Sequence[Sequence[dict[str, Any]]]) -> str:
    units = [r["unit"] for log in logs for r in log if r["event"] == "start" and r.get("unit")]
    return str(units[-1]) if units else "progress"


def plot(
    files: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    fields: Sequence[str] | None = None,
    words: str | None = None,
    limit: int | None = None,
    method: str | None = None,
    seed: int | None = None,
) -> None:
    """Draw learning curves of logs, or words on a plane. Requires matplotlib.

    Parameters
    ----------
    files : path or sequence of paths
        One or several logs of --log-json, or one file of word vectors.
    output : path
        Picture: .png, .pdf or .svg; ``-`` is standard output.
    fields : sequence of str, optional
        Figures of the logs, such as ``lr`` (default: loss and log-probabilities).
    words : str, optional
        Words to draw, separated by spaces (default: the `limit` most frequent).
    limit : int, optional
        Number of words (default: 200).
    method : {"tsne", "pca"}, optional
        Projection of words (default: tsne).
    seed : int, optional
        Seed of the projection (default: 1).

    Raises
    ------
    UsageError
        An option is not one for this kind of file, or the suffix of `output` is another.
    DcmeError
        matplotlib or openTSNE is not installed.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", dim=8, epochs=2, threads=1, log_json="train.log")
    >>> dw.plot("train.log", "curves.svg")
    """
    paths, output = listed(files), os.fspath(output)
    Paths().reads("FILES", *paths).writes("--output", output).check()
    picture_format(output)
    with_words = not _are_logs(paths)
    allowed = ("words", "limit", "method", "seed") if with_words else ("fields",)
    values: dict[str, Any] = {
        "fields": fields, "words": words, "limit": limit, "method": method, "seed": seed
    }  # fmt: skip
    given = {name: value for name, value in values.items() if value}
    wrong = [name for name in given if name not in allowed]
    if wrong:
        name = wrong[0]
        flag, shown = ("field", (fields or [""])[0]) if name == "fields" else (name, given[name])
        kind = "word vectors" if with_words else "logs"
        raise UsageError(f"--{flag}={shown}: is not an option of {kind}")
    if with_words:
        chosen = given.pop("words", "").split()
        draw_words(Vectors.load(paths[0]), output, chosen, **given)
    else:
        draw_curves(paths, output, **given)


def _are_logs(paths: Sequence[str]) -> bool:
    """Return whether files are logs; several files must be.

    Raises
    ------
    UsageError
        There are several files, and not all are logs.
    """
    for path in paths:
        if is_stream(path):
            raise UsageError(f"{path}: is a stream; give a file")
    logs = [not Path(path).is_dir() and is_log(path) for path in paths]
    if len(paths) > 1 and not all(logs):
        other = paths[logs.index(False)]
        raise UsageError(f"{other}: is not a log of --log-json; of other files, give one at a time")
    return all(logs)
