"""One training run: the tables, the epoch loop and what can be seen of it from outside."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core import train as core
from dcme_w2v.core import core_options, kernels_named, new_table
from dcme_w2v.errors import DivergedError, FormatError
from dcme_w2v.options import TrainOptions
from dcme_w2v.text.cache import release_pages

POLL_SECONDS = 0.2
LOOKED_AT_ONCE = 256 << 20  # bytes of the tables at most, between two polls
POLLS_A_ROUND = 4  # so that all of tables that are not large is looked at within a second


@dataclass(frozen=True)
class Progress:
    """What a run has done so far; counts are of tokens, over all epochs.

    Attributes
    ----------
    trained, subsampled, without_context : int
        Tokens that were targets, left out because they are frequent, or alone in their sentence.
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
        """Tokens dealt with in one way or the other."""
        return self.trained + self.subsampled + self.without_context


class Trainer:
    """Train vectors over an encoded corpus.

    Parameters
    ----------
    ids : ndarray of uint32, shape (n,)
        Word numbers by descending frequency; bit 31 marks the last word of a sentence.
    counts : ndarray of int64, shape (words,)
        How often each word occurs.
    options : TrainOptions
        Resolved, see `dcme_w2v.words.defaults.resolved`.
    kernels : str, optional
        Instruction set: "scalar", "avx2", "avx512" or "neon"; by default what the environment
        variable DCME_W2V_KERNELS names, or else the fastest that the machine has.

    Attributes
    ----------
    input, output : ndarray of float32, shape (words, dim)
        The context vectors, which are the word vectors, and the target vectors. Rows are padded:
        the arrays are views and not contiguous.
    """

    def __init__(
        self,
        ids: NDArray[np.uint32],
        counts: NDArray[np.int64],
        options: TrainOptions,
        kernels: str | None = None,
    ) -> None:
        self.options = options
        self._ids = ids
        input_table = new_table(len(counts), options.dim)
        output_table = new_table(len(counts), options.dim)
        self.input = input_table[:, : options.dim]
        self.output = output_table[:, : options.dim]
        self._core = core.Trainer(
            core_options(options), ids, counts, input_table, output_table, kernels_named(kernels)
        )
        release_pages(ids)  # it has looked at all of them, and no row has memory yet
        core.initialise(input_table, options.dim, options.seed)
        self._before = self._core.progress()
        self._looked = 0  # rows of both tables found finite in this round

    @property
    def kernels(self) -> str:
        """Name of the instruction set in use."""
        return str(self._core.kernels)

    @property
    def clusters(self) -> int:
        """How many dual clusters the objective has: 0 without."""
        return self._core.clusters()

    def centre(self, k: int) -> NDArray[np.float32]:
        """Return a copy of a cluster's centre, a distribution over the words; between epochs."""
        alpha = np.empty(len(self.input), dtype=np.float32)
        self._core.centre(k, alpha)
        return alpha

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
            The state is not one of a training with these options and this corpus.
        """
        pieces = self.state()
        if [piece.nbytes for piece in pieces] != record["state"]:
            raise FormatError("it has other parts")
        for piece in pieces:
            if piece.nbytes and read(piece.data) != piece.nbytes:
                raise FormatError("it breaks off")
        self._core.restored()
        self._before = {**self._before, "loss": record["loss"], "losses": record["losses"]}

    def check_finite(self) -> None:
        """Raise `DivergedError` if a number of the tables is not finite."""
        if not self._core.is_finite(0, 2 * len(self.input)):
            raise self._diverged(self.unfinished or 0, "a vector is not finite")

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
            stop within some thousand words, the epoch is `unfinished`, and can be gone on with.

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
                self._look(number)
                release_pages(self._ids)
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

    def _look(self, number: int) -> None:
        """Look at some more rows: the threads look at some losses only, of words they meet."""
        total = 2 * len(self.input)
        fitting = max(1, LOOKED_AT_ONCE // (4 * self.options.dim))
        end = min(total, self._looked + min(fitting, -(-total // POLLS_A_ROUND)))
        if not self._core.is_finite(self._looked, end):
            raise self._diverged(number, "a vector is not finite")
        self._looked = end % total

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
