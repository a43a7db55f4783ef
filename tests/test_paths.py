"""The path guard: conflicts of inputs and outputs; no file of the user is lost.

`path_rows.ROWS` has every command with all its paths. A new command, or a new path of a command,
requires a row there; all tests below then use it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from documentation import COMMANDS
from path_rows import ONE_OUTPUT, ROWS, WRITING, ids, names_of, refused, state

from dcme_w2v.cli.main import run

# ---- the table ----


def test_every_command_and_every_path_is_in_the_table():
    assert COMMANDS.keys() == {f"dcme-w2v {row.command}" for row in ROWS}, "add a row to ROWS"
    numbers = ("N", "X", "N|Nm", "0|1", "0", "[SECONDS]", "MIN-MAX")
    for name in COMMANDS:
        rows = [row for row in ROWS if f"dcme-w2v {row.command}" == name]
        known = {one for row in rows for one in (*row.reads, *row.writes, *row.texts)}
        known |= {"text_column", "label_column"}  # names, not paths
        for param in COMMANDS[name].params:
            shown = param.metavar or ""
            a_choice = isinstance(param.type, click.Choice) or shown.islower()
            a_number = shown in numbers or isinstance(param.type, click.types.IntParamType)
            if not (getattr(param, "is_flag", False) or a_choice or a_number):
                assert param.name in known, f"{name}: add {param.name} to its row"


@pytest.mark.parametrize("row", ROWS, **ids)
def test_a_command_writes_only_its_declared_outputs(row, work, declared):
    before = state(work)
    assert run(row.arguments()) == 0
    after = state(work)
    assert {path: after.get(path) for path in before} == before
    allowed = {Path(one.path).absolute() for one in declared if one.identity is not None}
    new = after.keys() - before.keys()
    assert all(allowed & {path, *path.parents} for path in new), new
    assert all((work / name).exists() for name in row.writes.values())
    if row.again:
        assert run(row.arguments()) == 0  # a file that is named is replaced
        assert state(work).keys() == after.keys()


# ---- conflicts ----


@pytest.mark.parametrize(
    "row, output, source",
    [
        (row, output, source)
        for row, output in ONE_OUTPUT
        for source in row.reads
        if (output, source) != ("checkpoint", "resume")  # may well be one folder
    ],
    **ids,
)
def test_an_output_that_is_an_input_is_an_error(row, output, source, work, capsys):
    for name in names_of(row.reads[source]):
        err = refused(work, capsys, row, **{output: name})
        assert f"{row.flag(output)} {name}" in err
        assert f"{row.flag(source)} {row.reads[source]}" in err
    for name in names_of(row.reads[source]):
        target = row.reads[source]
        err = refused(work, capsys, row, **{source: name, output: target})
        assert f"{row.flag(source)} {name}" in err and f"{row.flag(output)} {target}" in err


@pytest.mark.parametrize(
    "row, output, other, there",
    [
        (row, one, two, one < two)
        for row in WRITING
        for one in row.writes
        for two in row.writes
        if one != two
    ],
    **ids,
)
def test_two_equal_outputs_are_an_error(row, output, other, there, work, capsys):
    target = row.writes[other]
    if there:
        Path(target).touch()
    for name in names_of(target, exists=there):
        err = refused(work, capsys, row, **{output: name})
        assert f"{row.flag(output)} {name}" in err and f"{row.flag(other)} {target}" in err


@pytest.mark.parametrize(
    "row, output, source",
    [(row, output, one) for row, output in ONE_OUTPUT for one in row.folders],
    **ids,
)
def test_an_output_in_an_input_folder_is_an_error(row, output, source, work, capsys):
    Path("in", "deep").mkdir(parents=True)
    shutil.copy(row.reads[source], "in/a.txt")
    shutil.copy(row.reads[source], "in/deep/b.txt")
    for place in ("in/a.txt", "in/deep/b.txt", "in/new", "in/deep/new"):
        for name in names_of(place, exists=False):  # a hard link outside may be replaced
            err = refused(work, capsys, row, **{source: "in", output: name})
            assert f"{row.flag(output)} {name}" in err and f"{row.flag(source)} in" in err


def test_outputs_in_a_folder_of_checkpoints_are_errors(work, capsys):
    resume = next(row for row in ROWS if "resume" in row.reads)
    err = refused(work, capsys, resume, output="ck/000009.safetensors", checkpoint="ck")
    assert "--output ck/000009.safetensors" in err and "--checkpoint ck" in err
    err = refused(work, capsys, resume, output="ck/v")
    assert "--output ck/v" in err and "--resume ck" in err


@pytest.mark.parametrize("command", ["vocab", "phrases", "convert"])
def test_redirected_standard_input_and_output_are_checked(command, work):
    """`dcme-w2v vocab - --output c.txt < c.txt`, and `... c.txt --output - >> c.txt`."""
    source = "v.txt" if command == "convert" else "c.txt"
    before = state(work)
    dcme = [sys.executable, "-m", "dcme_w2v", command]
    for first, second, stdin, stdout in (
        ("-", source, source, os.devnull), (source, "-", os.devnull, source)
    ):  # fmt: skip
        flag = [] if command == "convert" else ["--output"]
        with Path(stdin).open() as given, Path(stdout).open("a") as taken:
            done = subprocess.run(
                [*dcme, first, *flag, second], stdin=given, stdout=taken, stderr=subprocess.PIPE,
                text=True, check=False,
            )  # fmt: skip
        assert done.returncode == 2 and f" {first}" in done.stderr and f" {second}" in done.stderr
        assert state(work) == before


@pytest.mark.parametrize("row", [row for row in WRITING if row.kept != ["output"]], **ids)
def test_empty_names_and_folders_as_outputs_are_errors(row, work, capsys):
    for name in row.reads:
        assert f"{row.flag(name)}: is empty" in refused(work, capsys, row, **{name: ""})
    for name in row.writes:
        assert f"{row.flag(name)}: is empty" in refused(work, capsys, row, **{name: ""})
        if name not in row.kept:
            err = refused(work, capsys, row, **{name: "sub/new/"})
            assert "sub/new/: is the name of a folder" in err
