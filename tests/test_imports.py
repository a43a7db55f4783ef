"""Test modules import helpers, never each other."""

import re
from pathlib import Path


def test_no_module_imports_a_test_module():
    """A helper that two modules need belongs to helpers.py."""
    importing = re.compile(r"^(?:import|from) test_", re.MULTILINE)
    here = Path(__file__).parent.glob("*.py")
    assert not [one.name for one in here if importing.search(one.read_text(encoding="utf-8"))]
