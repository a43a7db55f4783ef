"""Imports: test modules import helpers, never each other, and only packages of `make test`."""

import ast
import re
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def imported(path, walk=ast.walk):
    """Return the top-level names of the modules that a file imports."""
    for node in walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


def offered():
    """Return the top-level names that the package and its extra `test` bring."""
    text = (TESTS.parent / "pyproject.toml").read_text(encoding="utf-8")
    lists = re.findall(r"^(?:dependencies|test) = \[(.*?)\]$", text, flags=re.MULTILINE | re.DOTALL)
    brought = {name.replace("-", "_") for name in re.findall(r'"([\w-]+)', "".join(lists))}
    brought |= {"sklearn", "joblib", "zstandard"}  # of the extras that `test` names
    ours = {path.stem for path in TESTS.glob("*.py")} | {"dcme_w2v"}
    return brought | ours | sys.stdlib_module_names


def at_the_top(tree):
    """Yield the imports that run when the module is imported."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node
            yield from at_the_top(node)


@pytest.mark.parametrize("path", sorted(TESTS.glob("*.py")), ids=lambda path: path.stem)
def test_no_module_imports_a_test_module(path):
    """A helper that two modules need belongs to helpers.py."""
    assert [name for name in imported(path) if name.startswith("test_")] == []


@pytest.mark.parametrize("path", sorted(TESTS.glob("*.py")), ids=lambda path: path.stem)
def test_modules_import_what_make_test_installs(path):
    """Tests of other packages ask for them with pytest.importorskip."""
    assert sorted(set(imported(path, at_the_top)) - offered()) == []
