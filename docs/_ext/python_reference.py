"""The directive `python-reference`: the names of `dcme_w2v.__all__`."""

from __future__ import annotations

import re
from types import ModuleType

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import dcme_w2v

NAME = re.compile(r"(?<![\w`])(\w+)_(?![\w`])")
ATTRIBUTE = re.compile(r"\s*\w+ : ")


class PythonReference(SphinxDirective):
    """List the functions and classes, and the errors: ```{python-reference}```."""

    def run(self) -> list[nodes.Node]:
        """Return a block of autodoc for each name."""
        lines = ["```{eval-rst}", *names(), "```"]
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, "python-reference"), self.content_offset, holder)
        return list(holder.children)


def names() -> list[str]:
    """Return a directive of autodoc for each name: functions, classes, errors."""
    functions, classes, errors = [], [], []
    for name in dcme_w2v.__all__:
        found = getattr(dcme_w2v, name)
        if isinstance(found, ModuleType):
            types = (one for one in vars(found).values() if isinstance(one, type))
            own = (one for one in types if issubclass(one, Exception) and one.__name__[0] != "_")
            errors += [f".. autoexception:: {one.__module__}.{one.__name__}" for one in own]
        elif isinstance(found, type):
            classes.append(f".. autoclass:: dcme_w2v.{name}")
        elif callable(found):
            functions.append(f".. autofunction:: dcme_w2v.{name}")
    return [*functions, *classes, *errors]


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
