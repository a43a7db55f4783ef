"""The directive `results`: a table of docs/results/*.json, its origin, and its chart."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any, ClassVar

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

results = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "results.py"))

# Okabe and Ito's colours, which are distinct in any colour vision.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000", "#F0E442")
MARKERS = "osD^vPX*"


class Results(SphinxDirective):
    """Render one table: ```{results} name```."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"no-chart": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the chart, the table and the line that says where the numbers come from."""
        name = self.arguments[0]
        source = results["RESULTS"] / f"{name}.json"
        self.env.note_dependency(str(source))
        table = results["load"](name)
        lines = [f"**{table['title']}**", ""]
        if "chart" in table and "no-chart" not in self.options:
            picture = draw(table, Path(self.env.app.srcdir) / "_build" / "charts" / f"{name}.svg")
            here = Path(self.env.doc2path(self.env.docname)).parent
            path = Path(os.path.relpath(picture, here)).as_posix()
            lines += [f"```{{image}} {path}", f":alt: {table['title']}", "```", ""]
        lines += results["markdown_table"](table).splitlines()
        lines += ["", *origin(table)]
        holder = nodes.container(classes=["results"])
        self.state.nested_parse(StringList(lines, str(source)), self.content_offset, holder)
        return [holder]


def origin(table: dict[str, Any]) -> list[str]:
    """Return the lines below a table: command, commit, machine, seeds and data."""
    return [
        f"{{.origin}}\n`{table['command']}`  ",
        f"Data: {table['data']}. Seeds: {table['seeds']}. Commit: {table['commit']}. "
        f"Machine: {table['machine']}.",
    ]


def draw(table: dict[str, Any], path: Path) -> Path:
    """Draw a table's chart as SVG: bars of a column, or a line for each row over columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(7.5, 4))
    (draw_bars if table["chart"]["kind"] == "bar" else draw_lines)(table, axes)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, format="svg", metadata={"Date": None})
    plt.close(figure)
    return path


def draw_bars(table: dict[str, Any], axes: Any) -> None:
    """Draw a horizontal bar for each row, with its number."""
    bars = results["chart_values"](table, table["chart"]["x"])
    names, values = [name for name, _ in bars], [value for _, value in bars]
    drawn = axes.barh(names, values, color=COLOURS[0])
    axes.bar_label(drawn, padding=3)
    axes.margins(x=0.1)
    axes.invert_yaxis()
    axes.set_xlabel(table["chart"]["x"])
    if min(values) > 10 * (max(values) - min(values)) or max(values) < 0:
        room = 0.1 * (max(values) - min(values) or 1)
        axes.set_xlim(min(values) - room, max(values) + room)


def draw_lines(table: dict[str, Any], axes: Any) -> None:
    """Draw a line with markers of its own for each row."""
    columns, places = table["chart"]["x"], range(len(table["chart"]["x"]))
    points = [dict(results["chart_values"](table, column)) for column in columns]
    for place, name in enumerate(points[0]):
        values = [one[name] for one in points if name in one]
        axes.plot(
            places[: len(values)],
            values,
            label=name,
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
        )
    axes.set_xticks(places, columns)
    axes.set_xlabel(table["chart"]["xlabel"])
    axes.set_ylabel(table["chart"]["ylabel"])
    axes.legend(fontsize="small")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    matplotlib.rcParams["svg.hashsalt"] = "dcme-w2v"
    app.add_directive("results", Results)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
