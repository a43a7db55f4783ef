"""What others do to our files: planted links and locks, mounts, pipes, kills, two at once.

The variable DCME_W2V_REPEATS is how often kills and loads are repeated.
"""

import contextlib
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from data import write_corpus
from helpers import save

import dcme_w2v as dw
from dcme_w2v import Vectors, platform
from dcme_w2v.errors import ResourceError, UsageError
from dcme_w2v.files.atomic import atomic_write, target_of
from dcme_w2v.formats.artifact import load_model, save_model

REPEATS = int(os.environ.get("DCME_W2V_REPEATS", "1"))
SMALL = "--dim 4 --epochs 1 --threads 1 --min-count 1 --quiet"


@pytest.fixture(autouse=True)
def folder(here):
    write_corpus("c.txt", lines=60)
    Path("d.txt").write_text("x\ta b\ny\tc d\n")
    save(Path("a.bin"), ["a", "b"], [[1, 2], [3, 4]])


INITIAL = ["a.bin", "c.txt", "d.txt"]


def there():
    """Return the names of all files."""
    return sorted(one.name for one in Path().iterdir())


def vectors_of(number, size=50):
    """Words and numbers of version `number`: a reader sees whether both are of one version."""
    words = [f"v{number}w{i}" for i in range(size)]
    return words, np.full((size, 4), number, dtype=np.float32)


def version_in(path):
    if path == "m":
        model = load_model(path, "thing", 1)
        versions = {int(one[0]) for one in model.arrays.values()} | {model.description["n"]}
    else:
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


def test_a_run_removes_what_a_killed_one_left_of_its_checkpoints(cli):
    """Also of a generation that it does not write itself."""
    host, number = platform.host(), dead()
    Path("run").mkdir()
    names = (f".000001.safetensors.{host}-{number}-0123abcd.part",
             f".000001.safetensors.{host}-{os.getpid()}-0123abcd.part",
             f".notes.{host}-{number}-0123abcd.part")  # fmt: skip
    for one in names:
        Path("run", one).write_text("dear")
    cli(f"train c.txt --output v.bin --checkpoint run --checkpoint-every 9h {SMALL}")
    assert {one.name for one in Path("run").glob(".*.part")} == set(names[1:])


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
    Path("own").symlink_to(shared / "v.bin")
    Path("folder").symlink_to(shared / ".." / "shared" / "v.bin")
    for path in (shared / "v.bin", here / "own", here / "folder" / "new"):
        with pytest.raises(UsageError, match="another user's symbolic link"):
            target_of(path)


