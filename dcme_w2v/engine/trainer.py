"""One training run seen from Python: its epochs, its progress, its state; see csrc/engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core.engine import Run
from dcme_w2v.errors import DivergedError, FormatError

POLL_SECONDS = 0.2
LOOKED_AT_ONCE = 256 << 20  # bytes of the tables at most, between two polls
POLLS_A_ROUND = 4  # so that all of tables that are not large is looked at within a second


class Options(Protocol):
    """What the engine reads of a training's options, which are resolved."""

    @property
    def objective(self) -> str:
        """Name of the objective."""

    @property
    def lr(self) -> float | None:
        """Initial learning rate."""

    @property
    def epochs(self) -> int | None:
        """How many epochs there are."""


@dataclass(frozen=True)
class Progress:
    """What a run has done so far, over all epochs.

    Attributes
    ----------
    trained, subsampled, without_context : int
        Tokens that were targets, dropped because they are frequent, or alone in their sentence. Of
        documents: the instances learned, one for each label; the other two are 0.
    loss : float
        Mean loss of an instance since the current epoch began.
    lr : float
        The learning rate in use.
    """

    trained: int
    subsampled: int
    without_context: int
    loss: float
    lr: float

    @property
    def done(self) -> int:
        """Tokens or instances dealt with in one way or the other."""
        return self.trained + self.subsampled + self.without_context


class Trainer:
    """Train tables of numbers, epoch by epoch; a subclass opens the core's run.

    Parameters
    ----------
    core : Run
        The run.
    options : Options
    tables : mapping of ndarray of float32, shape (rows, columns)
        What is learned, by name, in the core's order.
    kernels : str
        Name of the instruction set in use.

    Attributes
    ----------
    options, tables, kernels
        As given.
    """

    def __init__(
        self, core: Run, options: Options, tables: Mapping[str, NDArray[np.float32]], kernels: str
    ) -> None:
        self._core, self.options, self.tables, self.kernels = core, options, tables, kernels
        self._before = core.progress()
        self._rows = sum(len(table) for table in tables.values())
        row_bytes = 4 * max(table.shape[1] for table in tables.values())
        fitting = max(1, LOOKED_AT_ONCE // row_bytes)
        self._looked_at_once = min(fitting, -(-self._rows // POLLS_A_ROUND))
        self._looked = 0  # rows of the tables found finite in this round

    @property
    def epochs(self) -> int:
        """How many epochs the run has."""
        return self.options.epochs or 0

    def progress(self) -> Progress:
        """Return what has been done so far; may lag behind the threads a little."""
        now, before = self._core.progress(), self._before
        losses = now["losses"] - before["losses"]
        return Progress(
            trained=now["trained"],
            subsampled=now["subsampled"],
            without_context=now["without_context"],
            loss=(now["loss"] - before["loss"]) / losses if losses else float("nan"),
            lr=now["rate"],
        )

    @property
    def unfinished(self) -> int | None:
        """The epoch that was stopped before its end, from 0; None between epochs."""
        number = self._core.unfinished()
        return number if number >= 0 else None

    def state(self) -> list[NDArray[np.uint8]]:
        """Return the memory, as views, that the rest of the run depends on beside the tables."""
        return self._core.state()

    def record(self) -> dict[str, Any]:
        """Return what `restore` needs to know of the state, in terms of JSON."""
        before = self._before
        sizes = [piece.nbytes for piece in self.state()]
        return {"loss": before["loss"], "losses": before["losses"], "state": sizes}

    def restore(self, read: Callable[[Any], int], record: Mapping[str, Any]) -> None:
        """Put a state back that `read` fills piece by piece; the tables are the caller's.

        Raises
        ------
        FormatError
            The state is not one of a training with these options and this data.
        """
        pieces = self.state()
        if [piece.nbytes for piece in pieces] != record["state"]:
            raise FormatError("it has other parts")
        for piece in pieces:
            if piece.nbytes and read(piece.data) != piece.nbytes:
                raise FormatError("it is truncated")
        self._core.restored()
        self._before = {**self._before, "loss": record["loss"], "losses": record["losses"]}

    def check_finite(self) -> None:
        """Raise `DivergedError` if a number of the tables is not finite."""
        self._check_rows(0, self._rows, self.unfinished or 0)

    def epoch(
        self, number: int, watch: Callable[[Progress], bool | None] | None = None
    ) -> Progress:
        """Train one epoch, or what is left of it, and return the progress at its end.

        Parameters
        ----------
        number : int
            From 0; decides the learning rate and the random numbers.
        watch : callable, optional
            Called every fifth of a second with the progress; where it returns True, the threads
            stop within some thousand instances, and the epoch is `unfinished` and can be resumed.
            What it raises stops them, too.

        Raises
        ------
        DivergedError
            A number is no longer finite.
        """
        if self.unfinished is None:
            self._before = self._core.progress()
        failures: list[BaseException] = []
        stopping = threading.Event()
        job = (number, stopping, failures)
        thread = threading.Thread(target=self._epoch, args=job, daemon=True)
        thread.start()
        try:
            running = True
            while running:
                thread.join(POLL_SECONDS)
                running = thread.is_alive()
                self._polled(number)
                if watch and watch(self.progress()):
                    stopping.set()
                    self._core.stop()
        except BaseException:
            stopping.set()
            self._core.stop()
            thread.join()
            raise
        if failures:
            raise failures[0]
        return self.progress()

    def _polled(self, number: int) -> None:
        """Look at some more rows: the threads look at some losses only, of rows they meet."""
        end = min(self._rows, self._looked + self._looked_at_once)
        self._check_rows(self._looked, end, number)
        self._looked = end % self._rows

    def _check_rows(self, begin: int, end: int, number: int) -> None:
        if not self._core.is_finite(begin, end):
            raise self._diverged(number, "a vector is not finite")

    def _diverged(self, number: int, what: object) -> DivergedError:
        o = self.options
        return DivergedError(
            f"training left the finite numbers in epoch {number + 1} ({what}; "
            f"--objective={o.objective}, --lr={o.lr:g}, now {self.progress().lr:.4g}): "
            "give a lower --lr"
        )

    def _epoch(self, number: int, stopping: threading.Event, failures: list[BaseException]) -> None:
        try:
            # A stop may have come when the epoch before was over already.
            while not self._core.epoch(number) and not stopping.is_set():
                pass
        except DivergedError as error:
            failures.append(self._diverged(number, error))
        except BaseException as error:
            failures.append(error)
