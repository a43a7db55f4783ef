"""Write the generated reference: the pages of commands and Python names, and the layer diagram.

    python scripts/write_reference.py [--check]

With --check, write nothing and fail if a file is out of date; `make lint` runs this.
"""

from __future__ import annotations

import functools
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from layers import picture

import dcme_w2v
from dcme_w2v.cli.command import SHOW_ALL
from dcme_w2v.cli.main import program

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = DOCS / "reference"
WIDTH = 98
DECORATED = (classmethod, staticmethod, property, functools.cached_property)
NOTE = "<!-- written by scripts/write_reference.py -->\n"


def commands() -> dict[str, str]:
    """Return a page for each command with the help of all of its options, and the list of them."""
    pages, index = {}, f"# Commands\n\n{NOTE}\nEach page shows all options of a command, as "
    index += (
        "`--help-all` does. Some commands also accept options of word2vec.c, which begin with a "
    )
    index += "single dash, such as `-size`.\n\n"
    for name, context in _leaves(
        click.Context(program, info_name="dcme-w2v", max_content_width=WIDTH)
    ):
        file = name.removeprefix("dcme-w2v ").replace(" ", "-") + ".md"
        index += f"- [`{name}`]({file}): {context.command.get_short_help_str(1000)}\n"
        pages[file] = f"# {name}\n\n{NOTE}\n```text\n{context.get_help()}\n```\n"
    return {"README.md": index, **pages}


def _leaves(context: click.Context) -> Iterator[tuple[str, click.Context]]:
    """Yield the full name and the context of every command that is not a group."""
    if not isinstance(command := context.command, click.Group):
        context.meta[SHOW_ALL] = True
        yield context.command_path, context
        return
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        yield from _leaves(click.Context(child, context, name, terminal_width=WIDTH))


def python_names() -> dict[str, str]:
    """Return a page for each public name with its docstring and methods, and the list of them."""
    pages, index = {}, f"# Python names\n\n{NOTE}\nThis list contains every public name of "
    index += "`dcme_w2v`. Names that are not in this list may change. The "
    index += "[quick start](../../start/python.md) introduces the most important names.\n\n"
    for name in dcme_w2v.__all__:
        found = getattr(dcme_w2v, name)
        if not callable(found) and not isinstance(found, ModuleType):
            continue
        page = f"# dcme_w2v.{name}\n\n{NOTE}\n"
        if isinstance(found, ModuleType):
            page += _table(_errors(found), "error")
        else:
            text = f"dcme_w2v.{name}{_signature(found)}\n\n{inspect.getdoc(found)}"
            page += f"```text\n{_wrapped(text)}\n```\n"
            if methods := _methods(found) if isinstance(found, type) else []:
                page += f"\n{_table(methods, 'method')}"
        pages[f"{name}.md"] = page
        index += f"- [`{name}`]({name}.md): {_first_line(found)}\n"
    return {"README.md": index, **pages}


def _wrapped(text: str) -> str:
    """Return a text with long lines wrapped."""
    found = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())] or "    "
        found += textwrap.wrap(line, WIDTH, subsequent_indent=indent) or [""]
    return "\n".join(found)


def _signature(function: Any) -> str:
    """Return the parameters with their defaults, without types, which are in the docstring."""
    found = inspect.signature(function)
    bare = [one.replace(annotation=one.empty) for one in found.parameters.values()]
    return str(found.replace(parameters=bare, return_annotation=found.empty))


def _methods(cls: type) -> list[tuple[str, str]]:
    """Return the public methods and properties of a class, without those that scikit-learn adds."""
    rows = {}
    for base in cls.__mro__:
        for name, found in vars(base).items():
            origin = found.__module__ if inspect.isfunction(found) else base.__module__
            is_own = origin.startswith("dcme_w2v") and not name.startswith("_")
            is_made = inspect.isfunction(found) or isinstance(found, DECORATED)
            if not is_own or not is_made or name in rows or not getattr(cls, name).__doc__:
                continue
            shown = _signature(getattr(cls, name)) if callable(getattr(cls, name)) else ""
            shown = shown.replace("(self, ", "(").replace("(self)", "()")
            rows[name] = (f"{name}{shown}", _first_line(found))
    return list(rows.values())


def _errors(module: ModuleType) -> list[tuple[str, str]]:
    types = [one for one in vars(module).values() if isinstance(one, type)]
    own = [one for one in types if issubclass(one, Exception) and one.__name__[0] != "_"]
    return [(f"dcme_w2v.errors.{one.__name__}", _first_line(one)) for one in own]


def _first_line(found: Any) -> str:
    line = " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())
    return line.replace("|", "\\|").replace("``", "`")


def _table(rows: list[tuple[str, str]], heading: str) -> str:
    lines = [f"| `{name}` | {text} |\n" for name, text in rows]
    return f"| {heading} | description |\n|---|---|\n" + "".join(lines)


def written() -> dict[Path, str]:
    """Return the text of every generated file."""
    found = {DOCS / "architecture.svg": picture()}
    for folder, pages in (("commands", commands()), ("python", python_names())):
        found |= {REFERENCE / folder / name: text for name, text in pages.items()}
    return found


def main() -> None:
    """Write the files that are out of date, delete pages of removed names, or fail (--check)."""
    new = written()
    pages = {page for folder in ("commands", "python") for page in (REFERENCE / folder).glob("*")}
    for path in sorted(new.keys() | pages):
        text = new.get(path)
        if text == (path.read_text(encoding="utf-8") if path.exists() else None):
            continue
        if sys.argv[1:] == ["--check"]:
            name = path.relative_to(DOCS.parent)
            sys.exit(f"error: {name}: out of date; run scripts/write_reference.py")
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
