"""Checkpoints, resuming, signals: a run that was stopped ends as if it had not been."""

import json
import os
import shutil
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from test_cli_train import manifest, write_corpus
from test_training import MODELS, OBJECTIVES, lines, options_of

from dcme_w2v.cli.main import run
from dcme_w2v.errors import DivergedError, FormatError, ResourceError, UsageError
from dcme_w2v.options import CheckpointOptions, VocabularyOptions
from dcme_w2v.text.vocabulary import Vocabulary
from dcme_w2v.words import keeping, trainer
from dcme_w2v.words import training as training_module
from dcme_w2v.words.checkpoint import (
    Checkpoint,
    CheckpointFolder,
    Position,
    generations_in,
    record_of,
)
from dcme_w2v.words.record import FILES, RECORD
from dcme_w2v.words.training import Training
from dcme_w2v.words.vectors import Vectors

FINGERPRINT = {"ids": "a", "vocabulary": "b", "tokens": 1, "words": 1, "files": ["c"]}


def vocabulary_of(counts):
    return Vocabulary.from_counts({f"w{i}": int(n) for i, n in enumerate(counts)})


def saved(folder, training, epoch, counts):
    """Save a training and read the generation again."""
    record = record_of(
        VocabularyOptions(), training.options, FINGERPRINT, training, Position(epoch)
    )
    return Checkpoint.load(folder.save(record, training, vocabulary_of(counts)))


# ---- the state itself ----


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("model", MODELS)
def test_a_run_stopped_again_and_again_ends_as_the_straight_one(
    tmp_path, monkeypatch, objective, model
):
    monkeypatch.setattr(training_module, "POLL_SECONDS", 0.001)
    text = lines([20] * 3000)
    rate = {"lr": 0.005} if "dcme_update" in objective else {}
    options = options_of(objective | model | rate, epochs=2, beta=3.0, sample=0.0)
    straight = Training(*text, options)
    ends = [straight.epoch(number) for number in range(2)]

    folder = CheckpointFolder(str(tmp_path / "k"), resuming=False)
    stopped, stops = Training(*text, options), 0

    def watch(progress):
        return stops < 6

    for number in range(2):
        end = stopped.epoch(number, watch)
        while stopped.unfinished is not None:
            stops += 1
            found = saved(folder, stopped, number, text[1])
            stopped = Training(*text, options)
            assert found.restore(stopped).epoch == stopped.unfinished == number
            end = stopped.epoch(number, watch)
        assert end == ends[number]
    folder.close()
    assert stops > 0
    assert stopped.input.tobytes() == straight.input.tobytes()
    assert stopped.output.tobytes() == straight.output.tobytes()


@pytest.mark.parametrize("threads", [2, 5])
def test_no_token_is_lost_with_threads(tmp_path, monkeypatch, threads):
    monkeypatch.setattr(training_module, "POLL_SECONDS", 0.001)
    text = lines([20] * 6000 + [1] * 100)
    options = options_of({"objective": "dcme"}, epochs=1, threads=threads, sample=0.0)
    folder = CheckpointFolder(str(tmp_path / "k"), resuming=False)
    run, stops = Training(*text, options), 0
    run.epoch(0, lambda progress: True)
    while run.unfinished is not None:
        stops += 1
        found = saved(folder, run, 0, text[1])
        run = Training(*text, options)
        found.restore(run)
        run.epoch(0, lambda progress: True)
    folder.close()
    assert stops > 0
    assert run.progress().done == len(text[0])


def test_a_stop_before_or_after_an_epoch_loses_nothing():
    text = lines([20] * 100)
    run = Training(*text, options_of({}, epochs=3))
    run._core.stop()
    run.epoch(0)
    run._core.stop()
    run.epoch(1)
    assert run.progress().done == 2 * len(text[0])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_deterministic_is_one_learner_whatever_the_threads(objective):
    text = lines([20] * 300)
    tables = set()
    for threads, deterministic in [(1, False), (1, True), (2, True), (7, True)]:
        run = Training(*text, options_of(objective, threads=threads, deterministic=deterministic))
        run.epoch(0)
        tables.add(run.input.tobytes() + run.output.tobytes())
    assert len(tables) == 1


# ---- the folder ----


