"""The C sources as a whole: which folder includes which, and how setup.py compiles them."""

import os
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
    assert "objectives" in graph["words"]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"include circle: {' -> '.join(error.args[1])}")


COMPILER = """#!/bin/sh
case "$*" in *-dumpmachine*) echo "$FAKE_TARGET"; exit;; esac
echo "$@" >> "$FAKE_LOG"
while [ $# -gt 0 ]; do
    case "$1" in -o) : > "$2";; *.a) : > "$1";; esac
    shift
done
"""


def build(folder, **names):
    """Compile into a folder with these variables of the environment."""
    pytest.importorskip("Cython")
    command = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", str(folder / "lib")]
    command += ["--build-temp", str(folder / "temp")]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | names, capture_output=True, text=True, timeout=120
    )


@pytest.mark.skipif(sys.platform == "win32", reason="setup.py ends before it looks for one")
def test_a_missing_compiler_is_one_line(tmp_path):
    ended = build(tmp_path, CC="no-such-cc")
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith("error: no C compiler no-such-cc: install gcc")


@pytest.mark.skipif(sys.platform != "linux", reason="the compiler's driver differs")
@pytest.mark.parametrize(
    ("target", "special"), [("x86_64-linux-gnu", True), ("aarch64-linux-gnu", False)]
)
def test_each_source_is_compiled_once_for_the_target(tmp_path, target, special):
    """The compiler only writes down what it was called for: nothing depends on this machine."""
    tool, log = tmp_path / "compiler", tmp_path / "log"
    tool.write_text(COMPILER)
    tool.chmod(0o755)
    names = {name: str(tool) for name in ("CC", "AR", "LDSHARED")}
    build(tmp_path, **names, FAKE_TARGET=target, FAKE_LOG=str(log)).check_returncode()
    calls, sources = log.read_text().splitlines(), [*CSRC.rglob("*.c")]
    assert {"avx2", "avx512"} < {source.stem for source in sources}
    for source in sources:
        (call,) = (line for line in calls if f"-c {source.relative_to(ROOT)} " in line)
        assert ("-mavx2" in call) == (special and source.stem == "avx2")
        assert ("-mavx512f" in call) == (special and source.stem == "avx512")
