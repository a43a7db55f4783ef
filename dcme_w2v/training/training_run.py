"""The interface between the run engine and a training in epochs, of words or of classes."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dcme_w2v.numeric.arrays import F32, Array

from .trainer import Progress, Trainer

HASHED_AT_ONCE = 8 << 20  # numbers


@dataclass(frozen=True)
class Fingerprint:
    """Identifies the data of a run.

    Attributes
    ----------
    hashes : dict of str
        SHA-256 by name; a resumed run must have the same.
    described : str
        The data, for messages: "1,234 tokens and 99 words of corpus.txt".
    """

    hashes: Mapping[str, str]
    described: str


def hash_of(arrays: Iterable[Array]) -> str:
    """Return the SHA-256 of the bytes of arrays, which may be memory-mapped."""
    found = hashlib.sha256()
    for array in arrays:
        for first in range(0, len(array), HASHED_AT_ONCE):
            found.update(np.ascontiguousarray(array[first : first + HASHED_AT_ONCE]).data)
    return found.hexdigest()


class TrainingRun(ABC):
    """A training with its data and results, for the epoch loop of `dcme_w2v.training.run`.

    Parameters
    ----------
    trainer : Trainer
    options : mapping
        All options as used, by name; a resumed run must have the same.

    Attributes
    ----------
    kind : str
        The kind of checkpoint, also used in messages: "words".
    unit : str
        Unit of the progress: "words".
    total : int
        Number of units over all epochs.
    free : collection of str
        Options that a resumed run may change.
    """

    kind: ClassVar[str]
    unit: ClassVar[str]

    def __init__(self, trainer: Trainer, options: Mapping[str, Any], total: int) -> None:
        self.trainer, self.options, self.total = trainer, options, total
        self.free: Collection[str] = ()

    @abstractmethod
    def fingerprint(self) -> Fingerprint:
        """Return the fingerprint of the data."""

    def done(self, progress: Progress) -> int:
        """Return how many units are done."""
        return progress.done

    def scores(self) -> dict[str, Any]:
        """Return the held-out scores after an epoch, by name."""
        return {}

    def end_epoch(self, record: Mapping[str, Any]) -> None:  # noqa: B027
        """Receive the figures of an epoch: `scores` and others."""

    def is_over(self) -> bool:
        """Return whether training should stop before the last epoch."""
        return False

    # ---- checkpoints ----

    def tables(self) -> Mapping[str, F32]:
        """Return the tables of a checkpoint by name, as views that a resume writes to."""
        return self.trainer.tables

    def texts(self) -> Mapping[str, Any]:
        """Return further files of a checkpoint: their bytes by name."""
        return {}

    def notes(self) -> dict[str, Any]:
        """Return further values, to be stored as JSON, that a resumed run requires."""
        return {}

    def take_notes(self, notes: Mapping[str, Any]) -> None:  # noqa: B027
        """Restore the notes of a checkpoint; raises any exception if they are corrupt."""

    def start_hint(self, checkpoint: Path) -> str:
        """Return the end of a message: another use of a checkpoint of a run that diverged."""
        return ""

    # ---- interruption ----

    @abstractmethod
    def current_model(self) -> object:
        """Return the result so far, for the `partial` of a KeyboardInterrupt."""

    @abstractmethod
    def save_partial(self) -> str | None:
        """Save the result so far beside the output and return a message; None if there is none."""
