"""scripts/fuzz_files.py with few inputs; `make fuzz` uses many."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def test_no_reader_crashes_or_hangs(tmp_path):
    pytest.importorskip("usearch")
    command = [sys.executable, str(SCRIPTS / "fuzz_files.py"), "--inputs", "3", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(", 0 readers failed\n")
    assert list(tmp_path.iterdir()) == []
