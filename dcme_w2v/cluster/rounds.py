"""Distributed training in rounds: all shards learn from the same tables, then rows are mixed.

The tables are divided into B blocks of rows. With p shards, a round runs p tasks that learn; p * B
tasks that pick the rows of one block from the result of one shard, on the worker that has the
result, so that only these rows are sent; and B tasks that mix. Each block is mixed by the same
worker in every round, because this worker has the rows before the round. A `Work` defines what a
shard learns and how rows are mixed: this module does not depend on words or classes.
"""

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dcme_w2v.numeric.arrays import Array
from dcme_w2v.training.executor import Executor, Future

from .mixing import blocks as cut

BLOCKS_MAX = 32
BYTES_IN_ONE = 64 << 20  # tables below it are one block
ROWS_FETCHED = 1 << 15  # at once; on their way to the program they are in memory several times


@dataclass(frozen=True)
class Block:
    """Rows of one of the tables, which one task mixes."""

    table: str
    rows: slice


def blocks_of(shapes: Mapping[str, tuple[int, int]], workers: int) -> tuple[Block, ...]:
    """Cut tables into blocks of rows: as many as there are workers, at most 32.

    Parameters
    ----------
    shapes : mapping of (int, int)
        Rows and columns of each table, of float32.
    workers : int
    """
    found = []
    for name, (rows, columns) in shapes.items():
        small = 4 * rows * columns < BYTES_IN_ONE
        count = 1 if small else max(1, min(workers, BLOCKS_MAX))
        found += [Block(name, rows) for rows in cut(rows, count)]
    return tuple(found)


@dataclass
class Learned:
    """The result of a shard in a round.

    Attributes
    ----------
    pieces : list
        The rows of each block, in the order of the blocks, in a form that `Work.mix` takes.
    note : dict
        Figures of the shard, which can be stored as JSON.
    """

    pieces: list[Any]
    note: dict[str, Any] = field(default_factory=dict)


class Work(ABC):
    """A training that is divided into rounds; the methods run on the workers.

    A work is sent with each task: it holds paths and options, and no tables. All methods are pure:
    the seed, the round and the shard determine every random number.

    Attributes
    ----------
    shards : int
    blocks : tuple of Block
        The blocks of all tables, in order; they cover each table.
    has_parts : bool
        Whether `part` and `join` are called before `mix`.
    begins_anywhere : bool
        Whether each worker calls `begin` for itself, because computing the first rows (zeros, for
        example) takes less time than receiving them.
    writes_tables : bool
        Whether `learn` changes the tables that it receives; they are copied for it then.
    """

    shards: int
    blocks: tuple[Block, ...]
    has_parts: bool = False
    begins_anywhere: bool = False
    writes_tables: bool = True

    @abstractmethod
    def begin(self, block: Block) -> Array:
        """Return the rows of a block at the start of the first round."""

    def load(self, shard: int, shared: Any) -> Any:
        """Return the data of a shard, which stays on a worker through all rounds.

        `shared` is a value that all shards need; see `shards_of`.
        """
        return None

    @abstractmethod
    def learn(self, number: int, shard: int, data: Any, tables: dict[str, Array]) -> Learned:
        """Train the tables on a shard in the round `number`, from 0; see `writes_tables`."""

    def part(self, number: int, block: Block, start: Array, pieces: list[Any]) -> Any:
        """Return the contribution of a block to `join`; for the arguments see `mix`."""
        return None

    def join(self, number: int, parts: list[Any]) -> Any:
        """Return a value for all calls of `mix`, from the parts in the order of the blocks."""
        return None

    @abstractmethod
    def mix(self, number: int, block: Block, start: Array, pieces: list[Any], joined: Any) -> Array:
        """Return the rows of a block after the round.

        Parameters
        ----------
        number : int
            The number of the round, from 0.
        block : Block
        start : ndarray
            The rows before the round.
        pieces : list
            The pieces of this block, in the order of the shards; see `Learned`.
        joined : object
            The result of `join` if `has_parts`.
        """

    def label(self, shard: int) -> str:
        """Return the name of the data of a shard for messages, or ""."""
        return ""


