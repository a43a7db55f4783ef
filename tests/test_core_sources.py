"""The C sources as a whole: which folder includes which, and how setup.py compiles them."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CSRC = ROOT / "csrc"


def included_folders(folder):
    """Return the folders of csrc whose headers a folder's files include."""
    found = set()
    for source in folder.glob("*.[ch]"):
        for name in re.findall(r'#include "([^"]+)"', source.read_text(encoding="utf-8")):
            path = CSRC / name if (CSRC / name).exists() else folder / name
            assert path.exists(), f"{source}: {name}"
            found.add(path.parent.name)
    return found - {folder.name}


def test_no_include_circle():
    folders = [CSRC, *filter(Path.is_dir, CSRC.iterdir())]
    graph = {folder.name: included_folders(folder) for folder in folders}
    assert "objectives" in graph["train"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"include circle: {' -> '.join(error.args[1])}")


def test_suppressed_races_are_in_sources_that_exist():
    text = (ROOT / "tests" / "tsan.supp").read_text(encoding="utf-8")
    named = re.findall(r"^race:(csrc/\S+)$", text, flags=re.M)
    assert named and not [name for name in named if not (ROOT / name).exists()]
