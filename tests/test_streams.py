"""Standard input, output and error, closed, full or without a reader: no result is lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import run_all, write_topics

PROGRAM = [sys.executable, "-m", "dcme_w2v"]
CLOSED = "standard {}: is closed; redirect it, or give a file"
QUICK = "--dim 4 --epochs 2 --threads 1"

# Commands that write a file `o`, in a folder with all inputs.
WRITERS = {
    "train": f"train c.txt --output o.bin --output-context o.context {QUICK}",
    "train with a log": f"train c.txt --output o.bin --log-json /dev/null {QUICK}",
    "train with checkpoints": f"train c.txt --output o.bin --checkpoint kept {QUICK}",
    "classify train": "classify train d.txt --output o --epochs 2 --loss softmax --holdout 0.2 "
    "--threads 1",
    "scdv fit": "scdv fit d.txt --vectors v.bin --output o --clusters 2 --iterations 4",
    "scdv transform": "scdv transform scdv d.txt --output o.npz --labels o.labels",
    "vocab": "vocab c.txt --output o.txt",
    "phrases": "phrases c.txt --output o.txt --save-table o.table --passes 2 --threshold 0.1",
    "convert": "convert v.bin o.txt",
}
REPORTERS = {
    "check": "check v.bin",
    "neighbors": "neighbors v.bin fish1 xyz",
    "classify predict": "classify predict classes d.txt",
    "vocab --json": "vocab c.txt --output o.txt --json",
    "demo": "demo c.txt",
    "train to it": f"train c.txt --output - {QUICK}",
    "train with a log to it": f"train c.txt --output o.bin --log-json - {QUICK}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a corpus, documents, vectors and models."""
    place = tmp_path_factory.mktemp("streams")
    write_topics(place, 100)
    run_all(
        place,
        f"train c.txt --output v.bin --output-context v.context {QUICK}",
        "classify train d.txt --output classes --epochs 1",
        "scdv fit d.txt --vectors v.bin --output scdv --clusters 2",
    )
    return place


@pytest.fixture(autouse=True)
def remove_outputs(folder):
    """Remove the files that a test has written."""
    yield
    for path in [*folder.glob("o*"), *folder.glob("kept")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def shell(folder, command, redirections, **more):
    """Run a command of the program in a shell; return the completed process."""
    line = f'"$@" {redirections}'
    return subprocess.run(
        ["sh", "-c", line, "sh", *PROGRAM, *command.split()],
        cwd=folder, capture_output=True, text=True, timeout=120, **more,
    )  # fmt: skip


def error_of(ended):
    """Return the last line of stderr, which is the error."""
    assert "Traceback" not in ended.stderr and "a bug" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    return ended.stderr.splitlines()[-1]


# ---- messages ----


@pytest.mark.parametrize("line", ["--help", "--version", "train --help"])
def test_help_with_a_closed_stdout_is_an_error_with_its_advice(folder, line):
    ended = shell(folder, line, ">&-")
    assert ended.returncode == 1
    assert error_of(ended).endswith("Bad file descriptor; redirect it, or give a file")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", WRITERS)
def test_messages_that_cannot_be_written_are_dropped(folder, name):
    driver = Path(__file__).with_name("stream_faults.py")
    ended = subprocess.run(
        [sys.executable, str(driver), "o", *WRITERS[name].split()],
        cwd=folder, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert json.loads(ended.stdout) == []


@pytest.mark.parametrize("redirections", ["2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("name", ["train", "classify train", "scdv fit", "vocab"])
def test_messages_to_a_closed_stderr_reach_no_file(folder, name, redirections):
    ended = shell(folder, WRITERS[name], redirections)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    outputs = [path for path in folder.glob("o*") if path.is_file()]
    assert outputs or (folder / "o").is_dir()
    for path in outputs:
        assert b"tokens" not in path.read_bytes() or path.suffix == ".json"


# ---- data ----


@pytest.mark.parametrize("name", REPORTERS)
def test_a_closed_stdout_is_an_error_before_any_work(folder, name):
    ended = shell(folder, REPORTERS[name], ">&-")
    assert ended.returncode == 2
    assert ended.stderr == f"error: {CLOSED.format('output')}\n"
    assert not list(folder.glob("o*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", [*REPORTERS, "--help", "--version"])
def test_a_full_stdout_is_an_error(folder, name):
    ended = shell(folder, REPORTERS.get(name, name), ">/dev/full")
    assert ended.returncode == 1
    error = error_of(ended)
    assert error.startswith("error: standard output: ") and "No space left on device" in error


@pytest.mark.parametrize("name", [*REPORTERS, "--help", "--version", "train --help"])
def test_a_stdout_without_a_reader_is_no_error(folder, name):
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [*PROGRAM, *REPORTERS.get(name, name).split()],
        cwd=folder, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    os.close(writer)
    assert ended.returncode == 0 and "rror" not in ended.stderr


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (f"train c.txt --output - --output-context o.bin {QUICK}", ["o.bin"]),
        (f"train c.txt --output o.bin --output-context - {QUICK}", ["o.bin", "o.bin.json"]),
        (f"train c.txt --output o.bin --log-json - {QUICK}", ["o.bin", "o.bin.json"]),
        ("phrases c.txt --output - --save-table o.table --threshold 0.1", ["o.table"]),
        ("scdv transform scdv d.txt --output - --labels o.labels", ["o.labels"]),
        ("vocab c.txt --output o.txt --json", ["o.txt"]),
    ],
)
def test_files_are_complete_when_stdout_is_closed(folder, command, files):
    found = []
    for has_reader in (True, False):
        reader, writer = os.pipe()
        if not has_reader:
            os.close(reader)
        ended = subprocess.run(
            [*PROGRAM, *command.split()],
            cwd=folder, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=120,
        )  # fmt: skip
        os.close(writer)
        if has_reader:
            assert os.read(reader, 1)
            os.close(reader)
        assert ended.returncode == 0 and "rror" not in ended.stderr
        assert sorted(path.name for path in folder.glob("o*")) == files
        found.append([b"" if f.endswith("json") else (folder / f).read_bytes() for f in files])
        for path in folder.glob("o*"):
            path.unlink()
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "command",
    [
        f"train - --output o.bin {QUICK}",
        f"train c.txt - --output o.bin {QUICK}",
        "vocab - --output o.txt",
        "phrases - --output o.txt",
        "convert - o.bin",
        "check -",
        "classify train - --output o",
        "classify predict classes -",
        "scdv fit - --vectors v.bin --output o",
        "scdv transform scdv - --output o.npz",
    ],
)
def test_a_closed_stdin_is_an_error_before_any_work(folder, command):
    ended = shell(folder, command, "<&-")
    assert ended.returncode == 2
    assert ended.stderr == f"error: {CLOSED.format('input')}\n"
    assert not list(folder.glob("o*"))


# ---- logs ----


def test_a_failing_log_warns_once_and_is_an_error_at_the_end(folder):
    for name, output in (("train", "o.bin"), ("classify train", "o")):
        command = f"{WRITERS[name]} --log-json /dev/full"
        ended = shell(folder, command, "")
        assert ended.returncode == 1
        warnings = [line for line in ended.stderr.splitlines() if line.startswith("warning: ")]
        assert warnings == [
            "warning: /dev/full: the log cannot be written (No space left on device); "
            "training continues"
        ]
        assert error_of(ended).startswith("error: /dev/full: the log is incomplete (No space left")
        assert (folder / output).exists()
