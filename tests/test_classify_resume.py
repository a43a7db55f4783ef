"""Checkpoints, signals and resume of `classify train`; see test_resume.py for `train`."""

import json
import random
import signal

import numpy as np
import pytest
from helpers import stop_in, write_corpus
from helpers import train as train_words

import dcme_w2v as dw
from dcme_w2v.classify import loss, solver
from dcme_w2v.classify.trainer import ClassifierTrainer
from dcme_w2v.cli.main import run

SHORT = ("--epochs", "4", "--threads", "1", "--quiet")
OBJECTIVES = [
    ["--objective", "gd"],
    ["--objective", "nce"],
    ["--objective", "dcme"],
    ["--objective", "dcme", "--dcme-update", "paper"],
]


@pytest.fixture(autouse=True)
def no_search(monkeypatch):
    """Signals arrive in the epochs of the training itself; see test_classify_rate.py."""
    monkeypatch.setattr(loss, "DOCUMENTS", (1, 0))
    monkeypatch.setattr(loss, "SMALL_WEIGHTS", 0)


@pytest.fixture
def docs(tmp_path):
    chance = random.Random(3)
    words = [f"w{i}" for i in range(60)]
    path = tmp_path / "d.tsv"
    path.write_text(
        "".join(
            f"c{i % 12}\t{' '.join(chance.choices(words[i % 12 * 4 :], k=9))}\n" for i in range(600)
        )
    )
    return str(path)


def train(docs, output, *flags):
    return run(["classify", "train", docs, "--output", str(output), *SHORT, *map(str, flags)])


def keep(docs, tmp_path):
    """Train to the end; the last checkpoint is in the folder k."""
    kept = ("--checkpoint", tmp_path / "k", "--checkpoint-every", "4")
    assert train(docs, tmp_path / "m", *kept) == 0


def arrays(model):
    """Return the bytes of a model's arrays, and the measures of its epochs."""
    reported = json.loads((model / "model.json").read_text())
    epochs = [{**one, "seconds": 0} for one in reported["record"]["epochs"]]
    return (
        {path.name: path.read_bytes() for path in model.glob("*.npy")},
        epochs,
        reported["threshold"],
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=" ".join)
def test_resume_after_a_signal_equals_the_uninterrupted_run(
    tmp_path, docs, capsys, monkeypatch, objective, number
):
    held = ("--holdout", "0.2", *objective)
    assert train(docs, tmp_path / "a", *held) == 0
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patched:
        stop_in(patched, ClassifierTrainer, 2, number)
        code = train(docs, tmp_path / "b", "--checkpoint", tmp_path / "k", *held)
    assert code == 128 + number
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    said = capsys.readouterr().err
    assert said.startswith(f"error: stopped by {signal.Signals(number).name} in epoch ")
    assert f"resume with --resume {tmp_path / 'k'}" in said and said.count("\n") == 1
    assert not (tmp_path / "b").exists()
    log = tmp_path / "log"
    assert train(docs, tmp_path / "b", "--resume", tmp_path / "k", "--log-json", log, *held) == 0
    assert arrays(tmp_path / "b") == arrays(tmp_path / "a")
    last = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["epoch"] for one in last if one["event"] == "epoch"][-1] == 4


def test_a_run_that_stopped_early_is_complete_when_resumed(tmp_path, docs, capsys):
    held = ("--holdout", "0.3", "--patience", "1", "--lr", "300", "--epochs", "40")
    kept = ("--checkpoint", tmp_path / "k", "--checkpoint-every", "1")
    assert train(docs, tmp_path / "a", *held, *kept) == 0
    assert len(arrays(tmp_path / "a")[1]) < 40
    words = ["classify", "train", docs, "--output", str(tmp_path / "b"), *map(str, held)]
    assert run([*words, "--threads", "1", "--resume", str(tmp_path / "k")]) == 0
    assert "training is complete" in capsys.readouterr().err
    assert arrays(tmp_path / "b") == arrays(tmp_path / "a")