@pytest.fixture
def kept(tmp_path):
    """Return a training, its folder of checkpoints and the text."""
    text = lines([20] * 30)
    training = Training(*text, options_of({}))
    training.epoch(0)
    folder = CheckpointFolder(str(tmp_path / "k"), resuming=False)
    yield training, folder, text
    folder.close()


def test_two_generations_are_kept(kept):
    training, folder, (_, counts) = kept
    for epoch in range(4):
        saved(folder, training, epoch, counts)
    assert [one.name for one in folder.generations()] == ["000003", "000004"]
    assert {one.name for one in folder.path.iterdir()} == {"000003", "000004"}
    for one in folder.generations():
        assert {file.name for file in one.iterdir()} == {*FILES, RECORD}


def test_the_vectors_of_a_checkpoint_are_vectors(kept):
    training, folder, (_, counts) = kept
    found = saved(folder, training, 1, counts)
    vectors = Vectors.load(found.folder / "vectors.npy")
    assert np.array_equal(vectors.matrix, training.input)
    assert vectors.counts.tolist() == counts.tolist()
    assert run(["check", str(found.folder / "vectors.npy")]) == 0


def test_a_killed_runs_left_over_is_removed_and_no_generation(tmp_path):
    left = tmp_path / "k" / ".x.part"
    left.mkdir(parents=True)
    (left / "state.bin").write_bytes(b"half")
    assert generations_in(tmp_path / "k") == []
    CheckpointFolder(str(tmp_path / "k"), resuming=False).close()
    assert not left.exists()


def test_one_run_at_a_time(kept):
    _, folder, _ = kept
    with pytest.raises(UsageError, match="another run writes its checkpoints there"):
        CheckpointFolder(str(folder.path), resuming=True)


def test_a_checkpoint_that_cannot_be_written_leaves_the_others(kept, monkeypatch):
    training, folder, (_, counts) = kept
    saved(folder, training, 1, counts)

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResourceError, match=r"No space left on device; it needs .* MB"):
        saved(folder, training, 2, counts)
    assert [one.name for one in folder.path.iterdir()] == ["000001"]
    Checkpoint.load(folder.generations()[0])


@pytest.mark.parametrize("name", [*FILES, RECORD])
@pytest.mark.parametrize("damage", ["missing", "empty", "short", "changed"])
def test_a_damaged_file_is_named(kept, name, damage):
    training, folder, (_, counts) = kept
    path = saved(folder, training, 1, counts).folder / name
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        middle = len(data) // 2
        changed = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1 :]
        path.write_bytes({"empty": b"", "short": data[:-2], "changed": changed}[damage])
    with pytest.raises(FormatError, match=name) as caught:
        Checkpoint.load(folder.generations()[0])
    assert "\n" not in str(caught.value)


EDITS = {
    "another format": {"format": 2},
    "format of words": {"format": "one"},
    "no corpus": {"corpus": None},
    "no number": {"position": {"epoch": "3", "seconds": 1, "epoch_seconds": 1}},
    "true is no number": {"position": {"epoch": True, "seconds": 1, "epoch_seconds": 1}},
    "epoch before the first": {"position": {"epoch": -1, "seconds": 1, "epoch_seconds": 1}},
    "epoch after the last": {"position": {"epoch": 99, "seconds": 1, "epoch_seconds": 1}},
    "other parts": {"training": {"loss": 0, "losses": 0, "state": [1, 2, 3]}},
    "no parts": {"training": {"loss": 0, "losses": 0, "state": []}},
    "path outside": {"files": {"../../x": {"bytes": 1, "crc32": 1}}},
    "size of another": {"files": {name: {"bytes": 5, "crc32": 1} for name in FILES}},
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_record_is_refused(kept, edit):
    training, folder, (_, counts) = kept
    path = saved(folder, training, 1, counts).folder / RECORD
    path.write_text(json.dumps({**json.loads(path.read_text()), **EDITS[edit]}))
    with pytest.raises(FormatError):
        Checkpoint.load(path.parent).restore(training)


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, '{"format": NaN}', "\0", "é"])
def test_a_record_that_is_none(kept, text):
    training, folder, (_, counts) = kept
    path = saved(folder, training, 1, counts).folder / RECORD
    path.write_text(text, encoding="latin-1")
    with pytest.raises(FormatError, match=RECORD):
        Checkpoint.load(path.parent)


