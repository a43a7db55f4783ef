"""The epoch loop of every training: progress, signals, checkpoints, held-out scores, divergence."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager

from dcme_w2v.errors import DivergedError, ResourceError

from .checkpoint_schedule import Checkpointer
from .interrupts import Interrupted, ReceivedSignal
from .progress import Reporter
from .trainer import Progress
from .training_run import TrainingRun


@contextlib.contextmanager
def interruptible(
    run: TrainingRun, signals: AbstractContextManager[ReceivedSignal] | None = None
) -> Iterator[ReceivedSignal]:
    """Open `signals`; a KeyboardInterrupt in the block has the result so far as `partial`.

    Without `signals`, no handler is installed and no signal recorded.
    """
    with signals or contextlib.nullcontext(ReceivedSignal()) as received:
        try:
            yield received
        except KeyboardInterrupt as error:
            error.partial = run.current_model()  # type: ignore[attr-defined]
            raise


def run_epochs(
    run: TrainingRun, checkpointer: Checkpointer, reporter: Reporter, received: ReceivedSignal
) -> Progress:
    """Train all remaining epochs and return the final progress.

    Parameters
    ----------
    run : TrainingRun
        The training.
    checkpointer : Checkpointer
        Has the next epoch, and writes checkpoints.
    reporter : Reporter
        Receives the progress and the figures of every epoch.
    received : ReceivedSignal
        When it has a signal, the run is saved and ends.

    Raises
    ------
    Interrupted
        A signal arrived; the message names the checkpoint or the partial result.
    DivergedError
        A parameter is NaN or infinite; the message names the last checkpoint.
    """
    trainer, position = run.trainer, checkpointer.position
    reporter.stage("training", run.total, run.unit, run.options)

    def watch(progress: Progress) -> bool:
        reporter.advance(run.done(progress), loss=progress.loss, lr=progress.lr)
        return received.number is not None or checkpointer.is_time()

    def is_over() -> bool:
        return position.epoch >= trainer.epochs or (trainer.unfinished is None and run.is_over())

    progress = trainer.progress()
    while not is_over():
        try:
            with checkpointer.timing():
                progress = trainer.epoch(position.epoch, watch)
            if trainer.unfinished is None:
                figures = {"loss": progress.loss, "lr": progress.lr, **run.scores()}
                seconds = round(position.epoch_seconds, 3)
                record = {"epoch": position.epoch + 1, "seconds": seconds, **figures}
                run.end_epoch(record)
                reporter.epoch(record)
                checkpointer.end_epoch()
            if received.number is not None and not is_over():
                raise interrupted(run, checkpointer, received)
            checkpointer.save_if_due()
        except DivergedError as error:
            raise DivergedError(f"{error.message}{checkpointer.last_state()}") from error
    return progress


def interrupted(
    run: TrainingRun, checkpointer: Checkpointer, received: ReceivedSignal
) -> Interrupted:
    """Write a checkpoint after a signal, or else the result so far, and return the error."""
    assert received.number is not None
    message = f"stopped by {received.name} in epoch {checkpointer.position.epoch + 1}: "
    try:
        if (saved := checkpointer.save()) is not None:
            message += f"checkpoint {saved}; resume with --resume={saved.parent}"
            return Interrupted(message, received.number)
    except ResourceError as error:
        message += f"{error.message}; "
    try:
        message += run.save_partial() or "nothing was saved"
    except ResourceError as error:
        message += error.message
    return Interrupted(message, received.number)
