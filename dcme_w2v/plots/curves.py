"""Learning curves of the logs that --log-json writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.run_log import read_log
from dcme_w2v.plots.figure import new_figure, plain_text, style_of, write_figure

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