def test_positions_outside_of_the_corpus_are_refused(kept):
    training, *_ = kept
    pieces, record = training.state(), training.record()
    state = iter([piece.tobytes() for piece in pieces])

    def read(view):
        data = next(state)
        view[:] = data if len(data) != 8 else np.int64(1 << 40).tobytes()
        return len(data)

    with pytest.raises(FormatError, match="places"):
        training.restore(read, record)


def test_another_shape_is_refused(kept):
    training, folder, text = kept
    found = saved(folder, training, 1, text[1])
    with pytest.raises(FormatError, match=r"vectors\.npy: is float32"):
        found.restore(Training(*text, options_of({}, dim=9)))
    with pytest.raises(FormatError, match=r"state\.bin: does not fit this run"):
        found.restore(Training(*text, options_of({"objective": "dcme"})))


def test_numbers_that_are_not_finite_are_not_kept(kept):
    training, *_ = kept
    training.input[0, 0] = np.nan
    with pytest.raises(DivergedError, match="a vector is not finite"):
        training.check_finite()


@pytest.mark.parametrize("every", ["0", "-1", "10", "1.5", "m", "1d", "1e3", "10 m", "", "९m"])
def test_checkpoint_every(every):
    if every == "10":
        assert CheckpointOptions(every).epochs == 10 and CheckpointOptions(every).seconds is None
        assert CheckpointOptions("1.5m").seconds == 90 and CheckpointOptions("2h").seconds == 7200
        return
    with pytest.raises(UsageError, match="--checkpoint-every"):
        CheckpointOptions(every)


# ---- the command ----


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus.txt", lines=1500)


def train(corpus, output, *flags):
    base = ["--dim", "16", "--epochs", "3", "--threads", "1", "--min-count", "2"]
    return run(["train", corpus, "--output", str(output), *base, *flags])


def stop_in(monkeypatch, epoch, number=signal.SIGINT):
    """Send a signal as soon as training is seen in an epoch, or in a later one."""
    is_time = keeping.Keeper.is_time

    def send(keeper):
        if keeper.position.epoch >= epoch:  # a short epoch may end before anyone looks
            os.kill(os.getpid(), number)
            monkeypatch.setattr(keeping.Keeper, "is_time", is_time)
        return is_time(keeper)

    monkeypatch.setattr(training_module, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(keeping.Keeper, "is_time", send)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_resume_goes_on(tmp_path, corpus, capsys, monkeypatch, number):
    straight, output, folder = tmp_path / "a.bin", tmp_path / "b.bin", tmp_path / "k"
    log = tmp_path / "log"
    files = ("--output-context", str(tmp_path / "c.bin"), "--log-json", str(log))
    assert train(corpus, straight, "--output-context", str(tmp_path / "d.bin")) == 0
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    output.write_bytes(b"old")
    stop_in(monkeypatch, 1, number)
    capsys.readouterr()
    code = train(corpus, output, "--checkpoint", str(folder), "--quiet", *files)
    assert code == 128 + number
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    said = capsys.readouterr().err
    name = signal.Signals(number).name
    assert said.count("\n") == 1
    assert said.startswith(f"error: stopped by {name} in epoch ")
    assert f"go on with --resume {folder}" in said
    assert output.read_bytes() == b"old"
    assert train(corpus, output, "--resume", str(folder), "--quiet", *files) == 0
    assert output.read_bytes() == straight.read_bytes()
    assert (tmp_path / "c.bin").read_bytes() == (tmp_path / "d.bin").read_bytes()
    first, second = manifest(straight), manifest(output)
    assert first["tokens"] == second["tokens"] and first["loss"] == second["loss"]
    epochs = [json.loads(line) for line in log.read_text().splitlines()]
    assert [one["epoch"] for one in epochs if one["event"] == "epoch"] == [1, 2, 3]


def test_a_signal_without_checkpoints_saves_the_vectors_so_far(
    tmp_path, corpus, capsys, monkeypatch
):
    output = tmp_path / "v.bin"
    output.write_bytes(b"old")
    stop_in(monkeypatch, 0)
    assert train(corpus, output, "--quiet") == 130
    assert f"the vectors so far are in {output}.partial" in capsys.readouterr().err
    assert output.read_bytes() == b"old"
    assert np.isfinite(Vectors.load(f"{output}.partial").matrix).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "corpus.txt", "v.bin", "v.bin.partial",
    ]  # fmt: skip


