"""Damaged files: cut anywhere, or with a changed byte; fuzz/fuzz_files.py with few inputs."""

import os
from pathlib import Path

import pytest
from helpers import python

pytestmark = pytest.mark.long

FUZZ = Path(__file__).parents[1] / "fuzz" / "fuzz_files.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each reader is tried in a forked process")
def test_no_reader_crashes_hangs_or_prints_a_raw_warning(tmp_path):
    done = python("-W", "error", FUZZ, "--inputs", 3, "--seed", 5, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(", 0 readers failed\n")
    assert list(tmp_path.iterdir()) == []
