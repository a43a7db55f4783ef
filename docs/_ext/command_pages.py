"""Write a page of the reference for each command, before Sphinx reads the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from sphinx.application import Sphinx

from dcme_w2v.cli.main import program

FOLDER = Path(__file__).parents[1] / "reference" / "commands"  # not in git


def __getattr__(name: str) -> click.Command:
    """Return a command; sphinx-click reads attributes of a module."""
    command = program.get_command(click.Context(program), name)
    if command is None:
        raise AttributeError(name)
    return command


def write_pages(app: Sphinx) -> None:
    """Write the pages that are not up to date."""
    FOLDER.mkdir(exist_ok=True)
    for name in program.list_commands(click.Context(program)):
        page = FOLDER / f"{name}.md"
        text = (
            f"# {name}\n\n```{{eval-rst}}\n.. click:: command_pages:{name}\n"
            f"   :prog: dcme-w2v {name}\n   :nested: full\n```\n"
        )
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages when the build begins."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
