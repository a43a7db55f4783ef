"""The directive `results`: a table of docs/results/*.json, its origin, and its chart."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dcme_w2v.plots.figure import new_figure, write_figure
from dcme_w2v.plots.tables import draw_table

results = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "results.py"))


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
    figure = new_figure(7.5, 4)
    draw_table(table, figure.add_subplot())
    write_figure(figure, str(path))
    return path


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("results", Results)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