def test_a_signal_while_reading_ends_at_once(tmp_path, corpus, capsys, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "encode", interrupt)
    assert train(corpus, tmp_path / "v.bin") == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_checkpoints_by_epochs_and_by_time(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(training_module, "POLL_SECONDS", 0.001)
    for every, names in (("1", {"000002", "000003"}), ("2", {"000001"}), ("9h", set())):
        folder = tmp_path / every
        flags = ("--checkpoint", str(folder), "--checkpoint-every", every)
        assert train(corpus, tmp_path / f"{every}.bin", *flags) == 0
        assert {one.name for one in generations_in(folder)} == names
    often = ("--checkpoint", str(tmp_path / "t"), "--checkpoint-every", "0s")
    assert train(corpus, tmp_path / "t.bin", *often) == 0
    assert int(generations_in(tmp_path / "t")[-1].name) >= 3
    found = {(tmp_path / f"{name}.bin").read_bytes() for name in ("1", "2", "9h", "t")}
    assert len(found) == 1


def kept_of(tmp_path, corpus, *flags):
    folder = tmp_path / "k"
    flags = ("--checkpoint", str(folder), "--checkpoint-every", "2", *flags)
    assert train(corpus, tmp_path / "v.bin", *flags) == 0
    return str(folder)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--lr", "0.01"], "--lr is 0.01 and was 0.05"),
        (["--epochs", "4"], "--epochs is 4 and was 3"),
        (["--threads", "2"], "--threads is 2 and was 1"),
        (["--seed", "2"], "--seed is 2 and was 1"),
        (["--min-count", "3"], "--min-count is 3 and was 2"),
        (["--max-vocab", "9"], "--max-vocab is 9 and was not given"),
        (["--objective", "nce"], "--objective is nce and was ns"),
        (["--deterministic"], "--deterministic is True and was False"),
    ],
)
def test_changed_options_are_refused(tmp_path, corpus, capsys, flags, said):
    folder = kept_of(tmp_path, corpus)
    assert train(corpus, tmp_path / "v.bin", "--resume", folder, *flags) == 2
    assert said in capsys.readouterr().err


def test_threads_are_those_of_the_checkpoint(tmp_path, corpus):
    folder = kept_of(tmp_path, corpus, "--threads", "3")
    flags = [
        "--output",
        str(tmp_path / "w.bin"),
        "--dim",
        "16",
        "--epochs",
        "3",
        "--min-count",
        "2",
    ]
    assert run(["train", corpus, *flags, "--resume", folder]) == 0
    assert manifest(tmp_path / "w.bin")["options"]["threads"] == 3


def test_deterministic_goes_on_with_any_threads(tmp_path, corpus):
    folder = kept_of(tmp_path, corpus, "--deterministic", "--threads", "3")
    flags = ("--deterministic", "--threads", "2", "--resume", folder)
    assert train(corpus, tmp_path / "w.bin", *flags) == 0
    assert (tmp_path / "w.bin").read_bytes() == (tmp_path / "v.bin").read_bytes()


def test_another_corpus_is_refused(tmp_path, corpus, capsys):
    folder = kept_of(tmp_path, corpus)
    text = Path(corpus).read_text().split()
    Path(corpus).write_text(" ".join([*text[:-2], text[-1], text[-2]]) + "\n")
    assert train(corpus, tmp_path / "v.bin", "--resume", folder) == 2
    assert "was made from another corpus" in capsys.readouterr().err
    Path(corpus).write_text(" ".join(text) * 2)
    assert train(corpus, tmp_path / "v.bin", "--resume", folder, "--quiet") == 2
    said = capsys.readouterr().err
    assert f"{len(text):,} tokens" in said and said.count("\n") == 1


def test_a_corpus_that_moved_is_the_same(tmp_path, corpus):
    folder = kept_of(tmp_path, corpus)
    moved = str(Path(corpus).rename(tmp_path / "moved.txt"))
    assert train(moved, tmp_path / "w.bin", "--resume", folder) == 0
    assert (tmp_path / "w.bin").read_bytes() == (tmp_path / "v.bin").read_bytes()


