"""Signals, checkpoints and resume of every training; see test_checkpoints.py for the state."""

import random
import re
import shutil
import signal
import threading
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from data import lines, run_all, write_corpus
from helpers import (
    ALL_COMMANDS,
    arrays_in,
    described,
    edit,
    manifest,
    options_of,
    records,
    save,
    signalled,
    stop_in,
)

from dcme_w2v import Vectors
from dcme_w2v.classify import choose, estimator, solver
from dcme_w2v.classify.trainer import ClassifierTrainer
from dcme_w2v.cluster.word_training import ClusterTrainer
from dcme_w2v.errors import DivergedError, ResourceError
from dcme_w2v.platform import SIGNALS
from dcme_w2v.training import run as schedule
from dcme_w2v.training import trainer as engine
from dcme_w2v.training.checkpoint_folder import Checkpoint, CheckpointFolder, generations_in
from dcme_w2v.words import train as run_module
from dcme_w2v.words.trainer import Trainer

WORDS = "train c --dim 16 --epochs 3 --min-count 2 --threads 1 --output v.bin"
CLUSTER = "train c --dim 16 --epochs 2 --sample 0.01 --cluster local:0 --shards 3 --output v.bin"
CLASSES = "classify train d.tsv --epochs 4 --threads 1 --output m"
TRAINERS = {WORDS: Trainer, CLUSTER: ClusterTrainer, CLASSES: ClassifierTrainer}
KEPT = {WORDS: "words", CLUSTER: "shards", CLASSES: "classes"}


@pytest.fixture(autouse=True, scope="module")
def no_search():
    """Signals arrive in the epochs of the training itself; see test_choose.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choose, "TABLE_CLASSES", 0)
        patch.setattr(choose, "MANY_NUMBERS", 0)
        patch.setattr(estimator, "SMALL", (0, 0))
        yield


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Texts, old vectors, and the first epochs of every training."""
    folder, chance = tmp_path_factory.mktemp("resume"), random.Random(3)
    write_corpus(folder / "c", lines=1500)
    words = [f"w{i}" for i in range(60)]
    own = [f"c{i % 12}\t{' '.join(chance.choices(words[i % 12 * 4 :], k=9))}" for i in range(600)]
    (folder / "d.tsv").write_text("\n".join(own) + "\n")
    run_all(folder, f"{WORDS} --output-tables old")
    (folder / "v.bin").unlink()
    return folder


@pytest.fixture(autouse=True)
def files(texts, here):
    shutil.copytree(texts, here, dirs_exist_ok=True)


@pytest.fixture
def learn(cli):
    """Return a function that trains; it returns the messages."""

    def train(line, *flags, code=0):
        cli(f"{line} {' '.join(flags)} --quiet", code=code)
        return cli.err

    return train


def taken():
    """Return what a training wrote but for times, and remove it."""
    found = []
    for path in filter(Path.exists, map(Path, ("v.bin", "m", "t"))):
        is_model = path.name == "m"
        record = described(path) if is_model else manifest(path)
        kept = [record.get(one) for one in ("tokens", "loss", "threshold", "features")]
        kept += [{**one, "seconds": 0} for one in record["record"]["epochs"]] if is_model else []
        found.append((path.read_bytes() if path.name == "v.bin" else arrays_in(path), kept))
        path.unlink()
    return found


ROWS = [
    (WORDS, "--output-tables t", ""),
    (WORDS, "--word-order --objective nce --output-tables t", ""),
    (WORDS, "--word-order --objective nce --virtual-samples 2 --window-mode fixed", ""),
    (WORDS, "--subwords 3-6 --buckets 50 --format fasttext", ""),
    (WORDS, "--objective hs", ""),
    (WORDS, "--objective dcme --model skipgram --lr 0.005 --output-tables t", ""),
    (WORDS, "--init old --init-vocab union --output-tables t", ""),
    (WORDS, "--deterministic --threads 3", "--threads 2"),
    (CLUSTER, "--output-tables t", ""),
    (CLASSES, "--holdout 0.2 --objective gd", ""),
    (CLASSES, "--holdout 0.2 --objective nce", ""),
    (CLASSES, "--holdout 0.2 --objective dcme", ""),
    (CLASSES, "--objective dcme --dcme-update paper", ""),
    (CLASSES, "--subwords 1-4", ""),
]


