"""Checkpoints, signals and resume of `classify train`; see test_resume.py for `train`."""

import random
import signal
from pathlib import Path

import numpy as np
import pytest
from data import write_corpus
from helpers import arrays_in, described, edit, records, stop_in

import dcme_w2v as dw
from dcme_w2v.classify import choose, estimator, solver
from dcme_w2v.classify.trainer import ClassifierTrainer

SHORT = "classify train d.tsv --epochs 4 --threads 1 --quiet"
OBJECTIVES = ["gd", "nce", "dcme", "dcme --dcme-update paper"]


@pytest.fixture(autouse=True)
def no_search(monkeypatch):
    """Signals arrive in the epochs of the training itself; see test_choose.py."""
    monkeypatch.setattr(choose, "HINGE_CLASSES", 0)
    monkeypatch.setattr(choose, "MANY_SETS", 0)
    monkeypatch.setattr(estimator, "SMALL", (0, 0))


@pytest.fixture(autouse=True)
def docs():
    chance = random.Random(3)
    words = [f"w{i}" for i in range(60)]
    own = [f"c{i % 12}\t{' '.join(chance.choices(words[i % 12 * 4 :], k=9))}" for i in range(600)]
    Path("d.tsv").write_text("\n".join(own) + "\n")


def arrays(model):
    """Return the bytes of a model's arrays, and the measures of its epochs."""
    reported = described(model)
    epochs = [{**one, "seconds": 0} for one in reported["record"]["epochs"]]
    files = arrays_in(model)
    return files, epochs, reported["threshold"]


@pytest.mark.parametrize(
    "objective, number",
    list(zip(OBJECTIVES, [signal.SIGINT, signal.SIGTERM] * 2, strict=True)),
)
def test_resume_after_a_signal_equals_the_uninterrupted_run(cli, monkeypatch, objective, number):
    train = f"{SHORT} --holdout 0.2 --objective {objective} --output"
    cli(f"{train} a")
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patched:
        stop_in(patched, ClassifierTrainer, 2, number)
        cli(f"{train} b --checkpoint k", code=128 + number)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    assert cli.err.startswith(f"error: stopped by {number.name} in epoch ")
    assert "resume with --resume k" in cli.err and cli.err.count("\n") == 1
    assert not Path("b").exists()
    cli(f"{train} b --resume k --log-json log")
    assert arrays("b") == arrays("a")
    last = records("log")
    assert [one["epoch"] for one in last if one["event"] == "epoch"][-1] == 4


def test_a_run_that_stopped_early_is_complete_when_resumed(cli):
    train = "classify train d.tsv --threads 1 --holdout 0.3 --patience 1 --lr 300 --epochs 40"
    cli(f"{train} --output a --checkpoint k --checkpoint-every 1")
    assert len(arrays("a")[1]) < 40
    cli(f"{train} --output b --resume k")
    assert "training is complete" in cli.err and arrays("b") == arrays("a")


@pytest.mark.parametrize("solver", ["sgd", "lbfgs"])
def test_a_signal_without_checkpoints_saves_the_current_model(cli, monkeypatch, solver):
    if solver == "sgd":
        stop_in(monkeypatch, ClassifierTrainer, 1, signal.SIGINT)
    else:
        monkeypatch.setattr("dcme_w2v.classify.fit.solve", signalling(signal.SIGTERM))
    cli(f"{SHORT} --output m --solver {solver} --epochs 9", code=130 if solver == "sgd" else 143)
    assert "the model so far is in m.partial" in cli.err and cli.err.count("\n") == 1
    assert not Path("m").exists()
    cli("classify test m.partial d.tsv")


def signalling(number):
    """Return `solve` with a signal that arrives during its first iteration."""

    def solve(*arguments):
        signal.raise_signal(number)
        return solver.solve(*arguments)

    return solve


def test_checkpoints_of_the_other_command_are_rejected(cli):
    write_corpus(Path("c"))
    words = "train c --dim 16 --quiet --output v"
    cli(f"{words} --checkpoint kw --checkpoint-every 1")
    cli(f"{SHORT} --output m --checkpoint kc --checkpoint-every 1")
    error = cli.error(f"{SHORT} --output n --resume kw")
    assert "is a checkpoint of words, not of classes" in error
    assert "is a checkpoint of classes, not of words" in cli.error(f"{words} --resume kc")


# ---- library calls ----


def test_an_interrupted_fit_leaves_the_classifier_on_the_exception(monkeypatch):
    rows, labels = np.random.default_rng(0).random((60, 5)), np.arange(60) % 3
    start = ClassifierTrainer.epoch

    def raising(self, now, watch=None):
        if now == 2:
            raise KeyboardInterrupt
        return start(self, now, watch)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as caught:
        patch.setattr(ClassifierTrainer, "epoch", raising)
        dw.MaxentClassifier(threads=1, epochs=5).fit(rows, labels)
    partial = caught.value.partial
    assert partial.n_iter_ == 2 and partial.coef_.any()
    assert partial.predict(rows).shape == (60,)


@pytest.mark.parametrize(
    "flags, said",
    [
        ("--lr 3", "--lr is 3 and was 4"),
        ("--epochs 5", "--epochs is 5 and was 4"),
        ("--features 9", "--features is 9 and was not given"),
        ("--holdout 0.3", "was trained on another corpus"),
        ("--threads 2", "--threads is 2 and was 1"),
        ({"epochs": 3}, "its checksum differs"),
    ],
)
def test_options_and_notes_that_differ_from_the_checkpoint_are_rejected(cli, flags, said):
    cli(f"{SHORT} --output m --checkpoint k --checkpoint-every 4")
    if isinstance(flags, dict):  # edited notes
        edit("k/000001.safetensors", notes=flags)
        flags = ""
    assert said in cli.error(f"{SHORT} --output n --resume k {flags}")
