"""Apply each seeded fault to a copy of the tree and run the tests that should notice it.

    .venv/bin/python tests/mutants/run.py [--jobs N] [WORD ...]

WORD selects faults whose name or room contains it. The exit code is 1 if a fault survives, or its
text is gone. Faults of the core are compiled; use ccache (CC="ccache gcc") to save time.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

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
        done = run(tree, "make", "-s", "-f", "tests/Makefile", "ctest", f"C_TESTS={program}")
        if done.returncode:
            return f"{program} fails"
    files = [f"tests/test_{name}.py" for name in tests if not name.startswith("c/")]
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


def try_fault(fault: Fault, trees: Queue[Path]) -> str:
    """Return "noticed: ..." or what is wrong."""
    tree = trees.get()
    try:
        try:
            path = place_of(fault, tree)
        except LookupError as error:
            return f"GONE: {error}"
        whole = path.read_text("utf-8")
        in_core = path.suffix != ".py"
        try:
            path.write_text(whole.replace(fault.old, fault.new), "utf-8")
            if in_core and (done := build(tree)).returncode:
                return f"DOES NOT COMPILE: {done.stdout[-300:]}"
            why = test(tree, fault.tests.split())
            return f"noticed: {why}" if why else "SURVIVES"
        except RuntimeError as error:
            return f"NOT TRIED: {error}"
        finally:
            path.write_text(whole, "utf-8")
            if in_core:
                build(tree)
    finally:
        trees.put(tree)


def main() -> None:
    """Try the faults that are chosen and report those that survive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--list", action="store_true", help="only check that all texts are there")
    options = parser.parse_args()
    chosen = [
        f
        for f in FAULTS
        if not options.words or any(w in f"{f.name} {f.room}" for w in options.words)
    ]
    if options.list:
        sys.exit(_check(chosen))
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        trees: Queue[Path] = Queue()
        for number in range(options.jobs):
            tree = Path(scratch) / str(number)
            for name in COPIED:
                source = ROOT / name
                if source.is_dir():
                    shutil.copytree(
                        source, tree / name, ignore=shutil.ignore_patterns("__pycache__")
                    )
                else:
                    shutil.copy2(source, tree / name)
            if (done := build(tree)).returncode:
                sys.exit(done.stdout)
            trees.put(tree)
        bad = 0
        with ThreadPoolExecutor(options.jobs) as pool:
            results = pool.map(lambda fault: try_fault(fault, trees), chosen)
            for fault, result in zip(chosen, results, strict=True):
                bad += not result.startswith("noticed")
                print(f"{fault.name}: {result}", flush=True)
    print(f"{len(chosen)} faults, {bad} not noticed")
    sys.exit(bool(bad))


def _check(chosen: list[Fault]) -> int:
    missing = 0
    for fault in chosen:
        try:
            place_of(fault, ROOT)
        except LookupError as error:
            missing += 1
            print(f"{fault.name}: GONE: {error}")
    print(f"{len(chosen)} faults, {missing} without a place")
    return bool(missing)


if __name__ == "__main__":
    main()
