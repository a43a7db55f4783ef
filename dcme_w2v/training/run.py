"""The epoch loop of all kinds of training, with signals, checkpoints and held-out scores."""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

from dcme_w2v.errors import ClusterError, DcmeError, DivergedError, Interrupted, ResourceError
from dcme_w2v.numeric.arrays import F32, Array
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.platform import ReceivedSignal

from .checkpoint_folder import STATE, Checkpoint, CheckpointFolder, Position, advising, record_of
from .progress import Reporter
from .trainer import Fingerprint, Progress, Trainer


class TrainingRun(ABC):
    """Base class of training runs, which provides `run_epochs` with a trainer and its data.

    Parameters
    ----------
    trainer : Trainer
    settings : mapping
        All options as used, by name; a resumed run must have the same options.

    Attributes
    ----------
    kind : str
        The kind of checkpoint, also used in messages, such as "words".
    unit, step : str
        Unit of progress, such as "words"; name of an epoch in messages.
    total : int
        Number of units over all epochs.
    free : collection of str
        Options that a resumed run may change.
    position : Position
        The current epoch and time; `run_epochs` advances it.
    """

    kind: ClassVar[str]
    unit: ClassVar[str]
    step: ClassVar[str] = "epoch"

    def __init__(self, trainer: Trainer, settings: Mapping[str, Any], total: int) -> None:
        self.trainer, self.settings, self.total = trainer, settings, total
        self.free: Collection[str] = ()
        self.position = Position()

    @abstractmethod
    def fingerprint(self) -> Fingerprint:
        """Return hashes that identify the training data."""

    def done(self, progress: Progress) -> int:
        """Return the number of units, such as words, that have been processed."""
        return progress.done

    def scores(self) -> dict[str, Any]:
        """Return the scores of held-out data after an epoch, by name."""
        return {}

    def end_epoch(self, record: Mapping[str, Any]) -> None:  # noqa: B027
        """Store the measures of an epoch, including the scores that `scores` returned."""

    def is_over(self) -> bool:
        """Return whether training should end before its last epoch."""
        return False

    # ---- checkpoints ----

    def tables(self) -> Mapping[str, F32]:
        """Return views of the tables, which checkpoints contain and a resumed run fills."""
        return self.trainer.tables

    def arrays(self) -> Mapping[str, Array]:
        """Return arrays to save in each checkpoint that a resumed run does not read."""
        return {}

    def notes(self) -> dict[str, Any]:
        """Return additional JSON values to store in checkpoints, which a resumed run needs."""
        return {}

    def take_notes(self, notes: Mapping[str, Any]) -> None:  # noqa: B027
        """Restore the values that `notes` returned; raise an exception if they are invalid."""

    def start_hint(self, checkpoint: Path) -> str:
        """Return advice on how to start a new run from the last checkpoint of a diverged run."""
        return ""

    # ---- interruption ----

    @abstractmethod
    def current_model(self) -> object:
        """Return the current model, which a KeyboardInterrupt stores in its `partial`."""

    @abstractmethod
    def save_partial(self) -> str | None:
        """Save the current model next to the output; return a message if a file was written."""