@pytest.mark.parametrize("solver", ["sgd", "lbfgs"])
def test_a_signal_without_checkpoints_saves_the_current_model(
    tmp_path, docs, capsys, monkeypatch, solver
):
    output = tmp_path / "m"
    if solver == "sgd":
        stop_in(monkeypatch, ClassifierTrainer, 1, signal.SIGINT)
    else:
        monkeypatch.setattr("dcme_w2v.classify.fit.solve", signalling(signal.SIGTERM))
    code = train(docs, output, "--solver", solver, "--epochs", "9")
    assert code == (130 if solver == "sgd" else 143)
    said = capsys.readouterr().err
    assert f"the model so far is in {output}.partial" in said and said.count("\n") == 1
    assert not output.exists()
    assert run(["classify", "test", f"{output}.partial", docs]) == 0


def signalling(number):
    """Return `solve` with a signal that arrives during its first iteration."""

    def solve(*arguments):
        signal.raise_signal(number)
        return solver.solve(*arguments)

    return solve


REFUSED = [
    (["--lr", "3"], "--lr is 3 and was 4"),
    (["--epochs", "5"], "--epochs is 5 and was 4"),
    (["--features", "9"], "--features is 9 and was not given"),
    (["--holdout", "0.3"], "was trained on another corpus"),
    (["--threads", "2"], "--threads is 2 and was 1"),
]


@pytest.mark.parametrize(("flags", "said"), REFUSED)
def test_options_that_differ_from_the_checkpoint_are_rejected(tmp_path, docs, capsys, flags, said):
    keep(docs, tmp_path)
    assert train(docs, tmp_path / "n", "--resume", tmp_path / "k", *flags) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_checkpoints_of_the_other_command_are_rejected(tmp_path, docs, capsys):
    words, kept = write_corpus(tmp_path / "c.txt"), ("--checkpoint-every", "1")
    assert train_words(words, tmp_path / "v", "--checkpoint", str(tmp_path / "kw"), *kept) == 0
    assert train(docs, tmp_path / "m", "--checkpoint", tmp_path / "kc", *kept) == 0
    assert train(docs, tmp_path / "n", "--resume", tmp_path / "kw") == 2
    assert "is a checkpoint of words, not of classes" in capsys.readouterr().err
    assert train_words(words, tmp_path / "w", "--resume", str(tmp_path / "kc")) == 2
    assert "is a checkpoint of classes, not of words" in capsys.readouterr().err


EDITS = [{"epochs": 3}, {"epochs": [{}]}, {"best": None}, {"epochs": [], "best": 1}]


@pytest.mark.parametrize("notes", EDITS)
def test_edited_notes_are_refused(tmp_path, docs, capsys, notes):
    assert (
        train(docs, tmp_path / "m", "--checkpoint", tmp_path / "k", "--checkpoint-every", "4") == 0
    )
    path = next((tmp_path / "k").glob("*/checkpoint.json"))
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "notes": notes}))
    assert train(docs, tmp_path / "n", "--resume", tmp_path / "k") == 1
    err = capsys.readouterr().err
    assert "notes" in err and err.count("\n") == 1 and "a bug" not in err


# ---- library calls ----


def interrupting(monkeypatch, epoch):
    """Raise a KeyboardInterrupt at the start of an epoch."""
    start = ClassifierTrainer.epoch

    def raising(self, now, watch=None):
        if now == epoch:
            raise KeyboardInterrupt
        return start(self, now, watch)

    monkeypatch.setattr(ClassifierTrainer, "epoch", raising)


def test_an_interrupted_fit_leaves_the_classifier_on_the_exception(monkeypatch):
    rows = np.random.default_rng(0).random((60, 5)).astype(np.float32)
    labels = np.arange(60) % 3
    interrupting(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt) as caught:
        dw.MaxentClassifier(threads=1, epochs=5).fit(rows, labels)
    partial = caught.value.partial
    monkeypatch.undo()
    assert partial.n_iter_ == 2 and partial.coef_.any()
    assert partial.predict(rows).shape == (60,)
