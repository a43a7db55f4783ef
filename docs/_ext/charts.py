"""Charts of tables of results in the documentation: bars of a column, or a line for each row."""

from __future__ import annotations

import re
from typing import Any

from dcme_w2v.errors import UsageError
from dcme_w2v.plots.figure import COLORS, plain_text, style_of

Table = dict[str, Any]


def draw_table(table: Table, axes: Any) -> None:
    """Draw the chart of a table."""
    axes.spines[["top", "right"]].set_visible(False)
    (_draw_bars if table["chart"].get("kind") == "bar" else _draw_lines)(table, axes)


def chart_values(table: Table, column: str) -> list[tuple[str, float]]:
    """Return the name and the number of each row that has one in a column."""
    if column not in table["columns"]:
        raise UsageError(f"column={column}: the columns are {_columns(table)}")
    place = table["columns"].index(column)
    found = []
    for row in table["rows"]:
        number = re.match(r"\**(-?[\d.]+)", row[place])
        if number:
            found.append((re.sub(r"[*`]", "", row[0]), float(number[1])))
    return found


def _columns(table: Table) -> str:
    return ", ".join(table["columns"][1:])


def _draw_bars(table: Table, axes: Any) -> None:
    """Draw a horizontal bar for each row, with its number."""
    bars = chart_values(table, table["chart"]["x"])
    if not bars:
        raise UsageError(f"column={table['chart']['x']}: has no numbers; name another")
    names, values = [plain_text(name) for name, _ in bars], [value for _, value in bars]
    drawn = axes.barh(names, values, color=COLORS[0])
    axes.bar_label(drawn, padding=3)
    axes.margins(x=0.1)
    axes.invert_yaxis()
    axes.set_xlabel(plain_text(table["chart"]["x"]))
    if min(values) > 10 * (max(values) - min(values)) or max(values) < 0:
        room = 0.1 * (max(values) - min(values) or 1)
        axes.set_xlim(min(values) - room, max(values) + room)


def _draw_lines(table: Table, axes: Any) -> None:
    """Draw a line with markers of its own for each row."""
    columns, places = table["chart"]["x"], range(len(table["chart"]["x"]))
    points = [dict(chart_values(table, column)) for column in columns]
    for number, name in enumerate(points[0]):
        values = [one[name] for one in points if name in one]
        axes.plot(places[: len(values)], values, label=plain_text(name), **style_of(number))
    axes.set_xticks(places, [plain_text(column) for column in columns])
    axes.set_xlabel(plain_text(table["chart"]["xlabel"]))
    axes.set_ylabel(plain_text(table["chart"]["ylabel"]))
    axes.legend(fontsize="small")