FLIP = """
import os, sys
os.setuid(4242)
while True:
    os.rename("shared/aside", "shared/d")
    os.symlink("../victim", "shared/aside.link")
    os.rename("shared/d", "shared/aside")
    os.rename("shared/aside.link", "shared/d")
    os.unlink("shared/d")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_that_becomes_a_link_while_files_are_written_is_not_followed(here):
    """Another user flips his own folder in a folder that everyone can write to."""
    for name in ("shared", "victim", "shared/aside"):
        Path(name).mkdir()
    for path, mode in ((here, 0o755), ("shared", 0o1777), ("shared/aside", 0o777)):
        Path(path).chmod(mode)
    os.chown("shared/aside", 4242, 4242)
    for above in here.parents:
        above.chmod(above.stat().st_mode | 0o111)
    flipping = subprocess.Popen([sys.executable, "-c", FLIP])
    written = 0
    try:
        for _ in range(1000 * REPEATS):
            with contextlib.suppress(UsageError, ResourceError):
                with atomic_write("shared/d/v.bin") as file:
                    file.write(b"mine")
                written += 1
        assert flipping.poll() is None
    finally:
        flipping.kill()
        flipping.wait()
    assert written and list(Path("victim").iterdir()) == []


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
    assert "run contains no checkpoint; choose a folder with checkpoints" in error


# What somebody plants: a shell command, a command of ours, and how it ends.
TRAIN, CLASSIFY = f"train c.txt {SMALL} --output", "classify train d.txt --epochs 1 --output"
PLANTED = [
    ("ln -s victim .w.bin.$(hostname)-1-0a1b2c3d.part", "convert a.bin w.bin", 0),
    ("ln -s victim .w.bin.$(hostname)-999999-0a1b2c3d.part", "convert a.bin w.bin", 0),
    ("mkdir .m.$(hostname)-999999-0a1b2c3d.part", f"{CLASSIFY} m", 0),
    ("mkdir k; ln -s ../victim k/000001.safetensors", f"{TRAIN} w.bin --checkpoint k", 0),
    ("mkdir k; ln -s ../victim/letter k/.lock", f"{TRAIN} w.bin --checkpoint k", 2),
    ("mkdir -p k/20240101; cp victim/letter k/20240101", f"{TRAIN} k/w.bin --checkpoint k", 0),
    ("mkdir k; cp victim/letter k/000007.safetensors", f"{TRAIN} k/w.bin --resume k", 1),
    ("mkfifo w.bin.json", "convert a.bin w.bin", 0),
    ("mkfifo a.bin.json", "info a.bin", 0),
    ("mkdir k; mkfifo k/000001.safetensors", f"{TRAIN} w.bin --resume k", 2),
    ("mkfifo m", f"{CLASSIFY} m", 2),
]


@pytest.mark.parametrize("plant, line, code", PLANTED)
def test_what_is_planted_is_neither_followed_nor_waited_for(cli, plant, line, code):
    Path("victim").mkdir()
    Path("victim", "letter").write_text("dear")
    subprocess.run(["sh", "-c", plant], check=True)
    assert cli.run(line) == code, cli.err
    assert [one.name for one in Path("victim").iterdir()] == ["letter"]
    assert Path("victim", "letter").read_text() == "dear"


def test_a_pipe_in_place_of_a_file_is_an_error(cli):
    os.mkfifo("x.npz")
    error = cli.error("classify train x.npz --labels c.txt --output m")
    assert "x.npz is not a regular file" in error


# ---- kills between write and rename ----


def start(action):
    """Run an action in a child; return its number."""
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            action()
        os._exit(0)
    return child


def killed_at(call, action):
    """Run an action in a child that is killed at this call of a rename; return if it was."""

    def dying():
        calls = []

        def counting(event, _):
            calls.extend([event] * (event == "os.rename"))
            if len(calls) == call and event == "os.rename":
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(counting)
        action()

    return os.waitstatus_to_exitcode(os.waitpid(start(dying), 0)[1]) == -signal.SIGKILL


WRITERS = {
    "v.bin": lambda version: save(Path("v.bin"), *vectors_of(version)),
    "v.safetensors": lambda version: save(Path("v.safetensors"), *vectors_of(version)),
    "m": lambda version: save_model(
        "m", "thing", 1, {name: np.full(5, version) for name in "xyz"}, {"n": version}
    ),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_kill_before_or_after_the_rename_leaves_the_old_or_the_new_file(name):
    for version in range(2 * REPEATS):
        WRITERS[name](version)
        for call in (1, 2):
            assert killed_at(call, lambda version=version: WRITERS[name](version + 1)) == (
                call == 1
            )
            assert version_in(name) == version + (call == 2)
            assert len(there()) == len(INITIAL) + 1 + (call == 1)
        assert there() == sorted([*INITIAL, name])


# ---- two at once ----


def test_readers_never_mix_versions():
    def write_all(first):
        for number in range(first, 1 << 30, 2):
            for write in WRITERS.values():
                write(number)

    for write in WRITERS.values():
        write(0)
    writers = [start(lambda first=first: write_all(first)) for first in (1, 2)]
    try:
        seen = {name: {version_in(name) for _ in range(20 * REPEATS)} for name in WRITERS}
        assert all(os.waitpid(one, os.WNOHANG) == (0, 0) for one in writers) and len(seen) == 3
    finally:
        for one in writers:
            os.kill(one, signal.SIGKILL)
            os.waitpid(one, 0)


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
        raise ZeroDivisionError(file.write(b"new"))
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResourceError, match="No space left"), atomic_write("c.txt"):
        pass
    with pytest.raises(ResourceError, match="No space left"):
        save_model("m", "thing", 1, {"x": np.ones(1)}, {})
    assert there() == INITIAL and Path("c.txt").read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_does_not_take_the_files_of_others(cli):
    line = "convert a.bin m --to sentence-transformers"
    cli(line)
    files = ["c.txt", "m", *(str(one) for one in Path("m").iterdir())]
    for path in files:
        os.chown(path, 4242, 4242)
        Path(path).chmod(0o700 if path == "m" else 0o600)
    cli(line)
    with atomic_write("c.txt"):
        pass
    found = {(one.st_uid, one.st_gid, one.st_mode & 0o77) for one in map(os.stat, files)}
    assert found == {(4242, 4242, 0)}


def test_the_permissions_of_a_replaced_file_are_kept():
    Path("c.txt").chmod(0o640)
    for path in ("c.txt", "new"):
        with atomic_write(path) as file:
            file.write(b"new")
    mask = os.umask(0)
    os.umask(mask)
    modes = [stat.S_IMODE(Path(path).stat().st_mode) for path in ("c.txt", "new")]
    assert modes == [0o640, 0o666 & ~mask]
