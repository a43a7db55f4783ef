"""Imports: test modules import helpers, never each other."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def imported(path):
    """Return the top-level names of all modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


@pytest.mark.parametrize("path", sorted(TESTS.glob("*.py")), ids=lambda path: path.stem)
def test_no_module_imports_a_test_module(path):
    """A helper that two modules need belongs to helpers.py."""
    assert [name for name in imported(path) if name.startswith("test_")] == []
