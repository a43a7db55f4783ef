"""The examples run, where their packages are installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {"few_labels.py": ["sklearn"], "sentence_search.py": ["sklearn", "usearch"]}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs(path, tmp_path):
    for package in NEEDS.get(path.name, []):
        pytest.importorskip(package)
    root = {"PYTHONPATH": str(EXAMPLES.parent), **os.environ}
    done = subprocess.run(
        [sys.executable, path], cwd=tmp_path, env=root, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
