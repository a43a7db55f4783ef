"""When a run's state is saved, and what is said about it; called by `dcme_w2v.engine.run`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from dcme_w2v.checkpoints.folder import Checkpoint, CheckpointFolder, Position, record_of
from dcme_w2v.engine.task import Task
from dcme_w2v.errors import ResourceError
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.progress import Reporter


class Checkpointer:
    """Knows how far a run is, and saves its state when that is due.

    Parameters
    ----------
    task : Task
        What is trained.
    reporter : Reporter
        Hears what is saved, and what cannot be.
    folder : CheckpointFolder, optional
        Where checkpoints go; None for a run that keeps none.
    options : CheckpointOptions, optional
        How often; None for a caller who has no such option.
    found : Checkpoint, optional
        To resume from.

    Attributes
    ----------
    position : Position
    latest : Path or None
        The last checkpoint of this run, or the one that it was resumed from.

    Raises
    ------
    UsageError
        `found` is of other options or other data.
    """

    def __init__(
        self,
        task: Task,
        reporter: Reporter,
        folder: CheckpointFolder | None = None,
        options: CheckpointOptions | None = None,
        found: Checkpoint | None = None,
    ) -> None:
        self.folder = folder
        self.position = Position()
        self.latest: Path | None = None
        self._task, self._reporter, self._options = task, reporter, options
        self._fingerprint = task.fingerprint() if folder or found else None
        if found is not None:
            self._resume(found)
        self._saved = time.monotonic()

    def _resume(self, found: Checkpoint) -> None:
        """Put a checkpoint's state into the training, if it is of the same data."""
        task, training = self._task, self._task.trainer
        assert self._fingerprint is not None
        found.check_options(task.options, task.free)
        found.check_data(self._fingerprint)
        self.position = found.restore(task)
        self.latest = found.folder
        ended = self.position.epoch >= training.epochs or (
            training.unfinished is None and task.is_over()
        )
        place = "where all is trained" if ended else f"in epoch {self.position.epoch + 1}"
        self._reporter.message(f"going on from {found.folder}, {place}")
        if found.record["kernels"] != training.kernels:
            self._reporter.message(
                f"warning: {found.folder} was trained with {found.record['kernels']} kernels and "
                f"this machine uses {training.kernels}: the last digits will differ"
            )

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        """Count the seconds of training, and the epoch when it is over."""
        start = time.monotonic()
        yield
        seconds = time.monotonic() - start
        self.position.seconds += seconds
        self.position.epoch_seconds += seconds

    def end_epoch(self) -> None:
        """Hear that an epoch is over."""
        self.position.epoch += 1
        self.position.epoch_seconds = 0.0

    def is_time(self) -> bool:
        """Tell whether the last checkpoint is so long ago that training should stop for one."""
        if self.folder is None or self._options is None or self._options.seconds is None:
            return False
        return time.monotonic() - self._saved >= self._options.seconds

    def save_if_due(self) -> None:
        """Save the state where time or the end of an epoch asks for it.

        A checkpoint that cannot be written does not end the run; the one before is still there.
        """
        between = self._task.trainer.unfinished is None
        epochs = self._options.epochs if self._options else None
        by_epochs = epochs is not None and self.position.epoch % epochs == 0
        if self.is_time() or (self.folder is not None and between and by_epochs):
            try:
                self.save()
            except ResourceError as error:
                self._saved = time.monotonic()
                self._reporter.message(f"warning: {error.message}; training goes on")

    def save(self) -> Path | None:
        """Save the state now and return where; None where no checkpoints are kept.

        Raises
        ------
        ResourceError
            It cannot be written.
        DivergedError
            It is not worth keeping.
        """
        if self.folder is None:
            return None
        assert self._fingerprint is not None
        self._task.trainer.check_finite()
        record = record_of(self._task, self._fingerprint, self.position)
        self.latest = self.folder.save(record, self._task)
        self._saved = time.monotonic()
        return self.latest

    def last_state(self) -> str:
        """Return where the last good state is, to be added to an error."""
        if self._options is None:
            return ""
        if self.latest is None:
            return "; no state was kept, --checkpoint=FOLDER would"
        return f"; the last good state is {self.latest}{self._task.start_hint(self.latest)}"
