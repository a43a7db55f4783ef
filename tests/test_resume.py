"""Signals and resume on the command line; see test_checkpoints.py for the state itself."""

import json
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers import manifest, options_of, signalled, stop_in, train, write_corpus
from texts import lines

from dcme_w2v.errors import DivergedError
from dcme_w2v.platform import SIGNALS
from dcme_w2v.training import checkpoint_schedule as schedule
from dcme_w2v.training import trainer as engine
from dcme_w2v.training.checkpoint_folder import (
    Checkpoint,
    generations_in,
)
from dcme_w2v.words import run as run_module
from dcme_w2v.words.trainer import Trainer
from dcme_w2v.words.vectors import Vectors


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus.txt", lines=1500)


SHORT = ("--epochs", "3", "--threads", "1", "--min-count", "2")


def train_short(corpus, output, *flags):
    return train(corpus, output, *SHORT, *flags, quiet=False)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_saves_and_resume_continues(tmp_path, corpus, capsys, monkeypatch, number):
    straight, output, folder = tmp_path / "a.bin", tmp_path / "b.bin", tmp_path / "k"
    log = tmp_path / "log"
    files = ("--output-context", str(tmp_path / "c.bin"), "--log-json", str(log))
    assert train_short(corpus, straight, "--output-context", str(tmp_path / "d.bin")) == 0
    before = [signal.getsignal(one) for one in SIGNALS]
    output.write_bytes(b"old")
    stop_in(monkeypatch, Trainer, 1, number)
    capsys.readouterr()
    code = train_short(corpus, output, "--checkpoint", str(folder), "--quiet", *files)
    assert code == 128 + number
    assert [signal.getsignal(one) for one in SIGNALS] == before
    said = capsys.readouterr().err
    name = signal.Signals(number).name
    assert said.count("\n") == 1
    assert said.startswith(f"error: stopped by {name} in epoch ")
    assert f"resume with --resume {folder}" in said
    assert output.read_bytes() == b"old"
    assert train_short(corpus, output, "--resume", str(folder), "--quiet", *files) == 0
    assert output.read_bytes() == straight.read_bytes()
    assert (tmp_path / "c.bin").read_bytes() == (tmp_path / "d.bin").read_bytes()
    first, second = manifest(straight), manifest(output)
    assert first["tokens"] == second["tokens"] and first["loss"] == second["loss"]
    epochs = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["epoch"] for one in epochs if one["event"] == "epoch"] == [1, 2, 3]


def test_a_signal_without_checkpoints_saves_the_current_vectors(
    tmp_path, corpus, capsys, monkeypatch
):
    output = tmp_path / "v.bin"
    output.write_bytes(b"old")
    stop_in(monkeypatch, Trainer, 0, signal.SIGINT)
    assert train_short(corpus, output, "--quiet") == 130
    assert f"the vectors so far are in {output}.partial" in capsys.readouterr().err
    assert output.read_bytes() == b"old"
    assert np.isfinite(Vectors.load(f"{output}.partial").vectors).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "corpus.txt", "v.bin", "v.bin.partial",
    ]  # fmt: skip


def test_a_signal_during_reading_ends_immediately(tmp_path, corpus, capsys, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "encode", interrupt)
    assert train_short(corpus, tmp_path / "v.bin") == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_checkpoints_by_epochs_and_by_time(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.001)
    for every, names in (("1", {"000002", "000003"}), ("2", {"000001"}), ("9h", set())):
        folder = tmp_path / every
        flags = ("--checkpoint", str(folder), "--checkpoint-every", every)
        assert train_short(corpus, tmp_path / f"{every}.bin", *flags) == 0
        assert {one.name for one in generations_in(folder)} == names
    often = ("--checkpoint", str(tmp_path / "t"), "--checkpoint-every", "0s")
    assert train_short(corpus, tmp_path / "t.bin", *often) == 0
    assert int(generations_in(tmp_path / "t")[-1].name) >= 3
    found = {(tmp_path / f"{name}.bin").read_bytes() for name in ("1", "2", "9h", "t")}
    assert len(found) == 1


def kept_of(tmp_path, corpus, *flags):
    folder = tmp_path / "k"
    flags = ("--checkpoint", str(folder), "--checkpoint-every", "2", *flags)
    assert train_short(corpus, tmp_path / "v.bin", *flags) == 0
    return str(folder)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--lr", "0.01"], "--lr is 0.01 and was 0.075"),
        (["--epochs", "4"], "--epochs is 4 and was 3"),
        (["--threads", "2"], "--threads is 2 and was 1"),
        (["--deterministic"], "--deterministic is True and was False"),
        (["--dim", "9"], "--dim is 9 and was"),  # a former name of another command's option
        (["--word-order"], "--word-order is True and was False"),  # --lr differs because of it
        (["--holdout", "0.5"], "with the same --holdout"),
    ],
)
def test_changed_options_are_an_error(tmp_path, corpus, capsys, flags, said):
    folder = kept_of(tmp_path, corpus)
    assert train_short(corpus, tmp_path / "v.bin", "--resume", folder, *flags) == 2
    assert said in capsys.readouterr().err


def test_deterministic_resumes_with_any_threads(tmp_path, corpus):
    folder = kept_of(tmp_path, corpus, "--deterministic", "--threads", "3")
    flags = ("--deterministic", "--threads", "2", "--resume", folder)
    assert train_short(corpus, tmp_path / "w.bin", *flags) == 0
    assert (tmp_path / "w.bin").read_bytes() == (tmp_path / "v.bin").read_bytes()


def test_another_corpus_is_an_error(tmp_path, corpus, capsys):
    folder = kept_of(tmp_path, corpus)
    text = Path(corpus).read_text().split()
    Path(corpus).write_text(" ".join([*text[:-2], text[-1], text[-2]]) + "\n")
    assert train_short(corpus, tmp_path / "v.bin", "--resume", folder) == 2
    assert "was trained on another corpus" in capsys.readouterr().err
    Path(corpus).write_text(" ".join(text) * 2)
    assert train_short(corpus, tmp_path / "v.bin", "--resume", folder, "--quiet") == 2
    said = capsys.readouterr().err
    assert f"{len(text):,} tokens" in said and said.count("\n") == 1


def test_the_folder_of_an_earlier_run_is_not_overwritten(tmp_path, corpus, capsys):
    folder = kept_of(tmp_path, corpus)
    before = sorted(Path(folder).iterdir())
    assert train_short(corpus, tmp_path / "v.bin", "--checkpoint", folder) == 2
    assert f"resume it with --resume {folder}" in capsys.readouterr().err
    assert sorted(Path(folder).iterdir()) == before


def test_divergence_names_the_last_checkpoint(tmp_path, corpus, capsys, monkeypatch):
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.001)
    folder = tmp_path / "k"
    advance = schedule.Checkpointer.end_epoch

    def spoil(checkpointer):
        advance(checkpointer)
        if checkpointer.position.epoch == 2:
            checkpointer._run.trainer.input[3, 3] = np.nan

    monkeypatch.setattr(schedule.Checkpointer, "end_epoch", spoil)
    flags = ("--checkpoint", str(folder), "--checkpoint-every", "1", "--quiet")
    assert train_short(corpus, tmp_path / "v.bin", *flags) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--objective ns" in said and "--lr 0.075" in said and "epoch" in said
    assert f"the last checkpoint is {folder / '000001'}" in said
    assert not (tmp_path / "v.bin").exists()
    assert np.isfinite(Checkpoint.load(folder / "000001").table("context.npy", (43, 16))).all()


def test_nan_in_an_unused_row_is_found_within_the_epoch(monkeypatch):
    """Threads check only losses of trained words; polling checks all rows in turn."""
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.01)
    ids, counts = lines([1000] * 2400)  # a poll ends it at once
    counts = np.append(counts, 1)
    run = Trainer(ids, counts, options_of({"noise_power": 2.0, "negative": 20}, dim=300, window=10))
    run.output[-1, 7] = np.inf
    run.output[-1, 8] = 0
    before = threading.active_count()
    with pytest.raises(DivergedError, match=r"a vector is not finite; objective=ns, lr="):
        run.epoch(0)
    assert run.progress().done < len(ids) / 2
    assert threading.active_count() == before


def test_vectors_that_cannot_be_written_are_kept_elsewhere(tmp_path, corpus, capsys, monkeypatch):
    folder = tmp_path / "k"
    gone = tmp_path / "gone"
    gone.mkdir()
    end = schedule.Checkpointer.end_epoch

    def vanish(checkpointer):
        end(checkpointer)
        shutil.rmtree(gone, ignore_errors=True)

    monkeypatch.setattr(schedule.Checkpointer, "end_epoch", vanish)
    assert train_short(corpus, gone / "v.bin", "--checkpoint", str(folder), "--quiet") == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cannot be written" in said and f"--resume {folder}" in said
    straight = tmp_path / "a.bin"
    assert train_short(corpus, straight) == 0
    assert train_short(corpus, tmp_path / "v.bin", "--resume", str(folder)) == 0
    assert (tmp_path / "v.bin").read_bytes() == straight.read_bytes()
    gone.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert train_short(corpus, gone / "v.bin", "--quiet") == 1
    said = capsys.readouterr().err
    kept = said.rpartition("written to ")[2].removesuffix(" instead\n")
    assert Path(kept).read_bytes() == straight.read_bytes()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signalled_process_ends_with_one_line(tmp_path, number):
    """In a separate process, at an arbitrary time; scripts/torture.py checks the results."""
    corpus = write_corpus(tmp_path / "corpus.txt")
    code, said = signalled(
        number, "train", corpus, "--epochs", "100000", "--output", tmp_path / "v.bin"
    )
    assert code == 128 + number
    assert said.startswith(f"error: stopped by {number.name} in epoch ") and said.count("\n") == 1
    assert (tmp_path / "v.bin.partial").exists() and not (tmp_path / "v.bin").exists()