@pytest.mark.bits
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{KEPT[row[0]]} {row[1]}")
def test_a_signal_saves_and_resume_continues(learn, monkeypatch, row):
    (line, flags, more), number = row, SIGNALS[ROWS.index(row) % len(SIGNALS)]
    learn(line, flags)
    expected = taken()
    before = [signal.getsignal(one) for one in SIGNALS]
    with monkeypatch.context() as patch:
        stop_in(patch, TRAINERS[line], 1, number)
        said = learn(line, flags, "--checkpoint k", code=128 + number)
    assert [signal.getsignal(one) for one in SIGNALS] == before
    step = "round" if line == CLUSTER else "epoch"
    assert said.startswith(f"error: stopped by {number.name} in {step} ") and said.count("\n") == 1
    assert "resume with --resume k" in said and not taken()
    learn(line, flags, more, "--resume k --log-json log")
    assert taken() == expected
    numbers = [one[step] for one in records("log") if one["event"] == step]
    assert numbers == [*range(numbers[0], numbers[-1] + 1)] and numbers[0] > 1


def signalling(*arguments):
    """Solve, with a signal that arrives during the first iteration."""
    signal.raise_signal(signal.SIGTERM)
    return solver.solve(*arguments)


@pytest.mark.parametrize("line, name", [
    (WORDS, "v.bin"), (WORDS, "v.safetensors"), (f"{WORDS} --format text", "v"), (CLASSES, "m"),
    (f"{CLASSES} --solver lbfgs --l2 1e-5", "m"),
])  # fmt: skip
def test_a_signal_without_checkpoints_saves_the_current_result(
    cli, learn, texts, monkeypatch, line, name
):
    is_model = name == "m"
    if not is_model:
        save(Path(name), ["old"], [[1]])
    stop_in(monkeypatch, ClassifierTrainer if is_model else Trainer, is_model, signal.SIGTERM)
    monkeypatch.setattr("dcme_w2v.classify.fit.solve", signalling)
    old = {path.name: path.read_bytes() for path in Path().iterdir()}
    said = learn(line, f"--output {name}", code=143)
    of = "model" if is_model else "vectors"
    assert f"the {of} so far {'is' if is_model else 'are'} in {name}.partial" in said
    assert said.count("\n") == 1
    assert old == {
        path.name: path.read_bytes() for path in Path().iterdir() if ".partial" not in path.name
    }
    if is_model:
        cli("classify test m.partial d.tsv")
    else:
        assert np.isfinite(Vectors.load(f"{name}.partial").vectors).all()


def test_a_signal_during_reading_ends_immediately(learn, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "encode", interrupt)
    assert learn(WORDS, code=130) == "error: interrupted\n"


@pytest.mark.bits
def test_checkpoints_by_epochs_and_by_time(learn, monkeypatch):
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.001)
    names, results = {}, []
    for every in ("1", "2", "9h", "0s"):
        learn(WORDS, f"--checkpoint {every} --checkpoint-every {every}")
        names[every] = [one.stem for one in generations_in(Path(every))]
        results.append(taken())
    assert int(names.pop("0s")[-1]) >= 3
    assert names == {"1": ["000002", "000003"], "2": ["000001", "000002"], "9h": ["000001"]}
    assert all(one == results[0] for one in results)


@pytest.mark.bits
def test_a_run_that_stopped_early_is_complete_when_resumed(cli):
    line = f"{CLASSES} --holdout 0.3 --patience 1 --lr 30 --epochs 40"
    cli(f"{line} --checkpoint k --checkpoint-every 1")
    expected = taken()
    assert len(expected[0][1]) < 40
    cli(f"{line} --resume k")
    assert "training is complete" in cli.err and taken() == expected


@pytest.fixture(scope="module")
def generations(texts, tmp_path_factory):
    """Checkpoints of every training."""
    folder = tmp_path_factory.mktemp("kept")
    shutil.copytree(texts, folder, dirs_exist_ok=True)
    run_all(folder, *(f"{line} --checkpoint {k} --checkpoint-every 2" for line, k in KEPT.items()))
    return folder


@pytest.fixture
def kept(generations, here):
    for name in KEPT.values():
        shutil.copytree(generations / name, here / name)