class Checkpointer:
    """Write a run's checkpoints, and resume the run from one of them.

    Parameters
    ----------
    run : TrainingRun
        The training.
    reporter : Reporter
        Receives messages about checkpoints.
    folder : CheckpointFolder
        The checkpoint folder.
    options : CheckpointOptions
        The intervals.
    found : Checkpoint, optional
        The checkpoint to resume from.

    Attributes
    ----------
    latest : Path or None
        The last checkpoint of this run, or the one it resumed from.

    Raises
    ------
    UsageError
        `found` has other options or other data.
    """

    def __init__(
        self,
        run: TrainingRun,
        reporter: Reporter,
        folder: CheckpointFolder,
        options: CheckpointOptions,
        found: Checkpoint | None = None,
    ) -> None:
        self.folder = folder
        self.latest: Path | None = None
        self._run, self._reporter, self._options = run, reporter, options
        self._saved_epoch: int | None = None  # epoch at which the latest checkpoint was written
        self._fingerprint = run.fingerprint()
        if found is not None:
            self._resume(found)
        self._saved = time.monotonic()

    def _resume(self, found: Checkpoint) -> None:
        """Load a checkpoint into the run; raise an error if the options or data differ."""
        run, training = self._run, self._run.trainer
        found.check_options(run.settings, run.free)
        found.check_data(self._fingerprint)
        run.position = _restored(run, found)
        self.latest, self._saved_epoch = found.path, run.position.epoch
        place = (
            "training is complete" if is_over(run) else f"in {run.step} {run.position.epoch + 1}"
        )
        self._reporter.message(f"resuming from {found.path}, {place}")
        if found.record["kernels"] != training.kernels:
            self._reporter.message(
                f"warning: {found.path} was trained with {found.record['kernels']} kernels, but "
                f"this machine uses {training.kernels} kernels; results can differ in the last "
                "digits"
            )

    def is_time(self) -> bool:
        """Return whether the interval in seconds has passed since the last checkpoint."""
        seconds = self._options.every_seconds
        return seconds is not None and time.monotonic() - self._saved >= seconds

    def save_if_due(self) -> None:
        """Write a checkpoint if the checkpoint interval, in seconds or epochs, has passed.

        If this fails, the run continues, and the previous checkpoint is unchanged.
        """
        epochs, run = self._options.every_epochs, self._run
        by_epochs = epochs is not None and run.position.epoch % epochs == 0
        if self.is_time() or (by_epochs and run.trainer.unfinished is None):
            try:
                self.save()
            except ResourceError as error:
                self._saved = time.monotonic()
                self._reporter.message(f"warning: {error.message}; training continues")

    def save(self) -> Path:
        """Write a checkpoint now and return its path.

        Raises
        ------
        ResourceError
            The checkpoint cannot be written.
        DivergedError
            A parameter is NaN or infinite.
        """
        run = self._run
        run.trainer.check_finite()
        record = record_of(
            run.kind, run.settings, self._fingerprint, run.position,
            kernels=run.trainer.kernels, training=run.trainer.record(), notes=run.notes(),
        )  # fmt: skip
        self.latest = self.folder.save(
            record, {**run.tables(), **run.arrays()}, run.trainer.state()
        )
        self._saved, self._saved_epoch = time.monotonic(), run.position.epoch
        return self.latest

    def save_end(self) -> None:
        """Write the final checkpoint, because writing results can overwrite the run's tables."""
        if self._saved_epoch != self._run.position.epoch:
            try:
                self.save()
            except ResourceError as error:
                self._reporter.message(f"warning: {error.message}")

    def where_saved(self) -> str | None:
        """Return advice on writing unsaved results from the last checkpoint, if there is one."""
        if self.latest is None or self._saved_epoch != self._run.position.epoch:
            return None
        return (
            f"nothing is lost; free some disk space, and resume with --resume={self.latest.parent}"
        )

    def with_last_state(self, error: DcmeError) -> DcmeError:
        """Return an error of the same type whose message also names the last checkpoint."""
        if self.latest is None:
            said = "no checkpoint was written"
        elif isinstance(error, DivergedError):
            said = f"the last checkpoint is {self.latest}{self._run.start_hint(self.latest)}"
        else:
            said = (
                f"the last checkpoint is {self.latest}; resume with --resume={self.latest.parent}"
            )
        return type(error)(f"{error.message}; {said}")


@contextlib.contextmanager
def interruptible(
    run: TrainingRun, signals: AbstractContextManager[ReceivedSignal] | None
) -> Iterator[ReceivedSignal]:
    """Run a ``with`` block under `signals`; add the current model to any KeyboardInterrupt.

    Without `signals`, no handler is installed and no signal is recorded.
    """
    with signals or contextlib.nullcontext(ReceivedSignal()) as received:
        try:
            yield received
        except KeyboardInterrupt as error:
            error.partial = run.current_model()  # type: ignore[attr-defined]
            raise


