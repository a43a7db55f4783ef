"""Fail if the built documentation has no entry for a command, an option or a public Python name.

    python scripts/check_docs.py build/docs

`make docs` runs it after Sphinx.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import dcme_w2v
from dcme_w2v.cli.main import program


def main() -> None:
    """Print missing entries, and fail if there are any."""
    folder = Path(sys.argv[1])
    pages = sorted((folder / "reference" / "commands").glob("*.html"))
    commands = "\n".join(text_of(page) for page in pages)
    missing = [*missing_options(commands),
               *missing_names(text_of(folder / "reference" / "python.html"))]  # fmt: skip
    for line in missing:
        print(line)
    if missing:
        sys.exit(f"error: {len(missing)} entries are missing in {folder}")


def text_of(page: Path) -> str:
    """Return the text and the anchors of a page, without markup."""
    source = page.read_text(encoding="utf-8")
    anchors = " ".join(re.findall(r'id="([^"]+)"', source))
    return html.unescape(re.sub(r"<[^>]*>", "", source)) + anchors


def missing_options(page: str) -> Iterator[str]:
    """Yield the commands and options that are not in the reference of the command line."""
    for name, command in leaves(program, "dcme-w2v"):
        heading = name.rpartition(" ")[2]
        section = re.search(rf"\n{re.escape(name)} \[OPTIONS\].*?(?=\ndcme-w2v |\Z)", page, re.S)
        if section is None:
            yield f"command {name} ({heading})"
            continue
        for param in command.params:
            for flag in param.opts if isinstance(param, click.Option) else ():
                if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", section[0]):
                    yield f"option {flag} of {name}"


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the full name of every command that is not a group, and the command."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for child in command.list_commands(context):
        found = command.get_command(context, child)
        assert found is not None
        yield from leaves(found, f"{name} {child}")


def missing_names(page: str) -> Iterator[str]:
    """Yield the public names that are not in the Python reference."""
    for name in dcme_w2v.__all__:
        found = getattr(dcme_w2v, name)
        if callable(found) and f"dcme_w2v.{name}" not in page:
            yield f"dcme_w2v.{name} in the Python reference"


if __name__ == "__main__":
    main()
