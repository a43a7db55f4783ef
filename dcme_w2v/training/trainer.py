"""The class `Trainer`, through which the epoch loop controls a training run in the C core."""

import contextlib
import dataclasses
import mmap
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dcme_w2v._core import models as core
from dcme_w2v._core.models import Run
from dcme_w2v.errors import DivergedError, FormatError, UsageError, without_secrets
from dcme_w2v.numeric.arrays import F32, U8, Array, drop_pages

POLL_SECONDS = 0.2
# Maximum number of table bytes that one poll checks; they fit in the L3 cache.
CHECKED_AT_ONCE = 8 << 20
POLLS_A_PASS = 4  # number of polls in which a small table is checked completely


@dataclass(frozen=True)
class Progress:
    """The progress of a run over all epochs.

    Attributes
    ----------
    trained, subsampled, without_context : int
        Numbers of tokens that were targets, that subsampling dropped, and that were alone in their
        sentence. For documents, `trained` counts instances, one per label, and the other two
        numbers are 0.
    loss : float
        Mean loss per instance since the start of the current epoch.
    lr : float
        The current learning rate.
    """

    trained: int
    subsampled: int
    without_context: int
    loss: float
    lr: float

    @property
    def done(self) -> int:
        """Number of processed tokens or instances, including skipped tokens."""
        return self.trained + self.subsampled + self.without_context


