"""The path guard: conflicts of inputs and outputs; no file of the user is lost.

`path_rows.LINES` has a line of every command; the roles of its paths are those that it declares.
"""

import os
import socket
import subprocess
from pathlib import Path

import pytest
from documentation import COMMANDS
from helpers import PROGRAM
from path_rows import ROWS, WRITING, ids, refused, state

from dcme_w2v.cli.main import run
from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import FOLDER, LOG, READS, WRITES, guard

pytestmark = pytest.mark.long

DERIVED = (".json", ".vocab", ".metadata.tsv")  # behind the names of outputs


# ---- the declarations ----


def test_every_path_of_every_command_is_in_a_line():
    used = {(row.command, name) for row in ROWS for name in (*row.reads, *row.writes)}
    for name, command in COMMANDS.items():
        paths = {(name, one.name) for one in command.params if getattr(one, "path", None)}
        assert not paths - used, f"{name}: add a line to LINES"
        assert name in {row.command for row in ROWS}


@pytest.mark.parametrize("row", ROWS, **ids)
def test_a_command_reads_and_writes_what_it_declares(row, work, made):
    before = state(work)
    named = {word for word in row.words if Path(word).exists()} - {"."}
    assert named <= {*row.reads.values(), *row.writes.values()}
    assert run(row.arguments()) == 0
    after = state(work)
    assert {path: after.get(path) for path in before} == before
    new = {path.relative_to(work).parts[0] for path in after.keys() - before.keys()}
    written = {one for one in row.writes.values() if not (made / one).exists()}
    assert written <= new
    assert all(one in written or one.endswith(DERIVED) for one in new)
    if not row.folders & row.writes.keys():
        assert run(row.arguments()) == 0  # a file that is named is replaced
        assert state(work).keys() == after.keys()


@pytest.mark.parametrize("row", [row for row in WRITING if row.reads], **ids)
def test_an_output_of_a_command_that_is_an_input_is_an_error(row, work, capsys):
    for output in row.writes:
        source, name = next(iter(row.reads.items()))
        err = refused(work, capsys, row, **{output: f"sub/../{name}"})
        assert f"{row.flag(output)} sub/../{name}" in err and f"{row.flag(source)} {name}" in err
        assert f"{row.flag(output)}: the path is empty" in refused(
            work, capsys, row, **{output: ""}
        )
        if output not in row.folders:
            refused(work, capsys, row, **{output: "."})


THREADED = [
    row for row in WRITING
    if "output" in row.writes and {"threads"} <= {one.name for one in COMMANDS[row.command].params}
    and row.command != "dcme-w2v train"  # whose threads write the same rows
    and "--resume" not in row.words  # with the number of before
]  # fmt: skip


@pytest.mark.parametrize("row", THREADED, **ids)
def test_the_number_of_threads_changes_no_result(row, work):
    """Of a file with a record, which has times, the arrays."""
    found = set()
    for threads in ("1", "3"):
        assert run([*row.arguments(), "--threads", threads]) == 0
        data = Path(row.writes["output"]).read_bytes()
        found.add(data[8 + int.from_bytes(data[:8], "little") :] if data[8:9] == b"{" else data)
    assert len(found) == 1


# ---- the guard ----


@pytest.fixture
def names(tmp_path, monkeypatch):
    """A file `a` with other names, a folder, and a folder that is a link."""
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("mine")
    Path("sub").mkdir()
    Path("sub/in").write_text("mine")
    Path("here").symlink_to(".")
    Path("sub/link").symlink_to("../a")
    Path("dangling").symlink_to("new")
    Path("loop").symlink_to("loop")
    os.link("a", "hard")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
    return tmp_path


@pytest.mark.parametrize("name", ["a", "./a", "sub/../a", "here/a", "sub/link", "hard"])
@pytest.mark.parametrize("role", [WRITES, LOG])
def test_an_output_that_is_an_input_is_an_error(names, name, role):
    message = f"output={name} is the same file as CORPUS a, an input file; choose another file"
    with pytest.raises(UsageError, match=message):
        guard((READS, "CORPUS", ["sub", "a"]), (role, "--output", name))
    with pytest.raises(UsageError, match="is the same file as init="):
        guard((READS, "--init", Path(name)), (role, "--output", "a"))


@pytest.mark.parametrize("one, two", [("a", "hard"), ("new", "here/new"), ("dangling", "./new"),
                                      ("-", "-")])  # fmt: skip
def test_two_equal_outputs_are_an_error(names, one, two):
    with pytest.raises(UsageError, match=r"is the same file as log_json=.*choose a different"):
        guard((LOG, "--log-json", one), (WRITES, "--output", two))


@pytest.mark.parametrize("name", ["sub/in", "sub/new", "here/sub/new"])
def test_an_output_in_an_input_folder_is_an_error(names, name):
    with pytest.raises(UsageError, match=f"{name} is inside the input folder CORPUS sub"):
        guard((READS, "CORPUS", ("a", "sub")), (WRITES, "--output", name))


def test_what_does_not_conflict_is_accepted(names):
    guard((READS, "CORPUS", ["sub", "s3://a/b", "-"]), (WRITES, "--output", "a"))
    guard((WRITES, "--context", None), (LOG, "--log-json", "log"))
    guard((FOLDER, "--checkpoint", "sub/../kept"), (FOLDER, "--resume", "kept"))
    guard((READS, "CORPUS", "/dev/null"), (WRITES, "--output", "/dev/null"))
    assert sorted(path.name for path in names.iterdir()) == [
        "a", "dangling", "hard", "here", "loop", "socket", "sub"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "role, name, message",
    [
        (READS, "", "--x: the path is empty; choose a file"),
        (WRITES, "", "--x: the path is empty; choose a file"),
        (WRITES, "a\0b", "--x: the path contains a NUL character; remove it"),
        (WRITES, "sub/new/", "ends with a slash"),
        (WRITES, "sub", "is a folder; use a file"),
        (WRITES, "none/new", "does not exist; create it"),
        (WRITES, "loop", "the symbolic links in this path form a loop; remove one"),
        (WRITES, "socket", "is a socket or a disk device; choose a file"),
        (LOG, "log.gz", "a log cannot be compressed while it is written"),
        (FOLDER, "-", "a folder cannot be written to standard output"),
        (FOLDER, "a", "is a file; use a folder"),
    ],
)
def test_a_path_that_cannot_be_used_is_an_error(names, role, name, message):
    with pytest.raises(UsageError) as caught:
        guard((role, "--x", name))
    assert message in caught.value.message


@pytest.mark.parametrize("command", ["vocab", "phrases", "convert"])
def test_redirected_standard_input_and_output_are_checked(command, work):
    """`dcme-w2v vocab - --output c.txt < c.txt`, and `... c.txt --output - >> c.txt`."""
    source = "v.txt" if command == "convert" else "c.txt"
    before = state(work)
    for first, second, stdin, stdout in (
        ("-", source, source, os.devnull), (source, "-", os.devnull, source)
    ):  # fmt: skip
        flag = [] if command == "convert" else ["--output"]
        with Path(stdin).open() as given, Path(stdout).open("a") as taken:
            line = [*PROGRAM, command, first, *flag, second]
            done = subprocess.run(
                line, stdin=given, stdout=taken, stderr=subprocess.PIPE, text=True
            )
        assert done.returncode == 2 and f" {first}" in done.stderr and f" {second}" in done.stderr
        assert state(work) == before
