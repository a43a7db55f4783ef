"""Checks can fail: every target is run, every skip is listed, every test asserts something."""

import ast
import os
import re
from pathlib import Path

from helpers import python

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


# ---- targets of the Makefile ----

BY_HAND = {
    "clean": "removes what the others build",
    "format": "changes the sources; lint says whether it has to",
    "help": "prints a list",
}


def test_every_target_of_the_makefile_is_run_by_ci_or_a_workflow():
    targets = dict(re.findall(r"^([a-z0-9-]+):(.*?)##", (ROOT / "Makefile").read_text(), re.M))
    lines = re.findall(r"^[^#]*?\b(?:run|timed) (.*)", (ROOT / ".ci" / "run").read_text(), re.M)
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        lines += re.findall(r"^[^#]*?\b(?:make|\.ci/run|target:) (.*)", path.read_text(), re.M)
    found = set(re.split(r"[\s\[\],{}]+", " ".join(lines))) & set(targets)
    for _ in targets:  # and what these depend on
        found |= {one for target in found for one in targets[target].split() if one in targets}
    assert len(found) > 20
    assert sorted(targets) == sorted([*found, *BY_HAND])


# ---- skips ----


SKIPPING = """
import pytest


def test_it():
    pytest.skip({!r})


@pytest.mark.long
def test_long():
    pass


def test_short():
    pass
"""


def pytest_of(folder, reason, **settings):
    """Run three tests, one of which is skipped, with the settings of tests/conftest.py."""
    Path("test_it.py").write_text(SKIPPING.format(reason))
    return python(
        "-m", "pytest", "-p", "no:cacheprovider", "-p", "conftest",
        "-c", ROOT / "pyproject.toml", folder / "test_it.py",
        env=os.environ | {"PYTHONPATH": f"{TESTS}{os.pathsep}{ROOT}"} | settings,
    )  # fmt: skip


def test_a_skip_that_is_not_listed_fails(here):
    done = pytest_of(here, "for no reason", DCME_W2V_SKIPS="listed", DCME_W2V_REST="")
    assert done.returncode == 1 and "error: no skip of" in done.stdout, done.stdout


def test_what_is_skipped_is_run_later(here):
    done = pytest_of(here, "for no reason", DCME_W2V_SKIPS="skipped", DCME_W2V_REST="")
    assert done.returncode == 0 and "2 passed, 1 skipped" in done.stdout
    (name,) = Path("skipped").read_text().splitlines()
    assert name.endswith("::test_it")
    done = pytest_of(here, "only root can", DCME_W2V_SKIPS="listed", DCME_W2V_REST="skipped")
    assert done.returncode == 0 and "1 passed, 1 skipped" in done.stdout


# ---- tests that assert nothing ----


def called(node):
    """Yield the names of the functions and methods that a function calls."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            yield getattr(one.func, "id", getattr(one.func, "attr", ""))


def asserts(node):
    """Tell whether a function asserts by itself."""
    return any(isinstance(one, ast.Assert) for one in ast.walk(node)) or any(
        re.fullmatch("raises|warns|fail|assert_.*", name) for name in called(node)
    )


def without_assertions(sources):
    """Return the tests that neither assert nor call a function of the tests that does."""
    functions = {"cli": []}
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef):
                name = "cli" if node.name == "__call__" else node.name
                functions.setdefault(name, []).append((asserts(node), {*called(node)}))
    known, more = set(), {name for name, all_ in functions.items() if any(own for own, _ in all_)}
    while more:
        known |= more
        more = {
            name for name, all_ in functions.items()
            if name not in known and any(known & calls for _, calls in all_)
        }  # fmt: skip
    return sorted(name for name in functions if name.startswith("test_") and name not in known)


def test_every_test_asserts_something():
    nothing = "def helper(): pass\ndef test_it(): helper()\n"
    assert without_assertions([nothing]) == ["test_it"]
    assert without_assertions([nothing.replace("pass", "assert x")]) == []
    sources = [path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")]
    assert without_assertions(sources) == []