class Trainer:
    """Train parameter tables epoch by epoch; subclasses open the run in the C core.

    Parameters
    ----------
    core : Run
        The run in the C core.
    options
    tables : mapping of ndarray of float32, shape (rows, columns)
        The parameters by name, in the C core's order.
    kernels : str
        Name of the instruction set.

    Attributes
    ----------
    options, tables, kernels
        As given.
    epochs : int
        Number of epochs of the run.
    stops_within : bool
        Whether an epoch can be stopped for a checkpoint, and continued.
    """

    stops_within: ClassVar[bool] = True

    def __init__(self, core: Run, options: Any, tables: Mapping[str, F32], kernels: str) -> None:
        self._core, self.options, self.tables, self.kernels = core, options, tables, kernels
        self.epochs: int = options.epochs or 0
        # Subclasses set this attribute to memory-mapped data. Each poll releases the data's pages.
        self._mapped: Array | None = None
        self._before = core.progress()
        self._rows = sum(len(table) for table in tables.values())
        row_bytes = 4 * max(table.shape[1] for table in tables.values())
        fitting = max(1, CHECKED_AT_ONCE // row_bytes)
        self._checked_at_once = min(fitting, -(-self._rows // POLLS_A_PASS))
        self._checked = 0  # number of rows that were found finite in the current pass

    def progress(self) -> Progress:
        """Return the progress, which can lag slightly behind the training threads."""
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
        """The epoch (from 0) that was stopped before it ended, or None between epochs."""
        number = self._core.unfinished()
        return number if number >= 0 else None

    def state(self) -> list[U8]:
        """Return the state of the run, except its tables, as views of memory."""
        return [piece for _, piece in self._core.state()]

    def record(self) -> dict[str, Any]:
        """Return the JSON values that `restore` needs."""
        before = self._before
        return {"loss": before["loss"], "losses": before["losses"], "state": self._layout()}

    def _layout(self) -> list[list[Any]]:
        """Return the name and size of each piece that `state` returns."""
        return [[name, piece.nbytes] for name, piece in self._core.state()]

    def restore(self, state: U8, record: Mapping[str, Any]) -> None:
        """Restore the state from its concatenated pieces; the caller restores the tables.

        Raises
        ------
        FormatError
            The state belongs to training with other options or data.
        """
        pieces, at = self.state(), 0
        size = sum(piece.nbytes for piece in pieces)
        if self._layout() != record["state"] or size != len(state):
            raise FormatError(
                "the training state was saved with different options or by a different version"
            )
        for piece in pieces:
            piece[:] = state[at : at + piece.nbytes]
            at += piece.nbytes
        self._core.restored()
        self._before = {**self._before, "loss": record["loss"], "losses": record["losses"]}

    def check_finite(self) -> None:
        """Raise `DivergedError` if a table contains NaN or infinity."""
        self._check_rows(0, self._rows, self.unfinished or 0)

    def epoch(
        self, number: int, watch: Callable[[Progress], bool | None] | None = None
    ) -> Progress:
        """Train an epoch or the rest of a stopped epoch, and return the progress at its end.

        Parameters
        ----------
        number : int
            The epoch, from 0; determines the learning rate and the random numbers.
        watch : callable, optional
            Called five times a second with the progress. If it returns True, the threads stop
            within a few thousand instances; the epoch is `unfinished` and can be resumed. An
            exception from it also stops them.

        Raises
        ------
        DivergedError
            A parameter is NaN or infinite.
        """
        if self.unfinished is None:
            self._before = self._core.progress()
        failures: list[BaseException] = []
        stopping = threading.Event()

        def train() -> None:
            try:
                # The loop is needed because, after a stop between two epochs, the first call may
                # return at once.
                while not self._core.epoch(number) and not stopping.is_set():
                    pass
            except DivergedError as error:
                failures.append(self._diverged(number, error))
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=train, daemon=True)
        thread.start()
        try:
            running = True
            while running:
                thread.join(POLL_SECONDS)
                running = thread.is_alive()
                # Check more rows for NaN and infinity, because threads check only some losses.
                end = min(self._rows, self._checked + self._checked_at_once)
                self._check_rows(self._checked, end, number)
                self._checked = end % self._rows
                if self._mapped is not None:
                    drop_pages(self._mapped)
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

    def _check_rows(self, begin: int, end: int, number: int) -> None:
        if not self._core.is_finite(begin, end):
            raise self._diverged(number, "a vector is not finite")

    def _diverged(self, number: int, what: object) -> DivergedError:
        o = self.options
        return DivergedError(
            f"training diverged in epoch {number + 1} ({what}; --objective={o.objective}, "
            f"--lr={o.lr:g}, current learning rate {self.progress().lr:.4g}); use a lower --lr"
        )


HASHED_AT_ONCE = 8 << 20  # number of array items that are hashed at a time


@dataclass(frozen=True)
class Fingerprint:
    """Hashes that identify a run's training data, and a description of the data.

    Attributes
    ----------
    hashes : dict of str
        SHA-256 hashes by name; a resumed run must have the same hashes.
    described : str
        A description for messages: "1,234 tokens and 99 words of corpus.txt".
    """

    hashes: Mapping[str, str]
    described: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "described", without_secrets(self.described))


def hash_of(arrays: Iterable[Array]) -> str:
    """Return the SHA-256 hash of arrays, which may be memory-mapped."""
    import hashlib

    found = hashlib.sha256()
    for array in arrays:
        for first in range(0, len(array), HASHED_AT_ONCE):
            found.update(np.ascontiguousarray(array[first : first + HASHED_AT_ONCE]).data)
    return found.hexdigest()


CACHE_LINE = 64
SPARE = CACHE_LINE // 4  # extra float32 items, which allow a table to start at a cache line


def new_table(rows: int, dim: int, as_for: int | None = None) -> F32:
    """Return a table of zeros that is aligned to cache lines, with shape (rows, stride >= dim).

    The stride is the same as for a table with `as_for` rows (default: `rows`). Rows are accessed at
    random, so with small pages most accesses miss the TLB. Huge pages need newly mapped memory,
    whereas `np.zeros` may reuse freed memory.
    """
    stride = core.row_stride(rows if as_for is None else as_for, dim)
    count = rows * stride + SPARE
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        block = np.zeros(count, dtype=np.float32)
    else:
        try:
            mapped = mmap.mmap(-1, 4 * count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, OverflowError) as error:
            raise MemoryError(
                f"a vector table requires {4 * count} bytes of memory, which are not available"
            ) from error
        with contextlib.suppress(OSError):  # not all systems support huge pages
            mapped.madvise(mmap.MADV_HUGEPAGE)
        block = np.frombuffer(mapped, dtype=np.float32)
    return _aligned(block, count - SPARE).reshape(rows, stride)


def table_of(rows: F32) -> F32:
    """Copy rows into a table that is aligned and padded like those that `new_table` creates.

    It may reuse freed memory, which is faster than new memory.
    """
    count, dim = rows.shape
    stride = core.row_stride(count, dim)
    block = np.empty(count * stride + SPARE, dtype=np.float32)
    table = _aligned(block, count * stride).reshape(count, stride)
    table[:, :dim], table[:, dim:] = rows, 0
    return table


def _aligned(block: F32, size: int) -> F32:
    """Return `size` items of a memory block, starting at the block's first cache-line boundary."""
    start = -block.ctypes.data % CACHE_LINE // block.itemsize
    return block[start : start + size]


def core_options(options: Any, cls: type) -> dict[str, Any]:
    """Convert fields of `cls` to fields of a C struct; replace choices with their indices."""
    values = {}
    for item in dataclasses.fields(cls):
        value, choices = getattr(options, item.name), item.metadata.get("choices")
        values[item.name] = choices.index(value) if choices else value
    return values


def kernels_named(name: str | None = None) -> str:
    """Check and return the name of the kernels to use; by default, use the fastest kernels."""
    name = name or os.environ.get("DCME_W2V_KERNELS") or core.KERNELS[0]
    if name not in core.KERNELS:
        raise UsageError(
            f"kernels {name}: not supported by this CPU; unset DCME_W2V_KERNELS, or choose one of "
            + ", ".join(core.KERNELS)
        )
    return name