@pytest.mark.parametrize("line, flags, said", [
    (WORDS, "--lr 0.01", "--lr is 0.01, but was 0.0202"),
    (WORDS, "--deterministic", "--deterministic is True, but was False"),
    (WORDS, "--word-order", "--word-order is True, but was False"),  # --lr differs because of it
    (WORDS, "--init v.txt", "--init is vectors "),
    (CLUSTER, "--init v.txt", "--init is vectors "),
    (WORDS, "--holdout 0.5", "the original data and --holdout"),
    (WORDS, "--resume classes", "is a checkpoint of classes, not of words"),
    (WORDS, "--resume shards", "of words on a cluster, not of words; use --cluster only if"),
    (CLUSTER, "--rounds 4", "--rounds is 4, but was "),
    (CLASSES, "--lr 3", "--lr is 3, but was 4"),
    (CLASSES, "--features 9", "--features is 9, but was not given"),
    (CLASSES, "--holdout 0.3", "is from a run with a different corpus"),
    (CLASSES, "--class-weight balanced", "--class-weight is balanced, but was not given"),
    (CLASSES, "--loss hinge --objective dcme", "is not supported with --objective dcme"),
    (CLASSES, "--resume words", "is a checkpoint of words, not of classes"),
    (CLASSES, "", "its checksum does not match"),
])  # fmt: skip
def test_what_differs_from_the_checkpoint_is_an_error(kept, cli, line, flags, said):
    if not flags:
        edit(generations_in(Path(KEPT[line]))[-1], notes={"epochs": 3})
    Path("v.txt").write_text(f"1 16\nw1 {'1 ' * 16}\n")
    assert said in cli.error(f"{line} --quiet --resume {KEPT[line]} {flags}")


# Values of options that are neither numbers with bounds nor choices.
CHANGED = {
    "--output": "other", "--output-tables": "other", "--log-json": "other", "--init": "v.txt",
    "--read-vocab": "voc", "--text-column": "a", "--label-column": "a", "--unk": "<unk>",
    "--sample-weight-column": "a", "--subwords": "3-5", "--holdout": "0.5", "--cluster": "local:0",
    "--checkpoint": "other", "--checkpoint-every": "1", "--class-weight": "c1=2",
    "--labels": "v.txt", "--max-bytes": "99999", "--gradient": "exact", "--format": "text",
    "--rounds": "4",
}  # fmt: skip


def changes(line):
    """Return each option of a command, but for those that a line has, with a changed value."""
    name = "dcme-w2v classify train" if line == CLASSES else "dcme-w2v train"
    for param in ALL_COMMANDS[name].params:
        if getattr(param, "hidden", True) or param.opts[-1] in ("--resume", "--help-all"):
            continue
        if line == CLUSTER and param.opts[-1] not in ("--shards", "--rounds", "--init", "--seed"):
            continue  # the other options are checked as those of words
        flag, kind = param.opts[-1], param.type
        if param.is_flag:
            yield flag, flag
        elif flag in CHANGED:
            yield flag, f"{flag} {CHANGED[flag]}"
        elif choices := getattr(kind, "choices", ()):
            yield flag, f"{flag} {next(one for one in choices[::-1] if one != param.default)}"
        else:
            yield flag, f"{flag} {7 if param.declared.type is int else 0.25}"


@pytest.mark.parametrize("line, flag, given", [
    (line, *change) for line in KEPT for change in changes(line)
])  # fmt: skip
def test_a_changed_option_is_an_error_that_names_it_or_free(kept, cli, line, flag, given):
    """Every option that is declared for a command; the page lists those that are free."""
    Path("v.txt").write_text(f"1 16\nw1 {'1 ' * 16}\n")
    Path("voc").write_text("w1 9\nw2 8\n")
    page = Path(__file__).parents[2] / "docs" / "guides" / "resume.md"
    (free,) = (one for one in page.read_text().split("\n\n") if "you can change" in one)
    code = cli.run(f"{line} --resume {KEPT[line]} {given}")
    if f"`{flag}`" in free:
        assert code == 0
    else:  # an error names the options that a preset sets, and the missing column
        named = {"--preset": ", but was ", "--text-column": "column"}.get(flag, flag)
        assert named in cli.err and (code != 0 or f"{flag} has no effect" in cli.err)


