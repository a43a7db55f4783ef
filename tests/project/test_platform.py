"""What differs between systems; what runs without POSIX's calls."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dcme_w2v import platform
from dcme_w2v.cli import streams

pytestmark = pytest.mark.long

TESTS = Path(__file__).parents[1]


@pytest.mark.skipif(platform.WINDOWS, reason="nothing is to be taken away")
def test_files_and_models_without_posix(tmp_path):
    """Every module is imported, too; see without_posix.py."""
    names = ["artifact", "checkpoints", "corpus", "raw_text", "sparse_io", "vectors_io"]
    chosen = "not link and not pipe and not skipped and not other_files"
    command = [sys.executable, TESTS / "without_posix.py", "-k", chosen, "-m", "not slow"]
    command += [next(TESTS.glob(f"*/test_{name}.py")) for name in names]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.fixture
def grouped(tmp_path, monkeypatch):
    """Return a function that makes files of groups of processes, as Linux has them."""

    def make(group, limits):
        monkeypatch.setattr(platform, "GROUP", tmp_path / "self")
        monkeypatch.setattr(platform, "GROUPS", tmp_path)
        for name, text in {"self": group, **limits}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)

    return make


@pytest.mark.parametrize(
    "group, limits",
    [
        ("0::/\n", {"memory.max": "5\n"}),
        ("\nno groups\n0::/../a\n", {"memory.max": "5\n"}),
        ("0::/a/b\n", {"memory.max": "max\n", "a/memory.max": "5\n", "a/b/memory.max": "9\n"}),
        ("7:pids:/a\n8:memory:/a\n", {"memory.max": "1\n", "memory/memory.limit_in_bytes": "5\n"}),
    ],
)  # fmt: skip
def test_the_limits_of_groups_of_processes_are_known(grouped, group, limits):
    grouped(group, limits)
    assert platform.memory_limit() == 5


@pytest.mark.parametrize(
    "group, limits, found",
    [
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 2),
        ("0::/a", {"a/cpu.max": "1000 100000"}, 1),
        ("0::/a", {"a/cpu.max": "max 100000"}, 8),
        ("0::/a", {"a/cpu.max": "damaged"}, 8),
        ("4:cpuacct,cpu:/a", {"cpu/a/cpu.cfs_quota_us": "300000",
                              "cpu/a/cpu.cfs_period_us": "100000"}, 3),
        ("4:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, 8),
        ("4:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "100000"}, 8),
        ("3:memory:/a", {"cpu/a/cpu.cfs_quota_us": "1", "cpu/a/cpu.cfs_period_us": "1"}, 8),
    ],
)  # fmt: skip
def test_quotas_of_groups_limit_the_threads(grouped, monkeypatch, group, limits, found):
    grouped(group, limits)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert platform.default_threads() == found


def test_a_closed_pipe_on_windows_is_a_broken_pipe(monkeypatch):
    """Its writes fail with EINVAL."""

    def closed(output, data):
        raise OSError(errno.EINVAL, "Invalid argument")

    output = streams._Output(1, "standard output", closefd=False)
    monkeypatch.setattr(streams.OutputFile, "write", closed)
    monkeypatch.setattr(platform, "WINDOWS", False)
    with pytest.raises(OSError, match="Invalid argument"):
        output.write(b"x")
    monkeypatch.setattr(platform, "WINDOWS", True)
    with pytest.raises(BrokenPipeError):
        output.write(b"x")
