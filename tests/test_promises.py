"""docs/promises.md: every item names an existing test."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "promises.md"


def test_every_promise_names_a_test_that_exists():
    if not PAGE.exists():
        pytest.skip("no documentation beside the tests")
    functions = {
        node.name
        for path in TESTS.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    promises = re.findall(r"^- (.*(?:\n  .*)*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert promises
    for promise in promises:
        named = re.findall(r"`(test_\w+)`", promise)
        assert named, f"names no test: {promise}"
        assert set(named) <= functions, f"names a test that is not there: {promise}"
