"""What a system brings to the run engine: words, classes and whatever is trained in epochs."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.engine.trainer import Progress, Trainer

HASHED_AT_ONCE = 8 << 20  # numbers


@dataclass(frozen=True)
class Fingerprint:
    """What distinguishes the data of one run from that of another.

    Attributes
    ----------
    hashes : dict of str
        SHA-256 by name of what has to be the same.
    described : str
        The data in words, for messages: "1,234 tokens and 99 words of corpus.txt".
    """

    hashes: Mapping[str, str]
    described: str


def hash_of(arrays: Iterable[NDArray[Any]]) -> str:
    """Return the SHA-256 of the bytes of arrays, which may be mapped files."""
    found = hashlib.sha256()
    for array in arrays:
        for first in range(0, len(array), HASHED_AT_ONCE):
            found.update(np.ascontiguousarray(array[first : first + HASHED_AT_ONCE]).data)
    return found.hexdigest()


class Task(ABC):
    """One training with its data and its results; called by `dcme_w2v.engine.run`.

    Parameters
    ----------
    trainer : Trainer
    options : mapping
        All options as used, by name: those that a resumed run must have, too.

    Attributes
    ----------
    kind : str
        The kind of checkpoints, and what messages call the training: "words".
    unit : str
        What the progress is counted in: "words".
    total : int
        How much there is of it over all epochs.
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
        """Return what distinguishes the data."""

    def done(self, progress: Progress) -> int:
        """Return a progress in units."""
        return progress.done

    def scores(self) -> dict[str, Any]:
        """Return the held-out scores of an epoch that has ended, by name."""
        return {}

    def end_epoch(self, record: Mapping[str, Any]) -> None:  # noqa: B027
        """Hear an epoch's figures, from `scores` and others."""

    def is_over(self) -> bool:
        """Return whether training should stop before the last epoch."""
        return False

    # ---- checkpoints ----

    def tables(self) -> Mapping[str, NDArray[np.float32]]:
        """Return the tables that a checkpoint has, by name, as views that are written on resume."""
        return self.trainer.tables

    def texts(self) -> Mapping[str, Any]:
        """Return files that a checkpoint has beside, by name: bytes for people and programs."""
        return {}

    def notes(self) -> dict[str, Any]:
        """Return what else a resumed run needs, in terms of JSON."""
        return {}

    def take_notes(self, notes: Mapping[str, Any]) -> None:  # noqa: B027
        """Put the notes of a checkpoint back; any exception says that they are damaged."""

    def start_hint(self, checkpoint: Path) -> str:
        """Return what else a checkpoint is good for, after a run that diverged."""
        return ""

    # ---- interruption ----

    @abstractmethod
    def partial(self) -> object:
        """Return the result so far, for the `partial` of a KeyboardInterrupt."""

    @abstractmethod
    def save_partial(self) -> str | None:
        """Save the result so far beside the output and say where; None if that is impossible."""
