"""Pictures of files: `plot` detects what a file holds, and draws curves or words."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import Paths
from dcme_w2v.platform import PathLike
from dcme_w2v.training.progress import is_log, read_log
from dcme_w2v.words.vectors import Vectors

from .figure import new_figure, picture_format, plain_text, style_of, write_figure
from .points import draw_words

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
    found = (name for record in log if record["event"] == "epoch" for name in _numbers(record))
    return list(dict.fromkeys(found))


def _numbers(record: dict[str, Any]) -> list[str]:
    return [name for name, value in record.items() if _is_number(value) and name != "epoch"]


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


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, how it is drawn, and the options that it takes."""

    name: str
    draw: Callable[..., None]
    options: tuple[str, ...]


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
    """Draw learning curves of logs, or words on a plane. Requires the extra ``plot``.

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
    listed = [files] if isinstance(files, str | os.PathLike) else files
    paths, output = [os.fspath(path) for path in listed], os.fspath(output)
    Paths().reads("FILES", *paths).writes("--output", output).check()
    picture_format(output)
    kind = kind_of(paths)
    values = {"fields": fields, "words": words, "limit": limit, "method": method, "seed": seed}
    given = {name: value for name, value in values.items() if value}
    wrong = [name for name in given if name not in kind.options]
    if wrong:
        name = wrong[0]
        flag, shown = ("field", (fields or [""])[0]) if name == "fields" else (name, given[name])
        raise UsageError(f"--{flag}={shown}: is not an option of {kind.name}")
    kind.draw(paths, output, **given)


def kind_of(paths: Sequence[str]) -> Kind:
    """Return the drawing of files; several files must be logs.

    Raises
    ------
    UsageError
        There are several files, and not all are logs.
    """
    for path in paths:
        if is_stream(path):
            raise UsageError(f"{path}: is a stream; give a file")
    logs = [not Path(path).is_dir() and is_log(path) for path in paths]
    if all(logs):
        return Kind("logs", draw_curves, ("fields",))
    if len(paths) > 1:
        other = paths[logs.index(False)]
        raise UsageError(f"{other}: is not a log of --log-json; of other files, give one at a time")
    return Kind("word vectors", _draw_words, ("words", "limit", "method", "seed"))


def _draw_words(paths: Sequence[str], output: str, words: str = "", **options: Any) -> None:
    draw_words(Vectors.load(paths[0]), output, words.split(), **options)
