"""What others do to our files: planted links and locks, mounts, pipes, kills, two at once.

Attacks with many repetitions are in scripts/torture.py.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from helpers import manifest, save, write_corpus

import dcme_w2v as dw
from dcme_w2v import platform
from dcme_w2v.errors import DcmeError, FormatError, ResourceError, UsageError
from dcme_w2v.files import atomic
from dcme_w2v.files.atomic import atomic_write, target_of
from dcme_w2v.files.temporary import create
from dcme_w2v.formats.model_folder import load_model, save_model
from dcme_w2v.numeric.arrays import ChunkedArray
from dcme_w2v.words.vectors import Vectors

SMALL = "--dim 4 --epochs 1 --threads 1 --min-count 1 --quiet"


@pytest.fixture(autouse=True)
def folder(here):
    write_corpus(here / "c.txt", lines=60)
    Path("d.txt").write_text("x\ta b\ny\tc d\n")
    save(Path("v.npy"), ["a", "b"], [[1, 2], [3, 4]])


INITIAL = ["c.txt", "d.txt", "v.npy", "v.vocab"]


def there():
    """Return the names of all files."""
    return sorted(one.name for one in Path().iterdir())


TEMPORARY = "dcme-w2v-0123abcd.part"  # behind the name of a target, as ours are


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
    "output, flags",
    [
        ("run/v.npy", ""),
        ("run/v.npy", "--resume run"),
        ("run/c.npy", "--output v.bin --output-context run/c.npy"),
        ("run/v.npy", "--cluster local:0"),
    ],
)
def test_the_folder_of_checkpoints_may_have_the_outputs(cli, output, flags):
    Path("run").mkdir()
    cli(f"train c.txt --output run/v.npy --checkpoint run {SMALL} {flags}")
    assert Vectors.load(output).dim == 4


def test_vectors_are_written_where_another_run_has_checkpoints(here, cli):
    number = os.open(here, os.O_RDONLY)
    fcntl.flock(number, fcntl.LOCK_EX)
    cli("convert v.npy w.npy")
    os.close(number)


def test_waiting_for_another_writer_ends_with_a_message(monkeypatch):
    monkeypatch.setattr(atomic, "WAIT_SECONDS", 0.05)
    placing = Path(".v.npy.dcme-w2v-placing")
    placing.mkdir()
    (placing / "v.npy").write_bytes(b"new")
    number = os.open(placing, os.O_RDONLY)
    fcntl.flock(number, fcntl.LOCK_EX)
    with pytest.raises(ResourceError, match=r"another process has been replacing it"):
        save(Path("v.npy"), *vectors_of(1))
    assert Vectors.load("v.npy")["b"].tolist() == [3, 4]
    os.close(number)


# ---- only our files are removed ----


def test_only_what_is_ours_is_removed():
    """Each entry looks like a temporary file of the target, and one thing about it is not ours."""
    Path("victim").mkdir()
    Path("victim/letter").write_text("dear")
    Path(f".w.npy.{TEMPORARY}").write_bytes(b"half")
    Path(f".m.{TEMPORARY}").mkdir()
    Path(f".m.{TEMPORARY}/x.npy").write_bytes(b"half")
    ours = {f".w.npy.{TEMPORARY}", f".m.{TEMPORARY}"}
    kept = [".w.npy.abcd1234.part", ".w.npy.backup01.part", ".notes.part",
            ".w.npy.dcme-w2v-mine.part", f"w.npy.{TEMPORARY}"]  # fmt: skip
    for one in kept:
        Path(one).write_text("dear")
    links = [Path(f".{name}.dcme-w2v-{i:08x}.part") for i, name in enumerate(("w.npy", "m"))]
    for link in links:
        link.symlink_to("victim")
    save(Path("w.npy"), ["a"], [[1]])
    save_model("m", "thing", 1, {"x": np.ones(1)}, {})
    assert not ours & set(there())
    assert all(Path(one).read_text() == "dear" for one in (*kept, "victim/letter"))
    assert all(link.is_symlink() for link in links)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_and_links_of_another_user_are_left_alone(here):
    left, shared = Path(f".w.npy.{TEMPORARY}"), here / "shared"
    left.write_bytes(b"half")
    os.chown(left, 4242, 4242)
    save(Path("w.npy"), ["a"], [[1]])
    assert left.exists()
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "v.bin").symlink_to(here / "victim")
    assert target_of(shared / "v.bin") == here / "victim"
    os.lchown(shared / "v.bin", 4242, 4242)
    with pytest.raises(UsageError, match="another user's symbolic link"):
        target_of(shared / "v.bin")


def test_a_checkpoint_folder_keeps_what_others_put_there(cli):
    stray = {"20240101", "000009", ".notes.part", ".x.part"}
    for one in stray:
        Path("run", one).mkdir(parents=True)
        Path("run", one, "letter").write_text("dear")
    line = f"train c.txt --output v.bin --checkpoint run --checkpoint-every 1 {SMALL} --epochs 12"
    cli(line)
    assert all(Path("run", one, "letter").read_text() == "dear" for one in stray)
    # 000009 is taken
    assert {one.name for one in Path("run").iterdir()} - stray == {"000012", "000013"}
    cli(f"{line} --resume run")


@pytest.mark.parametrize("name", ["000001", "notes", "20240101"])
def test_a_stray_folder_is_no_checkpoint(cli, name):
    Path("run", name).mkdir(parents=True)
    error = cli.error(f"train c.txt --output v.bin --resume run {SMALL}")
    assert "run: has no checkpoint; give --resume a folder with one" in error


@pytest.mark.parametrize("output", [".", "./", "../new/"])
def test_the_current_folder_is_not_replaced(here, monkeypatch, cli, output):
    """The shell would be left in a removed folder."""
    Path("new").mkdir()
    monkeypatch.chdir(here / "new")
    error = cli.error(f"classify train ../d.txt --output {output} --epochs 1")
    assert "is the current folder or above it" in error
    monkeypatch.chdir(here)
    cli("classify train d.txt --epochs 1 --quiet --output new/")
    assert Path("new", "model.json").exists()


def test_a_spreadsheet_is_named_as_such(cli):
    Path("t.xlsx").write_bytes(b"PK\x03\x04\x14\0")
    error = cli.error(f"train t.xlsx --text-column text --output v.bin {SMALL}")
    assert "t.xlsx: is a spreadsheet; save it as CSV" in error


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
def test_a_mount_point_is_refused_before_the_work(name):
    prepare, command = MOUNTED[name]
    script = f"{prepare} && exec {sys.executable} -m dcme_w2v {command} --epochs 1"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 2 and "to: is a mount point, which cannot be replaced" in done.stderr


RESUME = f"train c.txt --output w.bin --resume k {SMALL}"


# ---- pipes ----


@pytest.mark.parametrize(
    "pipe, line",
    [
        ("v.vocab", "neighbors v.npy a"),
        ("v.vocab", "check v.npy"),
        ("v.vocab", "convert v.npy w.txt --invalid skip"),
        ("v.npy.json", "info v.npy"),
        ("k/000001/checkpoint.json", RESUME),
        ("k/000001/state.bin", RESUME),
        ("k/000001/vectors.npy", RESUME),
        ("x.npz", "classify train x.npz --labels c.txt --output m"),
    ],
)
def test_a_pipe_in_place_of_a_file_is_an_error(cli, pipe, line):
    if line == RESUME:
        cli(f"train c.txt --output w.bin --checkpoint k --checkpoint-every 1 {SMALL}")
    Path(pipe).unlink(missing_ok=True)
    os.mkfifo(pipe)
    cli(line, code=1)
    assert f"{pipe}: is not a regular file" in cli.err + cli.out


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
def test_a_kill_between_renames_leaves_the_old_or_the_new_model(monkeypatch, exchange):
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
    assert there() == sorted([*INITIAL, "m"])


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("kind, fails", [("thing", False), ("other", True)])
def test_a_model_that_appears_during_the_writing_is_replaced(monkeypatch, exchange, kind, fails):
    """Of the same kind: the last run wins. Another model is kept."""
    if not exchange:
        monkeypatch.setattr(platform, "exchange", lambda *_: False)

    def pieces():
        save_model("m", kind, 1, {"y": np.ones(3)}, {})
        yield np.zeros(2)

    expected = pytest.raises(ResourceError) if fails else contextlib.nullcontext()
    with expected:
        save_model("m", "thing", 1, {"x": ChunkedArray((2,), np.dtype(float), pieces)}, {})
    assert list(load_model("m", kind, 1).arrays) == ["y" if fails else "x"]
    assert there() == sorted([*INITIAL, "m"])


def test_a_kill_between_renames_leaves_the_old_or_the_new_vectors():
    path, seen = Path("v.npy"), []
    save(path, *vectors_of(0))
    for version in range(1, 8):
        seen.append(killed_at(version, lambda v=version: save(path, *vectors_of(v))))
        assert version_in("v.npy") in (version, version - 1)
        save(path, *vectors_of(version))
    renames = 3 if sys.version_info >= (3, 11) else 2  # pathlib of 3.10 keeps os.replace as it was
    assert seen[:renames] == [True] * renames and not seen[-1]
    assert there() == INITIAL


def test_vectors_and_words_of_different_writes_are_an_error(cli):
    """As of two runs of which each has copied one file: no record says which one is right."""
    save(Path("w.npy"), ["c", "d"], [[5, 6], [7, 8]])
    shutil.copy("w.vocab", "v.vocab")
    with pytest.raises(FormatError, match=r"v\.vocab is not the file that was written with it"):
        Vectors.load("v.npy")
    assert "is not the file that was written with it" in cli("check v.npy", code=1)
    cli("convert v.npy u.npy --invalid skip")
    assert Vectors.load("u.npy")["c"].tolist() == [1, 2]
    np.save("v.npy", np.load("v.npy"))  # of another program, without a checksum
    assert Vectors.load("v.npy")["c"].tolist() == [1, 2]


# ---- two at once ----


def test_readers_never_mix_versions():
    done = threading.Event()

    def write(number):
        save(Path("v.npy"), *vectors_of(number % 2))
        arrays = {name: np.full(5, number) for name in "xyz"}
        save_model("m", "thing", 1, arrays, {"n": number})

    def write_all():
        for number in range(1, 200):
            if not done.is_set():
                write(number)

    write(0)
    writer = threading.Thread(target=write_all)
    writer.start()
    try:
        for _ in range(60):
            version_in("v.npy")
            model = load_model("m", "thing", 1)
            assert {int(one[0]) for one in model.arrays.values()} == {model.description["n"]}
    finally:
        done.set()
        writer.join()


def test_runs_at_once_leave_the_manifest_of_their_vectors():
    sentences = [["tea", "milk"], ["coffee", "sugar"]] * 5

    def train(dim):
        for _ in range(5):
            dw.train(sentences, dim=dim, epochs=1, threads=1, min_count=1, output="x.bin")

    with ThreadPoolExecutor() as pool:
        list(pool.map(train, (3, 4, 5, 6)))
    assert Vectors.load("x.bin").dim == manifest("x.bin")["options"]["dim"]


def test_a_planted_journal_is_not_followed():
    """Under the name that a writer uses last: a link, or a folder that does not go away."""
    Path("victim").mkdir()
    Path("victim/v.vocab").write_text("a 1\nb 2\n")
    Path(".v.npy.dcme-w2v-placing").symlink_to("victim")
    assert Vectors.load("v.npy").counts is None
    with pytest.raises(DcmeError, match="cannot be written"):
        save(Path("v.npy"), *vectors_of(1))
    assert Path("victim/v.vocab").exists() and Vectors.load("v.npy")["b"].tolist() == [3, 4]


def test_no_secrets_of_other_programs_are_recorded(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["notebook", "--token", "hunter2"])
    dw.train("c.txt", dim=4, epochs=1, threads=1, output="s.bin")
    assert "hunter2" not in Path("s.bin.json").read_text()


@pytest.mark.parametrize("writing", [
    lambda: atomic_write("c.txt"), lambda: atomic.atomic_files("c.txt", "v.vocab"),
])  # fmt: skip
def test_a_write_that_fails_or_does_not_reach_the_disk_leaves_nothing(monkeypatch, writing):
    def full(number):
        raise OSError(28, "No space left on device")

    before = Path("c.txt").read_bytes(), Path("v.vocab").read_bytes()
    with pytest.raises(ZeroDivisionError), writing() as files:
        (files[1] if isinstance(files, list | tuple) else files).write(b"new")
        raise ZeroDivisionError
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResourceError, match="No space left"), writing():
        pass
    with pytest.raises(ResourceError, match="No space left"):
        save_model("m", "thing", 1, {"x": np.ones(1)}, {})
    assert there() == INITIAL
    assert (Path("c.txt").read_bytes(), Path("v.vocab").read_bytes()) == before


@pytest.mark.parametrize("append", [False, True])
def test_a_log_removes_the_new_file_of_a_killed_run(append):
    log = Path("log")
    log.write_text('{"event": "start"}\n')
    _, number = create(log)
    os.close(number)  # as the kernel does for a killed process
    atomic.open_log(log, append).close()
    assert there() == sorted([*INITIAL, "log"])
