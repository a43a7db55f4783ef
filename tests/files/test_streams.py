"""Standard input, output and error, closed, full or without a reader: no result is lost."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import PROGRAM

pytestmark = pytest.mark.long

CLOSED = "standard {0} is closed; redirect standard {0}, or {1} a file"
QUICK = "--dim 4 --epochs 2 --threads 1"

# Commands that write a file `o`, in a folder with all inputs.
WRITERS = {
    "train": f"train c.txt --output o.bin --output-tables o.tables {QUICK}",
    "train with a log": f"train c.txt --output o.bin --log-json /dev/null {QUICK}",
    "train with checkpoints": f"train c.txt --output o.bin --checkpoint kept {QUICK}",
    "classify train": "classify train d.txt --output o --epochs 2 --loss softmax --holdout 0.2 "
    "--threads 1",
    "scdv fit": "scdv fit d.txt --vectors v.txt --output o --clusters 2 --iterations 4",
    "transform": "transform m d.txt --output o.npz --labels o.labels",
    "vocab": "vocab c.txt --output o.txt",
    "phrases": "phrases c.txt --output o.txt --save-table o.table --passes 2 --threshold 0.1",
    "convert": "convert v.txt o.txt",
}
REPORTERS = {
    "check": "check v.txt",
    "neighbors": "neighbors v.txt aa xyz",
    "classify predict": "classify predict k d.txt",
    "vocab --json": "vocab c.txt --output o.txt --json",
    "demo": "demo c.txt",
    "train to it": f"train c.txt --output - {QUICK}",
    "train with a log to it": f"train c.txt --output o.bin --log-json - {QUICK}",
}


@pytest.fixture(scope="module")
def place(made, tmp_path_factory):
    """A copy of all files, but for those with names of outputs."""
    copy = tmp_path_factory.mktemp("streams") / "files"
    return shutil.copytree(made, copy, ignore=shutil.ignore_patterns("o*"))


@pytest.fixture(autouse=True)
def folder(place, monkeypatch):
    """The current folder has the inputs; the files that a test has written are removed."""
    monkeypatch.chdir(place)
    yield
    taken()


def taken():
    """Remove what a command has written; return its bytes without records, which have times."""
    found = {}
    for path in [*Path().glob("kept/*"), *Path().glob("o*")]:
        data = path.read_bytes()
        header = int.from_bytes(data[:8], "little") + 8 if data[8:9] == b"{" else 0
        found[path] = b"" if path.suffix == ".json" else data[header:]
        path.unlink()
    shutil.rmtree("kept", ignore_errors=True)
    return found


def run(command, **more):
    """Run a command of the program in the current folder; return the completed process."""
    given = {"stderr": subprocess.PIPE, "text": True, "timeout": 120, **more}
    return subprocess.run([*PROGRAM, *command.split()], **given)


def shell(command, redirections):
    """Run a command of the program in a shell; return the completed process."""
    line = ["sh", "-c", f'"$@" {redirections}', "sh", *PROGRAM, *command.split()]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def error_of(ended):
    """Return the last line of stderr, which is the error."""
    assert "Traceback" not in ended.stderr and "a bug" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    return ended.stderr.splitlines()[-1]


# ---- messages ----


@pytest.mark.parametrize("line", ["--help", "--version", "train --help"])
def test_help_with_a_closed_stdout_is_an_error_with_its_advice(line):
    ended = shell(line, ">&-")
    assert ended.returncode == 1
    assert error_of(ended).endswith(
        "Bad file descriptor; redirect standard output, or write to a file"
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", WRITERS)
def test_messages_that_cannot_be_written_are_dropped(name):
    """One command is tried in each way, the others in the last."""
    assert run(WRITERS[name]).returncode == 0
    wanted, ways = taken(), ["<&- >&- 2>&-", "2>/dev/full", "2>&-"]
    for redirections in ways if name == "train with checkpoints" else ways[:1]:
        ended = shell(WRITERS[name], redirections)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        assert taken() == wanted
    reader, writer = os.pipe()
    os.close(reader)
    assert run(WRITERS[name], stderr=writer).returncode == 0
    os.close(writer)
    assert taken() == wanted


# ---- data ----


@pytest.mark.parametrize("name", REPORTERS)
def test_a_closed_stdout_is_an_error_before_any_work(name):
    ended = shell(REPORTERS[name], ">&-")
    assert (ended.returncode, ended.stderr) == (
        2,
        f"error: {CLOSED.format('output', 'write to')}\n",
    )
    assert not list(Path().glob("o*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", [*REPORTERS, "--help", "--version"])
def test_a_full_stdout_is_an_error(name):
    ended = shell(REPORTERS.get(name, name), ">/dev/full")
    assert ended.returncode == 1
    error = error_of(ended)
    assert error.startswith("error: standard output") and "No space left on device" in error


def piped(command, has_reader):
    """Run a command that writes to a pipe, which succeeds."""
    reader, writer = os.pipe()
    if not has_reader:
        os.close(reader)
    ended = run(command, stdout=writer)
    os.close(writer)
    if has_reader:
        assert os.read(reader, 1)
        os.close(reader)
    assert ended.returncode == 0 and "rror" not in ended.stderr


@pytest.mark.parametrize("name", [*REPORTERS, "--help", "--version", "train --help"])
def test_a_stdout_without_a_reader_is_no_error(name):
    piped(REPORTERS.get(name, name), has_reader=False)


@pytest.mark.parametrize(
    "command, files",
    [
        (f"train c.txt --output - --output-tables o.tables {QUICK}", ["o.tables"]),
        (f"train c.txt --output o.bin --log-json - {QUICK}", ["o.bin", "o.bin.json"]),
        ("phrases c.txt --output - --save-table o.table --threshold 0.1", ["o.table"]),
        ("transform m d.txt --output - --labels o.labels", ["o.labels"]),
        ("vocab c.txt --output o.txt --json", ["o.txt"]),
    ],
)
def test_files_are_complete_when_stdout_is_closed(command, files):
    found = []
    for has_reader in (True, False):
        piped(command, has_reader)
        paths = sorted(Path().glob("o*"))
        assert [path.name for path in paths] == files
        found.append([path.read_bytes() for path in paths if path.suffix != ".json"])
        for path in paths:
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
        "classify predict k -",
        "scdv fit - --vectors v.txt --output o",
        "transform m - --output o.npz",
    ],
)
def test_a_closed_stdin_is_an_error_before_any_work(command):
    ended = shell(command, "<&-")
    assert (ended.returncode, ended.stderr) == (
        2,
        f"error: {CLOSED.format('input', 'read from')}\n",
    )
    assert not list(Path().glob("o*"))


# ---- logs ----


@pytest.mark.parametrize("name, output", [("train", "o.bin"), ("classify train", "o")])
def test_a_failing_log_warns_once_and_is_an_error_at_the_end(name, output):
    ended = run(f"{WRITERS[name]} --log-json /dev/full")
    assert ended.returncode == 1
    warnings = [line for line in ended.stderr.splitlines() if line.startswith("warning: ")]
    assert warnings == [
        "warning: /dev/full: the log cannot be written (No space left on device); "
        "training continues"
    ]
    assert error_of(ended).startswith("error: /dev/full: the log is incomplete (No space left")
    assert Path(output).exists()
