"""Help texts of commands are plain text, not reStructuredText: escape what would be markup."""

from __future__ import annotations

import re
from typing import Any

import click
from sphinx.application import Sphinx

MARKUP = re.compile(r"([*`|\\]|_\b)")


def escape(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    r"""Escape a command's description, and render blocks after \b line by line."""
    found, as_is = [], False
    for line in lines:
        text = line.lstrip("| ") if line.startswith("|") else line
        as_is = as_is and bool(text.strip())
        if text.strip() in ("\b", r"\b"):
            as_is = True
            continue
        escaped = MARKUP.sub(r"\\\1", text)
        found.append(f"| {escaped}" if as_is or line.startswith("| ") else escaped)
    lines[:] = found


def escape_bars(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """Escape the bars in the help of options, which would be substitutions."""
    lines[:] = [
        line if line.lstrip().startswith((".. ", ":")) else line.replace("|", r"\|")
        for line in lines
    ]


def setup(app: Sphinx) -> dict[str, Any]:
    """Listen to sphinx-click."""
    app.connect("sphinx-click-process-description", escape)
    app.connect("sphinx-click-process-options", escape_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
