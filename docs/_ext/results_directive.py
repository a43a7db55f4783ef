"""The directive `results`: a table from scripts/benchmarks/results.csv, its origin, and its chart.

```{results} SUITE
:title: what it shows
:data: of which text
:setting: heading of the first column
:chart: metric, or several separated by ;
```
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any, ClassVar

from charts import draw_table
from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dcme_w2v.plots.figure import new_figure, write_figure

tables = runpy.run_path(
    str(Path(__file__).parents[2] / "scripts" / "benchmarks" / "tables.py"), run_name="tables"
)


class Results(SphinxDirective):
    """Render one suite's table."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = dict.fromkeys(
        ("title", "data", "setting", "chart", "axes"), directives.unchanged
    )

    def run(self) -> list[nodes.Node]:
        """Return the chart, the table and the line that says where the numbers come from."""
        name = self.arguments[0]
        self.env.note_dependency(str(tables["RESULTS"]))
        table = tables["table_of"](name)
        table["columns"][0] = self.options.get("setting", "setting")
        title = self.options.get("title", name)
        lines = [f"**{title}**", ""]
        if "chart" in self.options:
            picture = self._draw({**table, "title": title}, name)
            lines += [f"```{{image}} {picture}", f":alt: {title}", "```", ""]
        lines += tables["markdown_table"](table).splitlines()
        lines += ["", "{.origin}", self._origin(table)]
        holder = nodes.container(classes=["results"])
        self.state.nested_parse(StringList(lines, name), self.content_offset, holder)
        return [holder]

    def _origin(self, table: dict[str, Any]) -> str:
        data = f"Data: {self.options['data']}. " if "data" in self.options else ""
        return (
            f"{data}Seeds: {'; '.join(table['seeds'])}. Commit: {', '.join(table['commit'])}. "
            f"Machine: {'; '.join(table['machine'])}."
        )

    def _draw(self, table: dict[str, Any], name: str) -> str:
        """Draw bars of one metric, or a line for each row over several, as SVG."""
        metrics = [one.strip() for one in self.options["chart"].split(";")]
        chart: dict[str, Any] = {"kind": "bar", "x": metrics[0]}
        if len(metrics) > 1:
            xlabel, _, ylabel = self.options["axes"].partition("; ")
            chart = {"kind": "line", "x": metrics, "xlabel": xlabel, "ylabel": ylabel}
        path = Path(self.env.app.srcdir) / "_build" / "charts" / f"{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure = new_figure(7.5, 4)
        draw_table({**table, "chart": chart}, figure.add_subplot())
        write_figure(figure, str(path))
        here = Path(self.env.doc2path(self.env.docname)).parent
        return Path(os.path.relpath(path, here)).as_posix()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("results", Results)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