def test_a_folder_of_an_earlier_run_is_not_written_to(tmp_path, corpus, capsys):
    folder = kept_of(tmp_path, corpus)
    before = sorted(Path(folder).iterdir())
    assert train(corpus, tmp_path / "v.bin", "--checkpoint", folder) == 2
    assert f"go on from them with --resume {folder}" in capsys.readouterr().err
    assert sorted(Path(folder).iterdir()) == before


def test_resume_without_a_checkpoint(tmp_path, corpus, capsys):
    folder, output = str(tmp_path / "k"), tmp_path / "v.bin"
    assert train(corpus, output, "--resume", folder) == 2
    assert "has no checkpoint" in capsys.readouterr().err
    assert train(corpus, output, "--resume", folder, "--checkpoint", folder) == 0


def test_a_checkpoint_can_be_started_from_with_other_options(tmp_path, corpus):
    folder = kept_of(tmp_path, corpus)
    vectors = generations_in(Path(folder))[-1] / "vectors.npy"
    assert train(corpus, tmp_path / "w.bin", "--init", str(vectors), "--lr", "0.01") == 0


def test_a_dry_run_makes_no_folder(tmp_path, corpus):
    assert run(["train", corpus, "--dry-run", "--checkpoint", str(tmp_path / "k")]) == 0
    assert not (tmp_path / "k").exists()


def test_divergence_names_the_last_good_state(tmp_path, corpus, capsys, monkeypatch):
    monkeypatch.setattr(training_module, "POLL_SECONDS", 0.001)
    folder = tmp_path / "k"
    advance = keeping.Keeper.end_epoch

    def spoil(keeper):
        advance(keeper)
        if keeper.position.epoch == 2:
            keeper._training.input[3, 3] = np.nan

    monkeypatch.setattr(keeping.Keeper, "end_epoch", spoil)
    flags = ("--checkpoint", str(folder), "--checkpoint-every", "1", "--quiet")
    assert train(corpus, tmp_path / "v.bin", *flags) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--objective ns" in said and "--lr 0.05" in said and "epoch" in said
    assert f"the last good state is {folder}/000001" in said
    assert not (tmp_path / "v.bin").exists()
    assert np.isfinite(Checkpoint.load(folder / "000001")._table("context.npy", (43, 16))).all()


def test_a_number_that_nobody_meets_is_found_within_the_epoch(monkeypatch):
    """The threads look at losses of words that they meet; the poll at all rows in turn."""
    monkeypatch.setattr(training_module, "POLL_SECONDS", 0.01)
    ids, counts = lines([20] * 40_000)
    counts = np.append(counts, 1)
    run = Training(
        ids, counts, options_of({"noise_power": 2.0, "negative": 20}, dim=300, window=10)
    )
    run.output[-1, 7] = np.inf
    run.output[-1, 8] = 0
    with pytest.raises(DivergedError, match=r"a vector is not finite; --objective ns, --lr"):
        run.epoch(0)
    assert run.progress().done < len(ids) / 2
    assert threading.active_count() == 1


def test_vectors_that_cannot_be_written_are_kept(tmp_path, corpus, capsys, monkeypatch):
    folder = tmp_path / "k"
    gone = tmp_path / "gone"
    gone.mkdir()
    end = keeping.Keeper.end_epoch

    def vanish(keeper):
        end(keeper)
        shutil.rmtree(gone, ignore_errors=True)

    monkeypatch.setattr(keeping.Keeper, "end_epoch", vanish)
    assert train(corpus, gone / "v.bin", "--checkpoint", str(folder), "--quiet") == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cannot be written" in said and f"--resume {folder}" in said
    straight = tmp_path / "a.bin"
    assert train(corpus, straight) == 0
    assert train(corpus, tmp_path / "v.bin", "--resume", str(folder)) == 0
    assert (tmp_path / "v.bin").read_bytes() == straight.read_bytes()
    gone.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert train(corpus, gone / "v.bin", "--quiet") == 1
    said = capsys.readouterr().err
    rescued = said.rpartition("they are in ")[2].strip()
    assert Path(rescued).read_bytes() == straight.read_bytes()
