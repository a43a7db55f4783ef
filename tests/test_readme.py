"""The README cannot drift: its tables are the generated ones, its commands and flags exist."""

import re
import runpy
import shlex
from pathlib import Path

import click
import pytest

from dcme_w2v.cli.main import program
from dcme_w2v.options import PRESETS, flag_of

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXT = README.replace("\\|", "|")


def leaves(command, name):
    """Yield the full name of every command that is no group, and the command."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for child in command.list_commands(context):
        yield from leaves(command.get_command(context, child), f"{name} {child}")


COMMANDS = dict(leaves(program, "dcme-w2v"))


def examples():
    """Return the command lines of the README's indented blocks, with continued lines joined."""
    joined = README.replace("\\\n", " ")
    return [shlex.split(line) for line in re.findall(r"^    (dcme-w2v .*)$", joined, re.MULTILINE)]


def test_the_option_tables_are_the_generated_ones():
    script = runpy.run_path(str(ROOT / "scripts" / "readme_tables.py"))
    assert script["with_tables"](README) == README
    assert "| `--dim`, `--size`, `-size` |" in README


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_what_the_readme_says(name):
    flags = [f"{flag_of(option)} {value}" for option, value in PRESETS[name].items()]
    assert f"| `{name}` | `{' '.join(flags).replace('0.0', '0')}` |" in README


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme(name):
    assert f"`{name}`" in README


@pytest.mark.parametrize(
    "flag", [flag for param in COMMANDS["dcme-w2v train"].params for flag in param.opts
             if isinstance(param, click.Option)],
)  # fmt: skip
def test_every_flag_of_train_is_in_the_readme(flag):
    assert re.search(f"`{re.escape(flag)}[` ]", TEXT)


def test_every_flag_of_the_readme_exists():
    known = {flag for command in [program, *COMMANDS.values()] for param in command.params
             for flag in param.opts}  # fmt: skip
    named = set(re.findall(r"`(?:dcme-w2v )?(?:[a-z]+ )?(--?[a-z][a-z0-9-]*)", TEXT))
    assert named - known - {"--help"} == set()


@pytest.mark.parametrize("line", examples(), ids=" ".join)
def test_the_examples_parse(line):
    name, command, rest = "dcme-w2v", program, line[1:]
    context = click.Context(command, info_name=name)
    while isinstance(command, click.Group):
        name, command, rest = command.resolve_command(context, rest)
        context = click.Context(command, context, name)
    command.make_context(name, rest, parent=context.parent)


def test_the_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {"demo", "test", "test-slow", "lint", "bench", "ctest", "wheel", "clean"} <= targets
    named = set(re.findall(r"(?:^    |`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= named <= targets