@dataclass(frozen=True)
class RoundRecord:
    """The figures of a round.

    Attributes
    ----------
    round : int
        The number of the round, from 1.
    seconds : float
        Duration of the round.
    slowest, median : float
        Seconds of the slowest and of the median shard.
    bytes : int
        Bytes sent since the start, see `Executor.figures`.
    notes : list of dict
        The notes of the shards, in order; see `Learned`.
    """

    round: int
    seconds: float
    slowest: float
    median: float
    bytes: int
    notes: list[dict[str, Any]]


Rows = Sequence[Future | None]  # a future for each block; None stands for `Work.begin`


class Tables:
    """Tables whose blocks are on the workers."""

    def __init__(self, executor: Executor, blocks: Sequence[Block], futures: Rows) -> None:
        self._executor, self._blocks, self.futures = executor, blocks, futures

    def get(self, name: str) -> Array:
        """Fetch a table."""
        rows = max(block.rows.stop for block in self._blocks if block.table == name)
        table: Array | None = None
        for first, fetched in self.pieces(name):
            if table is None:
                table = np.empty((rows, *fetched.shape[1:]), dtype=fetched.dtype)
            table[first : first + len(fetched)] = fetched
        assert table is not None
        return table

    def pieces(self, name: str) -> Iterator[tuple[int, Array]]:
        """Fetch a table piece by piece, each with the number of its first row."""
        for block, future in zip(self._blocks, self.futures, strict=True):
            if block.table != name:
                continue
            assert future is not None
            for first in range(block.rows.start, block.rows.stop, ROWS_FETCHED):
                piece = future
                if block.rows.stop - block.rows.start > ROWS_FETCHED:
                    begin = first - block.rows.start
                    piece = self._executor.submit(
                        _rows, future, slice(begin, begin + ROWS_FETCHED), worker_hint=future
                    )
                yield first, self._executor.result(piece)


EndRound = Callable[[RoundRecord, Tables], "bool | None"]


def run_rounds(
    executor: Executor,
    work: Work,
    rounds: int,
    *,
    first: int = 0,
    start: Rows | None = None,
    data: Sequence[Future] | None = None,
    end_round: EndRound | None = None,
) -> Tables:
    """Run rounds and return the tables after the last one.

    Parameters
    ----------
    executor : Executor
    work : Work
    rounds : int
        Total number of rounds.
    first : int
        Number of rounds that are done already.
    start : sequence of Future, optional
        The blocks before round `first`; by default what `Work.begin` returns.
    data : sequence of Future, optional
        The data of each shard; by default what `Work.load` returns.
    end_round : callable, optional
        Called in this process after every round; returns whether to stop.

    Raises
    ------
    DcmeError
        A task failed. Nothing of its round was mixed.
    """
    data = shards_of(executor, work) if data is None else data
    blocks = begun(executor, work) if start is None else start
    kept: list[Rows] = []  # the blocks of the last two rounds, from which lost ones are recomputed
    for number in range(first, rounds):
        since = time.monotonic()
        learned = learn(executor, work, number, data, blocks)
        notes = notes_of(executor, learned)
        seconds = [note.pop("seconds") for note in notes]
        kept = [*kept[-1:], blocks]
        blocks = mix(executor, work, number, blocks, learned)
        record = RoundRecord(
            number + 1, time.monotonic() - since, max(seconds), statistics.median(seconds),
            executor.figures()["bytes_sent"], notes,
        )  # fmt: skip
        if end_round is not None and end_round(record, Tables(executor, work.blocks, blocks)):
            break
    return Tables(executor, work.blocks, blocks)


def shards_of(executor: Executor, work: Work, shared: Future | None = None) -> list[Future]:
    """Load the data of all shards and wait: errors in the input precede the first round."""
    found = [
        executor.submit(work.load, k, shared, label=_label(work, k), worker_hint=k)
        for k in range(work.shards)
    ]
    executor.wait(found)
    return found


