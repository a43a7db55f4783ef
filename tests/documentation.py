"""Commands, flags and examples of the README and of docs/, for their tests."""

import re
import shlex
from pathlib import Path

import click
from helpers import ALL_COMMANDS

from dcme_w2v.cli.main import program

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
         for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]}  # fmt: skip


COMMANDS = {name: one for name, one in ALL_COMMANDS.items() if not isinstance(one, click.Group)}


def blocks(text, language):
    """Return the fenced blocks of a page in a language, with continued lines joined."""
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [block.replace("\\\n", " ") for block in found]


def command_lines(text):
    """Return the command lines of dcme-w2v in a page's blocks, pipes split, without redirects."""
    lines = [line.strip() for block in blocks(text, "(?:shell|text)") for line in block.split("\n")]
    lines += re.findall(r"^    (dcme-w2v .*)$", text.replace("\\\n", " "), re.MULTILINE)
    parts = [part.strip() for line in lines for part in line.split(" | ")]
    return [shlex.split(part.split(" > ")[0]) for part in parts if part.startswith("dcme-w2v ")]


def parse(line):
    """Return the context of a parsed command line; wrong usage raises an exception."""
    name, command, rest = "dcme-w2v", program, line[1:]
    context = click.Context(command, info_name=name)
    while isinstance(command, click.Group):
        name, command, rest = command.resolve_command(context, rest)
        context = click.Context(command, context, name)
    return command.make_context(name, rest, parent=context.parent)
