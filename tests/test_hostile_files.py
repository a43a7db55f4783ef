"""What others do to our files: planted links and locks, mounts, pipes, kills, two at once.

Attacks with many repetitions are in scripts/torture.py.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, save, write_corpus

import dcme_w2v as dw
from dcme_w2v import platform
from dcme_w2v.cli.main import run
from dcme_w2v.errors import DcmeError, FormatError, ResourceError, UsageError
from dcme_w2v.files import atomic
from dcme_w2v.files.atomic import atomic_write, target_of
from dcme_w2v.files.temporary import create
from dcme_w2v.formats.model_folder import load_model, save_model
from dcme_w2v.words.vectors import Vectors

SMALL = "--dim 4 --epochs 1 --threads 1 --min-count 1 --quiet"
TEMPORARY = "dcme-w2v-0123abcd.part"  # behind the name of a target, as ours are


@pytest.fixture(autouse=True)
def limit():
    """A hang is a failure: end the test after a minute."""

    def late(*_):
        raise TimeoutError("the test hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "c.txt", lines=60)
    save(tmp_path / "v.npy", ["a", "b"], [[1, 2], [3, 4]])
    return tmp_path


def vectors_of(number, size=50):
    """Words and numbers of version `number`: a reader sees whether both are of one version."""
    words = [f"v{number}w{i}" for i in range(size)]
    return words, np.full((size, 4), number, dtype=np.float32)


def version_in(path):
    found = Vectors.load(path)
    versions = {int(word[1 : word.index("w")]) for word in found.words}
    versions |= {int(number) for number in np.unique(found.vectors)}
    assert len(versions) == 1, versions
    return versions.pop()


# ---- locks ----


@pytest.mark.parametrize(
    "line",
    [
        "train c.txt --output run/v.npy --checkpoint run",
        "train c.txt --output run/v.npy --checkpoint run --resume run",
        "train c.txt --output v.bin --output-context run/c.npy --checkpoint run",
        "train c.txt --output run/v.npy --checkpoint run --cluster local:0",
    ],
)
def test_the_folder_of_checkpoints_may_have_the_outputs(here, line):
    Path("run").mkdir()
    assert run(f"{line} {SMALL}".split()) == 0
    assert Vectors.load("run/c.npy" if "context" in line else "run/v.npy").dim == 4


def test_vectors_are_written_where_another_run_has_checkpoints(here):
    number = os.open(here, os.O_RDONLY)
    fcntl.flock(number, fcntl.LOCK_EX)
    assert run(["convert", "v.npy", "w.npy"]) == 0
    os.close(number)


def test_waiting_for_another_writer_ends_with_a_message(here, monkeypatch):
    monkeypatch.setattr(atomic, "WAIT_SECONDS", 0.05)
    placing = here / ".v.npy.dcme-w2v-placing"
    placing.mkdir()
    (placing / "v.npy").write_bytes(b"new")
    number = os.open(placing, os.O_RDONLY)
    fcntl.flock(number, fcntl.LOCK_EX)
    with pytest.raises(ResourceError, match=r"another process has been replacing it"):
        save(here / "v.npy", *vectors_of(1))
    assert Vectors.load("v.npy")["b"].tolist() == [3, 4]
    os.close(number)


# ---- only our files are removed ----


def test_only_what_is_ours_is_removed(here):
    """Each entry looks like a temporary file of the target, and one thing about it is not ours."""
    victim = here / "victim"
    victim.mkdir()
    (victim / "letter").write_text("dear")
    ours = [here / f".w.npy.{TEMPORARY}", here / f".m.{TEMPORARY}"]
    ours[0].write_bytes(b"half")
    ours[1].mkdir()
    (ours[1] / "x.npy").write_bytes(b"half")
    kept = [here / name for name in (".w.npy.abcd1234.part", ".w.npy.backup01.part", ".notes.part")]
    kept += [here / ".w.npy.dcme-w2v-mine.part", here / f"w.npy.{TEMPORARY}"]
    for one in kept:
        one.write_text("dear")
    links = [here / f".{name}.dcme-w2v-{i:08x}.part" for i, name in enumerate(("w.npy", "m"))]
    for link in links:
        link.symlink_to(victim)
    save(here / "w.npy", ["a"], [[1]])
    save_model(here / "m", "thing", 1, {"x": np.ones(1)}, {})
    assert not any(one.exists() for one in ours)
    assert all(one.read_text() == "dear" for one in kept)
    assert all(link.is_symlink() for link in links) and (victim / "letter").read_text() == "dear"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_and_links_of_another_user_are_left_alone(here):
    left = here / f".w.npy.{TEMPORARY}"
    left.write_bytes(b"half")
    os.chown(left, 4242, 4242)
    save(here / "w.npy", ["a"], [[1]])
    assert left.exists()
    shared = here / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "v.bin").symlink_to(here / "victim")
    assert target_of(shared / "v.bin") == here / "victim"
    os.lchown(shared / "v.bin", 4242, 4242)
    with pytest.raises(UsageError, match="another user's symbolic link"):
        target_of(shared / "v.bin")


def test_a_checkpoint_folder_keeps_what_others_put_there(here):
    stray = [Path("run", name) for name in ("20240101", "000009", ".notes.part", ".x.part")]
    for one in stray:
        one.mkdir(parents=True)
        (one / "letter").write_text("dear")
    line = f"train c.txt --output v.bin --checkpoint run --checkpoint-every 1 {SMALL}"
    assert run(line.replace("--epochs 1", "--epochs 12").split()) == 0
    assert all((one / "letter").read_text() == "dear" for one in stray)
    made = {one.name for one in Path("run").iterdir()} - {one.name for one in stray}
    assert made == {"000012", "000013"}  # 000009 is taken
    assert run([*line.replace("--epochs 1", "--epochs 12").split(), "--resume", "run"]) == 0


@pytest.mark.parametrize("name", ["000001", "notes", "20240101"])
def test_a_stray_folder_is_no_checkpoint(here, capsys, name):
    Path("run", name).mkdir(parents=True)
    code = run(f"train c.txt --output v.bin --resume run {SMALL}".split())
    assert "run: has no checkpoint; give --resume a folder with one" in refused(capsys, code)


@pytest.mark.parametrize("output", [".", "./", "../new/"])
def test_the_current_folder_is_not_replaced(here, monkeypatch, capsys, output):
    """The shell would be left in a removed folder."""
    Path("new").mkdir()
    monkeypatch.chdir(here / "new")
    Path("../../d.txt").write_text("x\ta b\ny\tc d\n")
    code = run(f"classify train ../../d.txt --output {output} --epochs 1".split())
    assert "is the current folder or above it" in refused(capsys, code)
    monkeypatch.chdir(here)
    fit = ["classify", "train", "../d.txt", "--epochs", "1", "--quiet"]
    assert run([*fit, "--output", "new/"]) == 0
    assert Path("new", "model.json").exists()


@pytest.mark.parametrize("name", ["c.tgz", "c.tar", "c.txt"])
def test_a_tar_archive_is_named_as_such(here, capsys, name):
    """Whatever its name and compression; not as binary text."""
    with tarfile.open(f"made-{name}", "w:gz" if name == "c.tgz" else "w") as archive:
        archive.add("c.txt")
    code = run(f"train made-{name} --output v.bin {SMALL}".split())
    assert "is a tar archive; unpack it, give its files" in refused(capsys, code)


def test_a_spreadsheet_is_named_as_such(here, capsys):
    Path("t.xlsx").write_bytes(b"PK\x03\x04\x14\0")
    code = run(f"train t.xlsx --text-column text --output v.bin {SMALL}".split())
    assert "t.xlsx: is a spreadsheet; save it as CSV" in refused(capsys, code)


# ---- mounts ----

MOUNTED = {
    "an empty folder": ("mkdir to; mount -t tmpfs none to", "classify train d.txt --output to"),
    "a bound folder": ("mkdir to; mount --bind to to", "classify train d.txt --output to"),
    "a bound file": ("touch to; mount --bind to to", "train c.txt --output to"),
}


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0,
    reason="cannot mount",
)
@pytest.mark.parametrize("name", MOUNTED)
def test_a_mount_point_is_refused_before_the_work(here, name):
    prepare, command = MOUNTED[name]
    Path("d.txt").write_text("x\ta b\ny\tc d\n")
    script = f"{prepare} && exec {sys.executable} -m dcme_w2v {command} --epochs 1"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 2 and "to: is a mount point, which cannot be replaced" in done.stderr


# ---- pipes ----


@pytest.mark.parametrize(
    ("pipe", "line"),
    [
        ("v.vocab", "neighbors v.npy a"),
        ("v.vocab", "check v.npy"),
        ("v.vocab", "convert v.npy w.txt --invalid skip"),
        ("v.npy.json", "info v.npy"),
        ("k/000001/checkpoint.json", "train c.txt --output w.bin --resume k " + SMALL),
        ("k/000001/state.bin", "train c.txt --output w.bin --resume k " + SMALL),
        ("k/000001/vectors.npy", "train c.txt --output w.bin --resume k " + SMALL),
        ("x.npz", "classify train x.npz --labels c.txt --output m"),
    ],
)
def test_a_pipe_in_place_of_a_file_is_an_error(here, capsys, pipe, line):
    if pipe.startswith("k/"):
        assert (
            run(f"train c.txt --output w.bin --checkpoint k --checkpoint-every 1 {SMALL}".split())
            == 0
        )
    Path(pipe).unlink(missing_ok=True)
    os.mkfifo(pipe)
    assert run(line.split()) == 1
    found = capsys.readouterr()
    assert f"{pipe}: is not a regular file" in found.err + found.out


# ---- kills between renames ----


def killed_at(call, action):
    """Run an action in a child that is killed at this call of a rename; return if it was."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with contextlib.suppress(BaseException):
        calls = [0]

        def dying(rename):
            def renamed(*names, **folder):
                calls[0] += 1
                if calls[0] == call:
                    os.kill(os.getpid(), signal.SIGKILL)
                return rename(*names, **folder)

            return renamed

        for name in ("rename", "replace"):
            setattr(os, name, dying(getattr(os, name)))
        platform.exchange = dying(platform.exchange)
        action()
    os._exit(0)


