"""The examples run, where their packages are installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {
    "few_labels.py": ["sklearn"],
    "word_vectors.ipynb": ["matplotlib"],
    "classifier.ipynb": ["sklearn", "pandas"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An empty folder for all, so that notebooks collect their text once."""
    return tmp_path_factory.mktemp("examples")


@pytest.mark.parametrize(
    "path", sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")]), ids=lambda path: path.name
)
def test_an_example_runs(path, folder):
    for package in NEEDS.get(path.name, []):
        pytest.importorskip(package)
    code = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(code)["cells"] if cell["cell_type"] == "code"]
        code = "\n".join("".join(cell["source"]) for cell in cells)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=280,
        env={"PYTHONPATH": str(EXAMPLES.parent), "MPLBACKEND": "Agg", **os.environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout
