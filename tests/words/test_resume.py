"""Signals and resume on the command line; see test_checkpoints.py for the state itself."""

import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from data import lines, write_corpus
from helpers import manifest, options_of, records, save, signalled, stop_in

import dcme_w2v as dw
from dcme_w2v import Vectors
from dcme_w2v.errors import DivergedError
from dcme_w2v.platform import SIGNALS
from dcme_w2v.training import run as schedule
from dcme_w2v.training import trainer as engine
from dcme_w2v.training.checkpoint_folder import (
    Checkpoint,
    generations_in,
)
from dcme_w2v.words import train as run_module
from dcme_w2v.words.trainer import Trainer

SHORT = "--epochs 3 --threads 1 --min-count 2"


@pytest.fixture(autouse=True)
def corpus():
    return write_corpus(Path("c"), lines=1500)


@pytest.fixture
def learn(cli):
    """Return a function that trains on the corpus; it returns the messages."""

    def train(output, *flags, code=0):
        cli(f"train c --output {output} --dim 16 {SHORT} {' '.join(flags)}", code=code)
        return cli.err

    return train


@pytest.fixture
def kept(learn):
    learn("v.bin --checkpoint k --checkpoint-every 2")


def same(*names):
    return len({Path(name).read_bytes() for name in names}) == 1


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_saves_and_resume_continues(learn, monkeypatch, number):
    flags = "--quiet --output-tables e --log-json log"
    learn("a.bin --output-tables d")
    before = [signal.getsignal(one) for one in SIGNALS]
    Path("b.bin").write_bytes(b"old")
    stop_in(monkeypatch, Trainer, 1, number)
    said = learn("b.bin --checkpoint k", flags, code=128 + number)
    assert [signal.getsignal(one) for one in SIGNALS] == before
    assert said.startswith(f"error: stopped by {number.name} in epoch ") and said.count("\n") == 1
    assert "resume with --resume k" in said and Path("b.bin").read_bytes() == b"old"
    learn("b.bin --resume k", flags)
    assert same("a.bin", "b.bin")
    one, two = dw.Vectors.load("e"), dw.Vectors.load("d")
    np.testing.assert_array_equal(one.context.vectors, two.context.vectors)
    first, second = manifest("a.bin"), manifest("b.bin")
    assert first["tokens"] == second["tokens"] and first["loss"] == second["loss"]
    epochs = records("log")
    assert [one["epoch"] for one in epochs if one["event"] == "epoch"] == [1, 2, 3]


@pytest.mark.parametrize(
    "output",
    ["v.bin", "v.safetensors", "v --format text"],
)
def test_a_signal_without_checkpoints_saves_the_current_vectors(output, learn, monkeypatch):
    name = output.split()[0]
    save(Path(name), ["old"], [[1]])
    old = Path(name).read_bytes()
    stop_in(monkeypatch, Trainer, 0, signal.SIGINT)
    said = learn(f"{output} --quiet", code=130)
    assert f"the vectors so far are in {name}.partial" in said
    assert Path(name).read_bytes() == old
    assert np.isfinite(Vectors.load(f"{name}.partial").vectors).all()
    assert {path.name for path in Path().iterdir()} == {"c", name, f"{name}.partial"}


def test_a_signal_during_reading_ends_immediately(learn, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "encode", interrupt)
    assert learn("v.bin", code=130) == "error: interrupted\n"


def test_checkpoints_by_epochs_and_by_time(learn, monkeypatch):
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.001)
    names = {}
    for every in ("1", "2", "9h", "0s"):
        learn(f"{every}.bin --checkpoint {every} --checkpoint-every {every}")
        names[every] = [one.stem for one in generations_in(Path(every))]
    assert int(names.pop("0s")[-1]) >= 3
    assert names == {"1": ["000002", "000003"], "2": ["000001"], "9h": []}
    assert same("1.bin", "2.bin", "9h.bin", "0s.bin")


@pytest.mark.parametrize(
    "flags, said",
    [
        ("--lr 0.01", "--lr is 0.01 and was 0.0808"),
        ("--epochs 4", "--epochs is 4 and was 3"),
        ("--threads 2", "--threads is 2 and was 1"),
        ("--deterministic", "--deterministic is True and was False"),
        ("--dim 9", "--dim is 9 and was"),
        ("--word-order", "--word-order is True and was False"),  # --lr differs because of it
        ("--holdout 0.5", "with the same --holdout"),
    ],
)
def test_changed_options_are_an_error(kept, learn, flags, said):
    assert said in learn("v.bin --resume k", flags, code=2)


@pytest.mark.parametrize(
    "flags",
    [
        "--word-order --objective nce TABLES",
        "--word-order --objective nce --virtual-samples 2 --window-mode fixed TABLES",
        "--subwords 3-6 --buckets 50 --format fasttext",
        "--objective hs",
        "--objective dcme --model skipgram --lr 0.005 TABLES",
        "--init old --init-vocab union TABLES",
    ],
)
def test_all_tables_are_resumed(learn, flags):
    learn("old.bin --output-tables old")
    for name, which in (("a", "--checkpoint k --checkpoint-every 1"), ("b", "--resume k")):
        Path(name).mkdir()
        learn(f"{name}/v.bin", which, flags.replace("TABLES", f"--output-tables {name}/tables"))
        max(Path("k").iterdir()).unlink()
    written = [one for one in Path("a").rglob("*") if one.is_file() and one.suffix != ".json"]
    assert len(written) == 1 + ("TABLES" in flags)
    assert all(same(one, Path("b", one.relative_to("a"))) for one in written)


def test_deterministic_resumes_with_any_threads(learn):
    learn("v.bin --deterministic --threads 3 --checkpoint k --checkpoint-every 2")
    learn("w.bin --deterministic --threads 2 --resume k")
    assert same("v.bin", "w.bin")


def test_another_corpus_is_an_error(kept, learn):
    text = Path("c").read_text().split()
    Path("c").write_text(" ".join([*text[:-2], text[-1], text[-2]]) + "\n")
    assert "was trained on another corpus" in learn("v.bin --resume k", code=2)
    Path("c").write_text(" ".join(text) * 2)
    said = learn("v.bin --resume k --quiet", code=2)
    assert f"{len(text):,} tokens" in said and said.count("\n") == 1


def test_the_folder_of_an_earlier_run_is_not_overwritten(kept, learn):
    before = sorted(Path("k").iterdir())
    assert "resume it with --resume k" in learn("v.bin --checkpoint k", code=2)
    assert sorted(Path("k").iterdir()) == before


def test_divergence_names_the_last_checkpoint(learn, monkeypatch):
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.001)
    advance = schedule.Checkpointer.end_epoch

    def spoil(checkpointer):
        advance(checkpointer)
        if checkpointer.position.epoch == 2:
            checkpointer._run.trainer.input[3, 3] = np.nan

    monkeypatch.setattr(schedule.Checkpointer, "end_epoch", spoil)
    said = learn("v.bin --checkpoint k --checkpoint-every 1 --quiet", code=1)
    assert said.count("\n") == 1
    assert "--objective ns" in said and "--lr 0.0808" in said and "epoch" in said
    assert (
        f"the last checkpoint is {Path('k/000001.safetensors')}" in said
        and not Path("v.bin").exists()
    )
    context = Checkpoint.load(Path("k/000001.safetensors")).table("context", (43, 16))
    assert np.isfinite(context).all()


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


def test_vectors_that_cannot_be_written_are_in_the_last_checkpoint(learn, monkeypatch):
    end = schedule.Checkpointer.end_epoch

    def vanish(checkpointer):
        end(checkpointer)
        shutil.rmtree("gone", ignore_errors=True)

    monkeypatch.setattr(schedule.Checkpointer, "end_epoch", vanish)
    Path("gone").mkdir()
    said = learn("gone/v.bin --checkpoint k --quiet", code=1)
    assert said.count("\n") == 1 and "cannot be written" in said and "--resume k" in said
    learn("a.bin")
    learn("v.bin --resume k")
    assert same("a.bin", "v.bin")


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signalled_process_ends_with_one_line(corpus, number):
    """In a separate process, at an arbitrary time; scripts/torture.py checks the results."""
    code, said = signalled(number, "train c --epochs 100000 --output v.bin")
    assert code == 128 + number
    assert said.startswith(f"error: stopped by {number.name} in epoch ") and said.count("\n") == 1
    assert Path("v.bin.partial").exists() and not Path("v.bin").exists()
