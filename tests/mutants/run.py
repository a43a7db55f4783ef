"""Apply each seeded fault to a copy of the tree and run the tests that should notice it.

    .venv/bin/python tests/mutants/run.py [--seconds N] [WORD ...]

WORD selects faults whose name or room contains it; --seconds tries as many as start within them,
others every day. The exit code is 1 if a fault survives, or its text is gone. Faults of the core
are compiled; use ccache (CC="ccache gcc") to save time.
"""

import argparse
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("csrc", "dcme_w2v", "docs", "scripts", "tests", "setup.py", "pyproject.toml", "README.md")
LIMIT = 600  # seconds for the tests of a fault; one that makes them hang is noticed


def place_of(fault: Fault, root: Path) -> Path:
    """Return the file that has a fault's text, which must occur once in its room."""
    room = root / fault.room
    files = (
        [room] if room.is_file() else [f for s in ("c", "h", "py") for f in room.rglob(f"*.{s}")]
    )
    found = [
        f for f in files if f.suffix in (".c", ".h", ".py") and fault.old in f.read_text("utf-8")
    ]
    if len(found) != 1 or found[0].read_text("utf-8").count(fault.old) != 1:
        raise LookupError(f"the text is in {len(found)} files of {fault.room}: {fault.old!r}")
    return found[0]


def run(tree: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a copy of the tree, whose package comes before any installed one."""
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        ["timeout", "--kill-after=10", str(LIMIT), *command],
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def build(tree: Path) -> subprocess.CompletedProcess[str]:
    """Compile the extension of a copy in place."""
    return run(tree, sys.executable, "setup.py", "-q", "build_ext", "--inplace")


def test(tree: Path, tests: list[str]) -> str:
    """Return the line of the first failure, or nothing if all tests pass."""
    c_tests = [f"build/ctest/test_{name[2:]}" for name in tests if name.startswith("c/")]
    for program in c_tests:
        done = run(
            tree, "make", "-s", "-f", "tests/Makefile", "ctest", f"C_TESTS={program}", "WARNINGS="
        )
        if done.returncode:
            return f"{program} fails"
    files = [f for n in tests if not n.startswith("c/") for f in tree.glob(f"tests/*/test_{n}.py")]
    if files:
        done = run(
            tree, sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow",
            "-p", "no:cacheprovider", *files,
        )  # fmt: skip
        if done.returncode == 1:
            lines = [
                line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
            ]
            return lines[0] if lines else "the tests fail"
        if done.returncode:
            raise RuntimeError(f"pytest ends with {done.returncode}: {done.stdout[-200:]}")
    return ""


def try_fault(fault: Fault, path: Path, tree: Path, compiled: bool) -> str:
    """Return "noticed: ..." or the problem; `compiled`: whether the extension has to be."""
    whole = path.read_text("utf-8")
    try:
        path.write_text(whole.replace(fault.old, fault.new), "utf-8")
        if compiled and (done := build(tree)).returncode:
            return f"DOES NOT COMPILE: {done.stdout[-300:]}"
        why = test(tree, fault.tests.split())
        return f"noticed: {why}" if why else "SURVIVES"
    except RuntimeError as error:
        return f"NOT TRIED: {error}"
    finally:
        path.write_text(whole, "utf-8")


def main() -> None:
    """Try the faults that are chosen and report those that survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--seconds", type=float)
    given = parser.parse_args()
    words, end = given.words or [""], time.monotonic() + (given.seconds or math.inf)
    chosen = [f for f in FAULTS if any(w in f"{f.name} {f.room}" for w in words)]
    if given.seconds:
        random.Random(date.today().toordinal()).shuffle(chosen)
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        tree, bad, tried, stale = Path(scratch), 0, 0, False
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
            copy(ROOT / name, tree / name)
        for fault in chosen:
            if time.monotonic() > end:
                break
            try:
                path = place_of(fault, tree)
            except LookupError as error:
                result = f"GONE: {error}"
            else:  # the extension has the fault before, if that was of the core
                core = path.suffix != ".py"
                result, stale = try_fault(fault, path, tree, core or stale), core
            tried += 1
            bad += not result.startswith("noticed")
            print(f"{fault.name}: {result}", flush=True)
    print(f"{tried} of {len(chosen)} faults tried, {bad} not noticed")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
