"""The result of a run is never lost: if it cannot be written, it is kept elsewhere."""

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import python

import dcme_w2v as dw
from dcme_w2v.classify import fit as fit_module
from dcme_w2v.files import atomic as files
from dcme_w2v.words import train as run_module

pytestmark = pytest.mark.long

SMALL = "--dim 4 --epochs 1 --threads 1 --quiet"
COMMANDS = {
    "train": f"train c.txt --output to/o.bin {SMALL}",
    "train native": f"train c.txt --output to/o.safetensors --output-tables to/ot {SMALL}",
    "classify": "classify train d.txt --output to/o --epochs 1 --threads 1 --quiet",
    "scdv": "scdv fit d.txt --vectors v.txt --output to/o --clusters 2 --quiet",
}
FAILURES = [
    *[(name, errno.ENOSPC) for name in COMMANDS],
    *[("train", code) for code in (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)],
]


@pytest.fixture
def work(made, here, monkeypatch):
    """Folders to write to: the target's, for temporary files, and at home."""
    for name in ("c.txt", "d.txt", "v.txt"):
        Path(name).write_bytes((made / name).read_bytes())
    for name in ("to", "temporary", "home"):
        Path(name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(here / "temporary"))
    monkeypatch.setenv("HOME", str(here / "home"))
    return here


@pytest.fixture
def failing(monkeypatch):
    """Make every write fail whose path contains one of these texts."""
    texts, code = [], [errno.ENOSPC]
    write = files.OutputFile.write

    def failing_write(self, data):
        if any(text in f"/{self._target}" for text in texts):
            with files.write_errors(self._target):
                raise OSError(code[0], os.strerror(code[0]))
        return write(self, data)

    monkeypatch.setattr(files.OutputFile, "write", failing_write)
    return texts, code


def kept(err, name):
    """Return the paths of kept files that an error names; they can be loaded."""
    assert err.startswith("error: ") and err.count("\n") == 1
    assert err.endswith(" instead\n")
    paths = re.findall("nothing is lost: written to (.*?) instead", err)
    assert all(dw.load(path) for path in paths)
    return paths


@pytest.mark.parametrize("name, code", FAILURES)
def test_files_that_cannot_be_written_are_kept_elsewhere(work, cli, failing, name, code):
    texts, codes = failing
    codes[0] = code
    where = ["/to/o", "/to/.o"]  # only the target; its folder, too; the temporary folder, too
    for more, place in (([], "to"), (["/to/"], "temporary"), (["/temporary/"], "home")):
        where += more
        texts[:] = where
        cli(COMMANDS[name], code=1)
        texts.clear()
        assert os.strerror(code) in cli.err
        for path in kept(cli.err, name):
            assert Path(path).is_relative_to(work / place) and "dcme-w2v-" in path
    left = [path.name for path in Path("to").iterdir()]
    assert all(one.startswith("dcme-w2v-") for one in left)
    assert len(left) == len(list(Path("temporary").iterdir()))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_what_a_device_does_not_take_is_kept_in_the_current_folder(work, cli):
    cli(COMMANDS["train"].replace("to/o.bin", "/dev/full"), code=1)
    (path,) = kept(cli.err, "train")
    assert Path(path).parent.parent == work


def test_files_that_can_be_kept_nowhere_are_reported(work, cli, failing):
    failing[0][:] = ["/o.bin"]
    error = cli.error(COMMANDS["train"])
    assert "to/o.bin cannot be written elsewhere either" in error and "nothing is lost" not in error
    assert not list(Path("to").iterdir()) and not list(Path("temporary").iterdir())


@pytest.mark.parametrize(
    "name, taken, module",
    [("classify", "to/o", fit_module), ("train", "to/o.bin", run_module)],
)
def test_a_folder_filled_during_training_is_not_replaced(
    work, cli, monkeypatch, name, taken, module
):
    """The folder is checked before training and filled during it."""
    done = module.run_epochs

    def meanwhile(*arguments):
        result = done(*arguments)
        Path(taken).mkdir(exist_ok=True)
        Path(taken, "thesis.tex").write_text("mine")
        return result

    monkeypatch.setattr(module, "run_epochs", meanwhile)
    cli(COMMANDS[name], code=1)
    assert len(kept(cli.err, name)) == 1
    assert [one.name for one in Path(taken).iterdir()] == ["thesis.tex"]


def test_interrupted_vectors_that_cannot_be_written_are_kept(work, cli, failing, monkeypatch):
    failing[0][:] = ["/to/"]
    train = run_module.Trainer.epoch

    def stopping(self, epoch, watch):
        signal.raise_signal(signal.SIGTERM)
        return train(self, epoch, watch)

    monkeypatch.setattr(run_module.Trainer, "epoch", stopping)
    cli(COMMANDS["train"].replace("--epochs 1", "--epochs 9"), code=143)
    assert "stopped by SIGTERM in epoch " in cli.err and kept(cli.err, "train")


# ---- before the work ----


LIMITED = """
import resource, sys
from dcme_w2v.cli import main
from dcme_w2v.words import train as run
end = run.run_epochs
def limited(*a):
    found = end(*a)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
    return found
run.run_epochs = limited
main.main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_exceeding_the_file_size_limit_is_an_error_not_a_signal(work):
    """A limit that is not detected before the work: SIGXFSZ would end the process."""
    done = python("-c", LIMITED, *COMMANDS["train"].split())
    assert done.returncode == 1
    assert done.stderr.startswith("error: to/o.bin cannot be written: File too large")
    assert "cannot be written elsewhere either" in done.stderr
    assert not list(Path("to").iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_the_id_cache_may_reach_the_file_size_limit(work):
    Path("long").write_text("a b c d e f\n" * 2000)
    line = 'ulimit -f 4; exec "$0" -m dcme_w2v train long --output to/o --dim 2 --quiet'
    done = subprocess.run(["bash", "-c", line, sys.executable], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "the id cache cannot be written: File too large; it needs more than" in done.stderr
    assert done.stderr.endswith("MB: raise the file-size limit (ulimit -f)\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_name_lengths_are_checked_before_the_work(work, cli, monkeypatch, name):
    for read in ("words.train.encode", "classify.train.read_documents", "scdv.fit.count_words"):
        monkeypatch.setattr(f"dcme_w2v.{read}", None)
    for long in ("x" * 250, "ä" * 128, "/".join(["x" * 200] * 30)):
        error = cli.error(COMMANDS[name].replace("to/o", f"to/{long}", 1))
        assert "File name too long" in error