@pytest.mark.parametrize("line", [WORDS, CLUSTER])
def test_another_corpus_is_an_error(kept, cli, line):
    text, resume = Path("c").read_text(), f"{line} --quiet --resume {KEPT[line]}"
    begin, _, last = text.rpartition("\n")
    for other in (f"{begin}\n{' '.join(last.split()[::-1])}", f"{text}\n{text}"):
        Path("c").write_text(other)
        assert "is from a run with a different corpus" in cli.error(resume)
    assert line == CLUSTER or f"{len(text.split()):,} tokens" in cli.err


def test_the_folder_of_an_earlier_run_is_not_overwritten(kept, learn):
    before = sorted(Path("words").iterdir())
    assert "resume the run with --resume words" in learn(WORDS, "--checkpoint words", code=2)
    assert sorted(Path("words").iterdir()) == before


@pytest.mark.parametrize(
    "folder, resumed", [("words", "words/"), ("./words", "words"), ("link", "words")]
)
def test_other_names_of_the_folder_resume_it(folder, resumed, cli):
    Path("link").symlink_to("words")
    Path("t").write_text("a b c d a b\n" * 20)
    line = "train t --output v.bin --dim 4 --epochs 2 --threads 1"
    cli(f"{line} --checkpoint words --checkpoint-every 1 --quiet")
    cli(f"{line} --checkpoint {folder} --resume {resumed}")
    assert "training is complete" in cli.err


def ending(monkeypatch, then):
    """Do something after each epoch."""
    end = schedule.Checkpointer.save_if_due

    def save_if_due(checkpointer):
        then(checkpointer._run)
        end(checkpointer)

    monkeypatch.setattr(schedule.Checkpointer, "save_if_due", save_if_due)


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_training(cli, monkeypatch):
    full = Mock(side_effect=ResourceError("k: the disk is full"))
    monkeypatch.setattr(CheckpointFolder, "save", full)
    line = f"{WORDS} --checkpoint k --checkpoint-every 1"
    cli(line)
    assert cli.err.count("warning: k: the disk is full; training continues\n") == 3
    stop_in(monkeypatch, Trainer, 1, signal.SIGTERM)
    cli(line, code=143)
    said = r"in epoch [23]: k: the disk is full; the vectors so far are in v\.bin\.partial\n$"
    assert re.search(said, cli.err)


def test_a_checkpoint_of_other_kernels_is_warned_of(kept, cli, monkeypatch):
    path = generations_in(Path("words"))[-1]
    monkeypatch.setenv("DCME_W2V_KERNELS", "scalar")
    cli(f"{WORDS} --resume words")
    assert f"warning: {path} was trained with " in cli.err
    assert "this machine uses scalar kernels; results can differ in the last digits" in cli.err


def test_divergence_names_the_last_checkpoint(cli, monkeypatch):
    monkeypatch.setattr(engine, "POLL_SECONDS", 0.001)

    def spoil(run):
        if run.position.epoch == 2:
            run.trainer.input[3, 3] = np.nan

    ending(monkeypatch, spoil)
    said = cli.error(f"{WORDS} --checkpoint k --checkpoint-every 1 --quiet")
    assert "--objective ns" in said and "--lr 0.0202" in said and "epoch" in said
    path = Path("k/000001.safetensors")
    assert f"the last checkpoint is {path}" in said and not taken()
    assert np.isfinite(Checkpoint.load(path).table("context", (43, 16))).all()


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


def test_vectors_that_cannot_be_written_are_in_the_last_checkpoint(cli, learn, monkeypatch):
    Path("gone").mkdir()
    with monkeypatch.context() as patch:
        ending(patch, lambda checkpointer: shutil.rmtree("gone", ignore_errors=True))
        said = cli.error(f"{WORDS} --output gone/v.bin --checkpoint k --quiet")
    assert "cannot be written" in said and "--resume k" in said
    learn(WORDS, "--resume k")
    expected = taken()
    learn(WORDS)
    assert taken() == expected


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signalled_process_ends_with_one_line(number):
    """In a separate process, at an arbitrary time; scripts/torture.py checks the results."""
    code, said = signalled(number, "train c --epochs 100000 --output v.bin")
    assert code == 128 + number
    assert said.startswith(f"error: stopped by {number.name} in epoch ") and said.count("\n") == 1
    assert Path("v.bin.partial").exists() and not Path("v.bin").exists()