def _restored(run: TrainingRun, found: Checkpoint) -> Position:
    """Load a checkpoint into a run with the same options and data; return the run's position."""
    training, record = run.trainer, found.record
    with advising():
        for name, table in run.tables().items():
            table[:] = found.table(name, table.shape)
        state = found.model.array(STATE, "uint8", None)
        position = Position(**record["position"])
        try:
            training.restore(state, record["training"])
            run.take_notes(record["notes"])
            if position.epoch > training.epochs:
                raise ValueError(f"there is no epoch {position.epoch}")
        except Exception as error:
            raise found.model.fault(STATE, f"does not match this run: {error}") from error
    return position


def is_over(run: TrainingRun) -> bool:
    """Return whether all epochs have been trained or the run should end early."""
    is_between = run.trainer.unfinished is None
    return run.position.epoch >= run.trainer.epochs or (is_between and run.is_over())


def run_epochs(
    run: TrainingRun,
    reporter: Reporter,
    received: ReceivedSignal,
    checkpoints: Checkpointer | None = None,
) -> Progress:
    """Train the remaining epochs of a run, and return the final progress.

    Parameters
    ----------
    run : TrainingRun
        The training.
    reporter : Reporter
        Receives the progress and the measures of every epoch.
    received : ReceivedSignal
        When it records a signal, the run is saved and stops.
    checkpoints : Checkpointer, optional
        Writes checkpoints.

    Raises
    ------
    Interrupted
        A signal arrived; the message names the checkpoint or the partial result.
    DivergedError, ClusterError
        A parameter is NaN or infinite, or workers are lost; the message names the last checkpoint.
    """
    trainer, position = run.trainer, run.position
    reporter.stage("training", run.total, run.unit, run.settings)
    saves_within = checkpoints is not None and trainer.stops_within

    def watch(progress: Progress) -> bool:
        reporter.advance(run.done(progress), loss=progress.loss, lr=progress.lr)
        is_due = saves_within and checkpoints is not None and checkpoints.is_time()
        return received.number is not None or is_due

    progress = trainer.progress()
    while not is_over(run):
        try:
            start = time.monotonic()
            progress = trainer.epoch(position.epoch, watch)
            taken = time.monotonic() - start
            position.seconds += taken
            position.epoch_seconds += taken
            if trainer.unfinished is None:
                figures = {"loss": progress.loss, "lr": progress.lr, **run.scores()}
                seconds = round(position.epoch_seconds, 3)
                record = {run.step: position.epoch + 1, "seconds": seconds, **figures}
                run.end_epoch(record)
                reporter.epoch(record)
                position.epoch, position.epoch_seconds = position.epoch + 1, 0.0
            if received.number is not None and not is_over(run):
                raise interrupted(run, received, checkpoints)
            if checkpoints is not None:
                checkpoints.save_if_due()
        except (DivergedError, ClusterError) as error:
            raise (checkpoints.with_last_state(error) if checkpoints else error) from error
    return progress


def interrupted(
    run: TrainingRun, received: ReceivedSignal, checkpoints: Checkpointer | None
) -> Interrupted:
    """Save a checkpoint or else the current model after a signal; return the error to raise."""
    assert received.number is not None
    message = f"stopped by {received.name} in {run.step} {run.position.epoch + 1}: "
    try:
        if checkpoints is not None:
            saved = checkpoints.save()
            message += f"checkpoint {saved}; resume with --resume={saved.parent}"
            return Interrupted(message, received.number)
    except ResourceError as error:
        message += f"{error.message}; "
    try:
        message += run.save_partial() or "nothing was saved"
    except ResourceError as error:
        message += error.message
    return Interrupted(message, received.number)
