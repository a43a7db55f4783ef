"""What others do to our files: planted links and locks, mounts, pipes, kills, two at once.

Attacks with many repetitions are in scripts/torture.py.
"""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from data import write_corpus
from helpers import save

import dcme_w2v as dw
from dcme_w2v import platform
from dcme_w2v.errors import ResourceError, UsageError
from dcme_w2v.files.atomic import atomic_write, target_of
from dcme_w2v.formats.artifact import load_model, save_model
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


# ---- checkpoints beside outputs ----


@pytest.mark.parametrize(
    "output, flags",
    [
        ("run/v.safetensors", ""),
        ("run/v.safetensors", "--resume run"),
        ("run/c.safetensors", "--output v.bin --output-tables run/c.safetensors"),
        ("run/v.safetensors", "--cluster local:0"),
    ],
)
def test_the_folder_of_checkpoints_may_have_the_outputs(cli, output, flags):
    Path("run").mkdir()
    cli(f"train c.txt --output run/v.safetensors --checkpoint run {SMALL} {flags}")
    assert Vectors.load(output).dim == 4


# ---- only our files are removed ----


def dead():
    """Return the number of a process that has ended."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    return ended.pid


@pytest.mark.parametrize("write", [
    lambda: save(Path("w.bin"), ["a"], [[1]]),
    lambda: save_model("w.bin", "thing", 1, {"x": np.ones(1)}, {}),
])  # fmt: skip
def test_only_what_is_ours_is_removed(write):
    """Of the target, and of a process of this machine that has ended."""
    host, number = platform.host(), dead()
    stale = f".w.bin.{host}-{number}-0123abcd.part"
    kept = [f".w.bin.{host}-{os.getpid()}-0123abcd.part", f".w.bin.other-{number}-0123abcd.part",
            f".v.bin.{host}-{number}-0123abcd.part", f".w.bin.{host}-{number}-0123abcd.old",
            f"w.bin.{host}-{number}-0123abcd.part", ".w.bin.part"]  # fmt: skip
    for one in (stale, *kept):
        Path(one).write_text("dear")
    write()
    assert there() == sorted([*INITIAL, *kept, "w.bin"])


def test_a_long_name_has_room_for_its_temporary_file():
    path = Path("ä" * 120)
    save(path, ["a"], [[1]])
    assert Vectors.load(path)["a"] == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_link_of_another_user_is_not_followed(here):
    shared = here / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "v.bin").symlink_to(here / "victim")
    assert target_of(shared / "v.bin") == here / "victim"
    os.lchown(shared / "v.bin", 4242, 4242)
    with pytest.raises(UsageError, match="another user's symbolic link"):
        target_of(shared / "v.bin")


def test_a_checkpoint_folder_keeps_what_others_put_there(cli):
    stray = {"20240101", "000009.safetensors", ".notes.part", ".x.part"}
    for one in stray:
        Path("run", one).mkdir(parents=True)
        Path("run", one, "letter").write_text("dear")
    line = f"train c.txt --output v.bin --checkpoint run --checkpoint-every 1 {SMALL} --epochs 12"
    cli(line)
    assert all(Path("run", one, "letter").read_text() == "dear" for one in stray)
    # 000009 is taken
    found = {one.name for one in Path("run").iterdir()} - stray
    assert found == {".lock", "000012.safetensors", "000013.safetensors"}
    cli(f"{line} --resume run")


@pytest.mark.parametrize("name", ["000001.safetensors", "notes", "20240101"])
def test_a_stray_folder_is_no_checkpoint(cli, name):
    Path("run", name).mkdir(parents=True)
    error = cli.error(f"train c.txt --output v.bin --resume run {SMALL}")
    assert "run: has no checkpoint; give --resume a folder with one" in error


# ---- pipes ----


@pytest.mark.parametrize(
    "pipe, line",
    [
        ("v.vocab", "neighbors v.npy a"),
        ("v.vocab", "check v.npy"),
        ("v.vocab", "convert v.npy w.txt --invalid skip"),
        ("x.npz", "classify train x.npz --labels c.txt --output m"),
    ],
)
def test_a_pipe_in_place_of_a_file_is_an_error(cli, pipe, line):
    Path(pipe).unlink(missing_ok=True)
    os.mkfifo(pipe)
    cli(line, code=1)
    assert f"{pipe}: is not a regular file" in cli.err + cli.out


# ---- kills between write and rename ----


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
        action()
    os._exit(0)


@pytest.mark.parametrize("write", [
    lambda version: save(Path("v.bin"), *vectors_of(version)),
    lambda version: save_model("v.bin", "thing", version, {"x": np.full(3, version)}, {}),
])  # fmt: skip
def test_a_kill_before_or_after_the_rename_leaves_the_old_or_the_new_file(write):
    write(1)
    for call in (1, 2):
        old = Path("v.bin").read_bytes()
        assert killed_at(call, lambda: write(2)) == (call == 1)
        assert (Path("v.bin").read_bytes() == old) == (call == 1)
        assert len(there()) == len(INITIAL) + 1 + (call == 1)
    assert there() == sorted([*INITIAL, "v.bin"])


# ---- two at once ----


def test_readers_never_mix_versions():
    done = threading.Event()

    def write(number):
        save(Path("v.bin"), *vectors_of(number % 2))
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
            version_in("v.bin")
            model = load_model("m", "thing", 1)
            assert {int(one[0]) for one in model.arrays.values()} == {model.description["n"]}
    finally:
        done.set()
        writer.join()


def test_no_secrets_of_other_programs_are_recorded(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["notebook", "--token", "hunter2"])
    dw.train("c.txt", dim=4, epochs=1, threads=1, output="s.bin")
    assert "hunter2" not in Path("s.bin.json").read_text()


def test_several_writers_leave_the_file_of_one_of_them():
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda n: save(Path("v.bin"), *vectors_of(n)), range(40)))
    assert version_in("v.bin") in range(40) and there() == sorted([*INITIAL, "v.bin"])


def test_a_write_that_fails_or_does_not_reach_the_disk_leaves_nothing(monkeypatch):
    def full(number):
        raise OSError(28, "No space left on device")

    before = Path("c.txt").read_bytes()
    with pytest.raises(ZeroDivisionError), atomic_write("c.txt") as file:
        file.write(b"new")
        raise ZeroDivisionError
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResourceError, match="No space left"), atomic_write("c.txt"):
        pass
    with pytest.raises(ResourceError, match="No space left"):
        save_model("m", "thing", 1, {"x": np.ones(1)}, {})
    assert there() == INITIAL and Path("c.txt").read_bytes() == before


def test_the_permissions_of_a_replaced_file_are_kept():
    Path("c.txt").chmod(0o640)
    for path in ("c.txt", "new"):
        with atomic_write(path) as file:
            file.write(b"new")
    mask = os.umask(0)
    os.umask(mask)
    modes = [stat.S_IMODE(Path(path).stat().st_mode) for path in ("c.txt", "new")]
    assert modes == [0o640, 0o666 & ~mask]