def notes_of(executor: Executor, learned: Sequence[Future]) -> list[dict[str, Any]]:
    """Return the notes of the shards, which follow the pieces in each value."""
    noted = [executor.submit(pick, one, None, worker_hint=one) for one in learned]
    return [dict(executor.result(one)) for one in noted]


def learn(
    executor: Executor, work: Work, number: int, data: Sequence[Future], tables: Rows
) -> list[Future]:
    """Train all shards and wait for the last one: if a shard fails, nothing is mixed."""
    learned = [
        executor.submit(
            _learn, work, number, k, one, tables, label=_label(work, k, number), worker_hint=k
        )
        for k, one in enumerate(data)
    ]
    executor.wait(learned)
    return learned


def mix(
    executor: Executor,
    work: Work,
    number: int,
    start: Rows,
    learned: Sequence[Future],
) -> Rows:
    """Mix the results of the shards, wait, and return a future for each block."""
    picks = [
        [executor.submit(pick, one, b, worker_hint=one) for one in learned]
        for b in range(len(work.blocks))
    ]
    joined: Future | None = None
    if work.has_parts:
        parts = [
            executor.submit(_part, work, number, b, start[b], picks[b], worker_hint=b)
            for b in range(len(work.blocks))
        ]
        joined = executor.submit(work.join, number, parts, label=f"round {number + 1}")
    mixed = [
        executor.submit(
            _mix, work, number, b, start[b], picks[b], joined,
            label=f"rows {block.rows.start} to {block.rows.stop} in round {number + 1}",
            worker_hint=b,
        )
        for b, block in enumerate(work.blocks)
    ]  # fmt: skip
    executor.wait(mixed)
    return mixed


def begun(executor: Executor, work: Work) -> Rows:
    """Return the blocks before the first round."""
    if work.begins_anywhere:
        return [None] * len(work.blocks)
    found = [
        executor.submit(work.begin, block, worker_hint=b) for b, block in enumerate(work.blocks)
    ]
    executor.wait(found)
    return found


def _label(work: Work, shard: int, number: int | None = None) -> str:
    name = f"shard {shard + 1}"
    if number is not None:
        name += f" of round {number + 1}"
    said = work.label(shard)
    return f"{name} ({said})" if said else name


# ---- tasks ----


def _learn(
    work: Work, number: int, shard: int, data: Any, tables: list[Array | None]
) -> tuple[list[Any], dict[str, Any]]:
    since, whole = time.monotonic(), {}
    for name in dict.fromkeys(block.table for block in work.blocks):
        of = [_start(work, b, t) for b, t in enumerate(tables) if work.blocks[b].table == name]
        # other tasks read the same arrays: copy before writing
        whole[name] = np.concatenate(of) if work.writes_tables or len(of) > 1 else of[0]
    found = work.learn(number, shard, data, whole)
    seconds = round(time.monotonic() - since, 3)
    return found.pieces, {**found.note, "seconds": seconds}


def pick(learned: tuple[list[Any], dict[str, Any]], block: int | None) -> Any:
    """Return the rows of a block, or the note if `block` is None.

    Notes are picked first, so that Dask measures how short these tasks are: Dask moves tasks of
    unknown duration to idle workers, together with all the data that they read.
    """
    return dict(learned[1]) if block is None else learned[0][block]


def _rows(block: Array, rows: slice) -> Array:
    return block[rows]


def _start(work: Work, block: int, rows: Array | None) -> Array:
    return work.begin(work.blocks[block]) if rows is None else rows


def _part(work: Work, number: int, block: int, start: Array | None, pieces: list[Any]) -> Any:
    return work.part(number, work.blocks[block], _start(work, block, start), pieces)


def _mix(
    work: Work,
    number: int,
    block: int,
    start: Array | None,
    pieces: list[Any],
    joined: Any,
) -> Array:
    return work.mix(number, work.blocks[block], _start(work, block, start), pieces, joined)
