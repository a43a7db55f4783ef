"""The path guard with pipes, links, logs and models; see path_rows.py."""

import contextlib
import gzip
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from data import SMALL
from path_rows import ONE_FILE, WRITING, ids, refused, state

from dcme_w2v.cli.main import run

pytestmark = pytest.mark.long


def given(row, output, name, make):
    """Make a special file of the right suffix; a row that needs plotting is skipped."""
    if "plot" in row.line:
        pytest.importorskip("matplotlib")
    path = f"{name}{Path(row.writes[output]).suffix}"
    make(path)
    return path


def is_no_stream(row, path):
    """An artifact is mapped: it replaces only one of its kind."""
    return path.endswith((".safetensors", ".npy", ".tsv")) and "encode" not in row.line


# ---- special files and links ----


@contextlib.contextmanager
def reader_of(path):
    """Read a pipe to its end in a thread; yields a list with the bytes."""
    came = []
    thread = threading.Thread(target=lambda: came.append(Path(path).read_bytes()), daemon=True)
    thread.start()
    yield came
    thread.join(60)


@pytest.mark.parametrize("row, output", ONE_FILE, **ids)
def test_pipes_are_written_to_and_kept(row, output, work, capsys):
    special = given(row, output, "special", os.mkfifo)
    if is_no_stream(row, special):
        assert special in refused(work, capsys, row, **{output: special})
        return
    kind = Path(special).stat().st_mode
    with reader_of(special) as came:
        assert run(row.arguments(**{output: special})) == 0
    assert Path(special).stat().st_mode == kind and came[0]
    assert not list(work.glob(f"{special}.*"))


@pytest.mark.parametrize("row, output", ONE_FILE, **ids)
def test_symbolic_links_are_kept_and_hard_links_unchanged(row, output, work):
    new, old = Path("sub", "new"), Path("sub", "old")
    link = Path(given(row, output, "link", lambda path: Path(path).symlink_to(new)))
    line = row.arguments(**{output: str(link)})
    assert run(line) == 0
    assert link.is_symlink() and new.stat().st_size and not new.is_symlink()
    if not is_no_stream(row, str(link)) and link.suffix not in (".npy", ".safetensors"):
        new.write_bytes(b'{"event": "end"}\n')
    os.link(new, old)
    content, before = new.read_bytes(), new.stat().st_ino
    for folder in row.folders & {"checkpoint"}:
        shutil.rmtree(row.writes[folder])
    assert run(line) == 0
    assert link.is_symlink() and new.stat().st_ino != before
    assert old.read_bytes() == content


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_process_substitution_and_open_files_are_written_to(work):
    script = """
        set -e
        dcme_w2v() { "$PYTHON" -m dcme_w2v "$@"; }
        dcme_w2v vocab c.txt --output plain --min-count 1
        dcme_w2v vocab c.txt --output >(gzip > packed.gz) --min-count 1
        wait $!
        { echo before; dcme_w2v vocab c.txt --output /dev/stdout --min-count 1; echo after; } > all
        exec 7> seven; dcme_w2v vocab c.txt --output /dev/fd/7 --min-count 1; echo after >&7
    """
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["bash", "-c", script], env=environment, check=True, capture_output=True)
    plain = Path("plain").read_text()
    assert gzip.decompress(Path("packed.gz").read_bytes()).decode() == plain
    assert Path("all").read_text() == f"before\n{plain}after\n"
    assert Path("seven").read_text() == f"{plain}after\n"


def test_a_pipe_closed_by_its_reader_is_an_error(work, cli):
    read, write = os.pipe()
    os.close(read)
    error = cli.error(f"vocab c.txt --output /dev/fd/{write} --min-count 1")
    assert f"/dev/fd/{write} cannot be written: Broken pipe" in error
    os.close(write)


# Links, or the start of a path, that no output can be written to. The links are to the device that
# is always full, and into a folder that does not exist.
LINKS = {"full": "/dev/full", "dangling": "nowhere/o"}
STARTS = ("c.txt/", "nowhere/", "x" * 300)


@pytest.mark.parametrize("where", [*LINKS, *STARTS], ids=lambda where: where[:10])
@pytest.mark.parametrize(
    "row, output", [(row, output) for row in WRITING for output in row.writes], **ids
)
def test_an_output_that_cannot_be_written_is_one_error(row, output, where, work, capsys):
    if where == "full" and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    path = f"{where}{Path(row.writes[output]).suffix or 'o'}"
    if where in LINKS:
        Path(path).symlink_to(LINKS[where])
    before = state(work)
    arguments = row.arguments(**{output: path})  # skips what needs a package that is missing
    capsys.readouterr()
    assert run(arguments) in (1, 2)
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    after = state(work)
    assert {one: after.get(one) for one in before} == before
    assert not [one for one in after.keys() - before.keys() if one.name.startswith(where[:10])]


# ---- logs, model folders ----


def test_only_a_resumed_run_continues_a_log(work, cli):
    line = f"train c.txt --output o --checkpoint ock --log-json log {SMALL} --quiet"
    Path("log").write_text('{"event": "end"}\n{"event": "sta')  # the state after a killed run
    cli(line)
    first = Path("log").read_text()
    assert "sta\n" not in first and first.startswith('{"event": "start"')
    os.truncate("log", len(first) - 3)
    cli(f"{line} --resume ock")
    assert Path("log").read_text().startswith(first[:-3] + "\n" + '{"event": "start"')


def test_an_invalid_option_does_not_change_an_older_log(work):
    train, classify, *_ = (row for row in WRITING if "log_json" in row.writes)
    Path("log").write_text('{"event": "end"}\n')
    for row, wrong in ((train, ["--lr", "0"]), (classify, ["--patience", "0"])):
        before = state(work)
        assert run([*row.arguments(log_json="log"), *wrong]) == 2
        assert state(work) == before


@pytest.mark.parametrize("row", [row for row in WRITING if "output" in row.models], **ids)
def test_a_model_replaces_only_a_model(row, work, capsys):
    other = "k" if row.command.endswith("scdv fit") else "m"
    for path, text in ((other, None), ("letter", "Dear Ann"), ("letter", "{}")):
        if text:
            Path(path).write_text(text)
        said = refused(work, capsys, row, output=path)
        assert f"{path} already exists, but is not a" in said
    Path("letter").write_text("")
    Path("link").symlink_to("sub")
    assert "link is a folder" in refused(work, capsys, row, output="link")


def test_a_link_to_a_model_is_kept(work, cli):
    Path("link").symlink_to("k")
    before = Path("k").stat().st_ino
    cli("classify train d.txt --output link --epochs 1 --quiet")
    assert Path("link").readlink() == Path("k")
    assert Path("k").stat().st_ino != before
