"""Checkpoints restore the whole state, and invalid checkpoints are errors."""

import dataclasses
import json
from unittest.mock import Mock

import numpy as np
import pytest
from data import lines
from helpers import OBJECTIVES, edit, options_of, rewrite

from dcme_w2v.errors import FormatError, ResourceError, UsageError
from dcme_w2v.formats.artifact import read_artifact
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.training.checkpoint_folder import (
    Checkpoint,
    CheckpointFolder,
    Position,
    record_of,
)
from dcme_w2v.training.run import TrainingRun, _restored
from dcme_w2v.training.trainer import Fingerprint
from dcme_w2v.words.trainer import Trainer

FINGERPRINT = Fingerprint({"ids": "a"}, "1 token")
TABLES = ("vectors", "context", "state")


class Words(TrainingRun):
    """Word vectors with the words w0, w1 …"""

    kind, unit = "words", "words"

    def __init__(self, training):
        super().__init__(training, dataclasses.asdict(training.options), 0)

    def fingerprint(self):
        return FINGERPRINT

    def current_model(self):
        return self.trainer

    def save_partial(self):
        return None


def saved(folder, training, epoch):
    """Save a training and read the generation again."""
    task = Words(training)
    record = record_of(
        task.kind, task.settings, FINGERPRINT, Position(epoch), kernels=task.trainer.kernels,
        training=task.trainer.record(), notes=task.notes(),
    )  # fmt: skip
    return Checkpoint.load(folder.save(record, task.tables(), task.trainer.state()))


def restored(found, training):
    """Put a checkpoint into a training."""
    return _restored(Words(training), found)


# ---- the state itself ----


@pytest.mark.bits
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


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path, monkeypatch):
    refused = Mock(side_effect=OSError(30, "Read-only file system"))
    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    with pytest.raises(ResourceError, match="cannot be written: Read-only file system; choose"):
        CheckpointFolder(str(tmp_path / "k"), resuming=False)


def test_a_failed_checkpoint_keeps_the_previous_ones(kept, monkeypatch):
    training, folder, _ = kept
    saved(folder, training, 1)
    full = Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(
        ResourceError,
        match=r"left on device; free disk space for the checkpoint, which requires .* MB",
    ):
        saved(folder, training, 2)
    assert [one.name for one in folder.generations()] == ["000001.safetensors"]
    Checkpoint.load(folder.generations()[0])


@pytest.mark.parametrize("name", TABLES)
def test_a_changed_byte_is_found(kept, name):
    training, folder, _ = kept
    path = saved(folder, training, 1).path
    array = read_artifact(path)[1][name].copy()
    array.reshape(-1).view(np.uint8)[9] ^= 255
    edit(path, {name: array})
    with pytest.raises(
        FormatError, match="is corrupt, because its checksum does not match; remove this"
    ):
        Checkpoint.load(path)


EDITS = {
    "another version": {"version": 3},
    "no data": {"data": None},
    "epoch after the last": {"position": {"epoch": 99, "seconds": 1, "epoch_seconds": 1}},
    "no number": {"training": {"loss": float("nan"), "losses": 0, "state": [1]}},
    "no checksum": {"checksum": None},
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_record_is_refused(kept, name):
    training, folder, _ = kept
    path = saved(folder, training, 1).path
    record, arrays = read_artifact(path)
    text = json.dumps({**record, **EDITS[name]}).replace("Infinity", "1e999")
    rewrite(path, text, arrays)
    with pytest.raises(FormatError):
        restored(Checkpoint.load(path), training)


def test_pieces_of_the_state_in_another_order_are_refused(kept):
    training, folder, _ = kept
    found = saved(folder, training, 1)
    state = found.record["training"]["state"]
    first, second = next(
        (i, i + 1) for i in range(len(state) - 1)
        if state[i][1] == state[i + 1][1] and state[i] != state[i + 1]
    )  # fmt: skip
    state[first], state[second] = state[second], state[first]
    with pytest.raises(FormatError, match="does not match this run"):
        restored(found, training)
    found = saved(folder, training, 1)
    found.record["position"]["epoch"] = 99
    with pytest.raises(FormatError, match="there is no epoch 99"):
        restored(found, training)


def test_a_table_that_is_not_finite_is_refused(kept):
    training, folder, _ = kept
    training.output[0, 0] = np.inf
    with pytest.raises(FormatError, match="context: has a number that is NaN or infinite"):
        restored(saved(folder, training, 1), training)


def test_a_table_of_another_shape_is_rejected(kept):
    training, folder, text = kept
    found = saved(folder, training, 1)
    with pytest.raises(FormatError, match="vectors: is float32"):
        restored(found, Trainer(*text, options_of({}, dim=9)))
    with pytest.raises(FormatError, match="state: does not match this run"):
        restored(found, Trainer(*text, options_of({"objective": "dcme"})))


def test_checkpoint_every():
    for every, expected in {"10": (10, None), "1.5m": (None, 90), "2h": (None, 7200)}.items():
        found = CheckpointOptions(checkpoint_every=every)
        assert (found.every_epochs, found.every_seconds) == expected
    for every in ("0", "-1", "1.5", "m", "1d", "1e3", "10 m", "", "९m"):
        with pytest.raises(UsageError, match="checkpoint_every="):
            CheckpointOptions(checkpoint_every=every)
