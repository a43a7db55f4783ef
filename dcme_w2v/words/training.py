"""One training run: the tables, the epoch loop and what can be seen of it from outside."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core import train as core
from dcme_w2v.errors import DivergedError, UsageError
from dcme_w2v.options import TrainOptions, declaration_of

CACHE_LINE = 64
INSTRUCTION_SETS = ("scalar", "avx2", "avx512", "neon")
POLL_SECONDS = 0.2


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


def new_table(rows: int, dim: int) -> NDArray[np.float32]:
    """Return zeros of shape (rows, stride): rows start at cache lines, stride >= dim."""
    stride = core.row_stride(dim)
    spare = CACHE_LINE // 4
    block = np.zeros(rows * stride + spare, dtype=np.float32)
    start = -block.ctypes.data % CACHE_LINE // 4
    return block[start : start + rows * stride].reshape(rows, stride)


def core_options(options: TrainOptions) -> dict[str, float]:
    """Return resolved options as the C struct's fields: a choice is its number."""
    values = {}
    for item in dataclasses.fields(options):
        value, choices = getattr(options, item.name), declaration_of(item).choices
        values[item.name] = choices.index(value) if choices else value
    return values


def kernels_named(name: str | None = None) -> str | None:
    """Return the instruction set to use, None for the fastest."""
    name = name or os.environ.get("DCME_W2V_KERNELS") or None
    if name is not None and not core.has_kernels(name):
        raise UsageError(
            f"kernels {name}: not on this machine; unset DCME_W2V_KERNELS, or name one of "
            + ", ".join(one for one in INSTRUCTION_SETS if core.has_kernels(one))
        )
    return name


class Training:
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
        input_table = new_table(len(counts), options.dim)
        output_table = new_table(len(counts), options.dim)
        core.initialise(input_table, options.dim, options.seed)
        self.input = input_table[:, : options.dim]
        self.output = output_table[:, : options.dim]
        self._core = core.Trainer(
            core_options(options), ids, counts, input_table, output_table, kernels_named(kernels)
        )
        self._before = self._core.progress()

    @property
    def kernels(self) -> str:
        """Name of the instruction set in use."""
        return str(self._core.kernels)

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

    def epoch(self, number: int, watch: Callable[[Progress], None] | None = None) -> Progress:
        """Train one epoch and return the progress at its end.

        Parameters
        ----------
        number : int
            From 0; decides the learning rate and the random numbers.
        watch : callable, optional
            Called every fifth of a second with the progress.

        Raises
        ------
        DivergedError
            A number is no longer finite.
        """
        self._before = self._core.progress()
        failures: list[BaseException] = []
        thread = threading.Thread(target=self._epoch, args=(number, failures), daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(POLL_SECONDS)
                if watch:
                    watch(self.progress())
        except BaseException:
            self._core.stop()
            thread.join()
            raise
        if failures:
            raise failures[0]
        return self.progress()

    def _epoch(self, number: int, failures: list[BaseException]) -> None:
        try:
            self._core.epoch(number)
        except DivergedError as error:
            o = self.options
            failures.append(
                DivergedError(
                    f"training left the finite numbers in epoch {number + 1} ({error}; "
                    f"--objective {o.objective}, --lr {o.lr:g}): give a lower --lr"
                )
            )
        except BaseException as error:
            failures.append(error)