@pytest.mark.parametrize("exchange", [True, False])
def test_a_kill_between_renames_leaves_the_old_or_the_new_model(here, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(platform, "exchange", lambda *_: False)
    for version in range(1, 9):
        arrays = {name: np.full(3, version) for name in ("x", "y")}
        killed = killed_at(version, lambda arrays=arrays: save_model("m", "thing", 1, arrays, {}))
        if version > 1:
            model = load_model("m", "thing", 1)
            assert len({int(one[0]) for one in model.arrays.values()}) == 1
            assert killed or int(model.arrays["x"][0]) == version
    save_model("m", "thing", 1, {"x": np.ones(1)}, {})
    assert not [one.name for one in here.iterdir() if "dcme-w2v" in one.name]


def test_a_kill_between_renames_leaves_the_old_or_the_new_vectors(here):
    seen = []
    save(here / "v.npy", *vectors_of(0))
    for version in range(1, 8):
        seen.append(killed_at(version, lambda v=version: save(here / "v.npy", *vectors_of(v))))
        assert version_in("v.npy") in (version, version - 1)
        save(here / "v.npy", *vectors_of(version))
    assert seen[:3] == [True] * 3 and not seen[-1]
    assert sorted(one.name for one in here.iterdir()) == ["c.txt", "v.npy", "v.vocab"]


def test_vectors_and_words_of_different_writes_are_an_error(here, capsys):
    """As of two runs of which each has copied one file: no record says which one is right."""
    save(here / "w.npy", ["c", "d"], [[5, 6], [7, 8]])
    shutil.copy("w.vocab", "v.vocab")
    with pytest.raises(FormatError, match=r"v\.vocab is not the file that was written with it"):
        Vectors.load("v.npy")
    assert run(["check", "v.npy"]) == 1
    assert "is not the file that was written with it" in capsys.readouterr().out
    assert run(["convert", "v.npy", "u.npy", "--invalid", "skip"]) == 0
    assert Vectors.load("u.npy")["c"].tolist() == [1, 2]
    np.save("v.npy", np.load("v.npy"))  # of another program, without a checksum
    assert Vectors.load("v.npy")["c"].tolist() == [1, 2]


# ---- two at once ----


def test_readers_never_mix_versions(here):
    done, versions = threading.Event(), [vectors_of(number) for number in range(2)]

    def write():
        for number in range(200):
            if done.is_set():
                return
            save(here / "v.npy", *versions[number % 2])
            arrays = {name: np.full(5, number) for name in "xyz"}
            save_model(here / "m", "thing", 1, arrays, {"n": number})

    save(here / "v.npy", *versions[0])
    save_model(here / "m", "thing", 1, {name: np.zeros(5) for name in "xyz"}, {"n": 0})
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(60):
            version_in("v.npy")
            model = load_model("m", "thing", 1)
            assert {int(one[0]) for one in model.arrays.values()} == {model.description["n"]}
    finally:
        done.set()
        writer.join()


def test_runs_at_once_leave_the_manifest_of_their_vectors(here):
    sentences = [["tea", "milk"], ["coffee", "sugar"]] * 5
    dims = (3, 4, 5, 6)

    def train(dim):
        for _ in range(5):
            dw.train(sentences, dim=dim, epochs=1, threads=1, min_count=1, output="x.bin")

    runs = [threading.Thread(target=train, args=(dim,)) for dim in dims]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    options = json.loads(Path("x.bin.json").read_text())["options"]
    assert Vectors.load("x.bin").dim == options["dim"] in dims


def test_a_planted_journal_is_not_followed(here):
    """Under the name that a writer uses last: a link, or a folder that does not go away."""
    victim = here / "victim"
    victim.mkdir()
    (victim / "v.vocab").write_text("a 1\nb 2\n")
    journal = here / ".v.npy.dcme-w2v-placing"
    journal.symlink_to(victim)
    assert Vectors.load("v.npy").counts is None
    with pytest.raises(DcmeError, match="cannot be written"):
        save(here / "v.npy", *vectors_of(1))
    assert (victim / "v.vocab").exists() and Vectors.load("v.npy")["b"].tolist() == [3, 4]


def test_no_secrets_of_other_programs_are_recorded(here, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["notebook", "--token", "hunter2"])
    dw.train("c.txt", dim=4, epochs=1, threads=1, output="s.bin")
    assert "hunter2" not in Path("s.bin.json").read_text()


def test_a_file_that_is_not_on_the_disk_replaces_nothing(here, monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    for write in (lambda: atomic_write("c.txt"), lambda: atomic.atomic_files("c.txt", "d.txt")):
        with pytest.raises(ResourceError, match="No space left"), write():
            pass
    with pytest.raises(ResourceError, match="No space left"):
        save_model("m", "thing", 1, {"x": np.ones(1)}, {})
    assert sorted(one.name for one in here.iterdir()) == ["c.txt", "v.npy", "v.vocab"]


def test_a_failed_write_leaves_nothing(here):
    before = sorted(here.iterdir())
    with pytest.raises(ZeroDivisionError), atomic_write("v.npy") as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert sorted(here.iterdir()) == before
    with pytest.raises(ZeroDivisionError), atomic.atomic_files("v.npy", "v.vocab") as files:
        files[1].write(b"new")
        raise ZeroDivisionError
    assert sorted(here.iterdir()) == before and Vectors.load("v.npy")["b"].tolist() == [3, 4]


@pytest.mark.parametrize("append", [False, True])
def test_a_log_removes_the_new_file_of_a_killed_run(tmp_path, append):
    log = tmp_path / "log"
    log.write_text('{"event": "start"}\n')
    left, number = create(log)
    os.close(number)  # as the kernel does for a killed process
    atomic.open_log(log, append).close()
    assert not left.exists() and list(tmp_path.iterdir()) == [log]
