"""Checkpoints restore the whole state, and invalid checkpoints are errors."""

import dataclasses
import json
import zlib
from unittest.mock import Mock

import numpy as np
import pytest
from helpers import OBJECTIVES, options_of
from texts import lines

from dcme_w2v.errors import FormatError, ResourceError, UsageError
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.training.checkpoint_folder import (
    RECORD,
    Checkpoint,
    CheckpointFolder,
    Position,
    record_of,
)
from dcme_w2v.training.trainer import Fingerprint, TrainingRun
from dcme_w2v.words.trainer import Trainer

FINGERPRINT = Fingerprint({"ids": "a"}, "1 token")
SIZE = {"bytes": 5, "crc32": 1}
FILES = ("vectors.npy", "vectors.vocab", "context.npy", "state.bin")


class Words(TrainingRun):
    """Word vectors with the words w0, w1 …"""

    kind, unit = "words", "words"

    def __init__(self, training):
        super().__init__(training, dataclasses.asdict(training.options), 0)

    def fingerprint(self):
        return FINGERPRINT

    def texts(self):
        words = "".join(f"w{i} 600\n" for i in range(len(self.trainer.input)))
        return {"vectors.vocab": words.encode()}

    def current_model(self):
        return self.trainer

    def save_partial(self):
        return None


def saved(folder, training, epoch):
    """Save a training and read the generation again."""
    task = Words(training)
    record = record_of(
        task.kind, task.options, FINGERPRINT, Position(epoch), kernels=task.trainer.kernels,
        training=task.trainer.record(), notes=task.notes(),
    )  # fmt: skip
    return Checkpoint.load(folder.save(record, task.tables(), task.texts(), task.trainer.state()))


def restored(found, training):
    """Put a checkpoint into a training."""
    return found.restore(Words(training))


# ---- the state itself ----


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_deterministic_is_the_same_for_any_threads(objective):
    text = lines([20] * 300)
    tables = set()
    for threads, deterministic in [(1, False), (1, True), (2, True), (7, True)]:
        run = Trainer(*text, options_of(objective, threads=threads, deterministic=deterministic))
        run.epoch(0)
        tables.add(run.input.tobytes() + run.output.tobytes())
    assert len(tables) == 1


# ---- the folder ----


@pytest.fixture
def kept(tmp_path):
    """Return a training, its folder of checkpoints and the text."""
    text = lines([20] * 30)
    training = Trainer(*text, options_of({}))
    training.epoch(0)
    folder = CheckpointFolder(str(tmp_path / "k"), resuming=False)
    yield training, folder, text
    folder.close()


def test_two_runs_cannot_use_one_folder(kept):
    _, folder, _ = kept
    with pytest.raises(UsageError, match="is in use by another run"):
        CheckpointFolder(str(folder.path), resuming=True)


def test_a_failed_checkpoint_keeps_the_previous_ones(kept, monkeypatch):
    training, folder, _ = kept
    saved(folder, training, 1)
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResourceError, match=r"No space left on device; it requires .* MB"):
        saved(folder, training, 2)
    assert [one.name for one in folder.path.iterdir()] == ["000001"]
    Checkpoint.load(folder.generations()[0])


@pytest.mark.parametrize("name", [*FILES, RECORD])
@pytest.mark.parametrize("damage", ["missing", "empty", "short", "changed"])
def test_a_damaged_file_is_named(kept, name, damage):
    training, folder, _ = kept
    path = saved(folder, training, 1).folder / name
    data = path.read_bytes()
    path.unlink()
    if damage != "missing":
        changed = data[:9] + bytes([data[9] ^ 255]) + data[10:]
        path.write_bytes({"empty": b"", "short": data[:-2], "changed": changed}[damage])
    with pytest.raises(FormatError, match=name) as caught:
        Checkpoint.load(folder.generations()[0])
    assert "\n" not in str(caught.value)


EDITS = {
    "the format before": {"format": 1},
    "no data": {"data": None},
    "true is no number": {"position": {"epoch": True, "seconds": 1, "epoch_seconds": 1}},
    "epoch after the last": {"position": {"epoch": 99, "seconds": 1, "epoch_seconds": 1}},
    "other parts": {"training": {"loss": 0, "losses": 0, "state": [1, 2, 3]}},
    "no number": {"training": {"loss": float("nan"), "losses": 0, "state": [1]}},
    "infinite time": {"position": {"epoch": 1, "seconds": float("1e999"), "epoch_seconds": 1}},
    "path outside": {"files": {"state.bin": SIZE, "../../x": SIZE}},
    "no tables": {"files": {"state.bin": SIZE}},
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_record_is_refused(kept, edit):
    training, folder, _ = kept
    path = saved(folder, training, 1).folder / RECORD
    path.write_text(
        json.dumps({**json.loads(path.read_text()), **EDITS[edit]}).replace("Infinity", "1e999")
    )
    with pytest.raises(FormatError):
        restored(Checkpoint.load(path.parent), training)


def test_pieces_of_the_state_in_another_order_are_refused(kept):
    training, folder, _ = kept
    path = saved(folder, training, 1).folder / RECORD
    record = json.loads(path.read_text())
    state = record["training"]["state"]
    first, second = next(
        (i, i + 1) for i in range(len(state) - 1)
        if state[i][1] == state[i + 1][1] and state[i] != state[i + 1]
    )  # fmt: skip
    state[first], state[second] = state[second], state[first]
    path.write_text(json.dumps(record))
    with pytest.raises(FormatError, match="does not match this run"):
        restored(Checkpoint.load(path.parent), training)


def test_a_table_that_is_not_finite_is_refused(kept):
    training, folder, _ = kept
    path = saved(folder, training, 1).folder
    table = np.load(path / "context.npy")
    table[0, 0] = np.inf
    np.save(path / "context.npy", table)
    data = (path / "context.npy").read_bytes()
    record = json.loads((path / RECORD).read_text())
    record["files"]["context.npy"] = {"bytes": len(data), "crc32": zlib.crc32(data)}
    (path / RECORD).write_text(json.dumps(record))
    with pytest.raises(FormatError, match=r"context.npy: has a number that is NaN or infinite"):
        restored(Checkpoint.load(path), training)


def test_a_table_of_another_shape_is_rejected(kept):
    training, folder, text = kept
    found = saved(folder, training, 1)
    with pytest.raises(FormatError, match=r"vectors\.npy: is float32"):
        restored(found, Trainer(*text, options_of({}, dim=9)))
    with pytest.raises(FormatError, match=r"state\.bin: does not match this run"):
        restored(found, Trainer(*text, options_of({"objective": "dcme"})))


def test_checkpoint_every():
    for every, expected in {"10": (10, None), "1.5m": (None, 90), "2h": (None, 7200)}.items():
        found = CheckpointOptions(checkpoint_every=every)
        assert (found.epochs, found.seconds) == expected
    for every in ("0", "-1", "1.5", "m", "1d", "1e3", "10 m", "", "९m"):
        with pytest.raises(UsageError, match="checkpoint_every="):
            CheckpointOptions(checkpoint_every=every)
