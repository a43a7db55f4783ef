"""The directive `python-reference`: a section for each module of the package.

The modules are found in the package itself, so that none can be forgotten.
"""

from __future__ import annotations

import pkgutil
import re

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import dcme_w2v

NAME = re.compile(r"(?<![\w`])(\w+)_(?![\w`])")
ATTRIBUTE = re.compile(r"\s*\w+ : ")

# The command line has a reference of its own; the others only start the program.
LEFT_OUT = ("dcme_w2v.cli", "dcme_w2v.__main__")


class PythonReference(SphinxDirective):
    """List every module with its classes and functions: ```{python-reference}```."""

    def run(self) -> list[nodes.Node]:
        """Return an automodule block for each module."""
        lines = ["```{eval-rst}"]
        for name in modules():
            lines += [f".. rubric:: {name}", "", f".. automodule:: {name}", ""]
        lines.append("```")
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, "python-reference"), self.content_offset, holder)
        return list(holder.children)


def modules() -> list[str]:
    """Return the names of the package's modules, without the command line."""
    found = pkgutil.walk_packages(dcme_w2v.__path__, "dcme_w2v.")
    return ["dcme_w2v", *(one.name for one in found if not one.name.startswith(LEFT_OUT))]


def escape_names(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    """Escape names that end in an underscore, which would be links."""
    lines[:] = [line if ATTRIBUTE.match(line) else NAME.sub(r"\1\\_", line) for line in lines]


def skip_inherited(
    app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object
) -> bool | None:
    """Skip methods that scikit-learn adds to estimators; they refer to its documentation."""
    return str(getattr(obj, "__module__", "")).startswith("sklearn") or None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.connect("autodoc-process-docstring", escape_names, priority=400)  # before napoleon
    app.connect("autodoc-skip-member", skip_inherited)
    app.add_directive("python-reference", PythonReference)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
