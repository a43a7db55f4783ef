"""Rounds: p shards learn apart from the same tables, whose rows are then mixed, block by block.

A round is p tasks that learn, p * B that pick the rows of one block out of what a shard has learned
(where that is, so that only the picked rows are sent), and B that mix. Each block stays on one
worker: there its rows of the last round are, and those of one shard. What is learned and how it
is mixed is a `Work`: this module has no knowledge of words and classes.
"""

from __future__ import annotations

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.cluster.engine import Cluster, Handle
from dcme_w2v.cluster.folder import Block, RoundFiles, RoundFolder
from dcme_w2v.cluster.mixing import blocks as cut
from dcme_w2v.errors import OutOfMemoryError, ResourceError

BLOCKS_MAX = 32
BYTES_IN_ONE = 64 << 20  # tables below it are one block


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
    """What a shard has learned in a round.

    Attributes
    ----------
    pieces : list
        One for each block of the work, in their order: what `Work.mix` takes.
    note : dict
        A few numbers about it, in terms of JSON.
    """

    pieces: list[Any]
    note: dict[str, Any] = field(default_factory=dict)


class Work(ABC):
    """What a training brings to its rounds; its methods run on the workers.

    A work is sent with each task: it has paths and options, and no tables. All methods are pure:
    the seed, the round and the shard decide every random number.

    Attributes
    ----------
    shards : int
    blocks : tuple of Block
        Of all tables, in order; they cover each table.
    has_parts : bool
        Whether `part` and `join` are called before `mix`.
    begins_anywhere : bool
        Whether each worker calls `begin` for itself, because that costs less than receiving the
        rows: zeros, for example.
    writes_tables : bool
        Whether `learn` changes the tables that it gets, which are copied for it then.
    """

    shards: int
    blocks: tuple[Block, ...]
    has_parts: bool = False
    begins_anywhere: bool = False
    writes_tables: bool = True

    @abstractmethod
    def begin(self, block: Block) -> NDArray[Any]:
        """Return the rows of a block at the start of the first round."""

    def load(self, shard: int, shared: Any) -> Any:
        """Return the data of a shard, which stays on its worker through all rounds.

        `shared` is the value that `run_rounds` got for all shards.
        """
        return None

    @abstractmethod
    def learn(self, number: int, shard: int, data: Any, tables: dict[str, NDArray[Any]]) -> Learned:
        """Learn a shard in the round `number`, from 0; see `writes_tables`."""

    def part(self, number: int, block: Block, start: NDArray[Any], pieces: list[Any]) -> Any:
        """Return what `join` needs to know of a block; the arguments are those of `mix`."""
        return None

    def join(self, number: int, parts: list[Any]) -> Any:
        """Return what all calls of `mix` need, from the parts in the order of the blocks."""
        return None

    @abstractmethod
    def mix(
        self, number: int, block: Block, start: NDArray[Any], pieces: list[Any], joined: Any
    ) -> NDArray[Any]:
        """Return the rows of a block after the round.

        Parameters
        ----------
        number : int
            Of the round.
        block : Block
        start : ndarray
            The rows before the round.
        pieces : list
            What each shard has learned of them, in the order of the shards.
        joined : object
            What `join` has returned, if there are parts.
        """

    def label(self, shard: int) -> str:
        """Return the name of a shard's data for messages, or ""."""
        return ""


@dataclass(frozen=True)
class RoundRecord:
    """The figures of a round.

    Attributes
    ----------
    round : int
        From 1.
    seconds : float
        Of the whole round.
    slowest, median : float
        Seconds of the shards.
    bytes : int
        Sent so far, see `Cluster.figures`.
    notes : list of dict
        Those of the shards, in order.
    """

    round: int
    seconds: float
    slowest: float
    median: float
    bytes: int
    notes: list[dict[str, Any]]


Rows = Sequence[Handle | None]  # of each block; None is what `Work.begin` returns


class Tables:
    """Tables that are on the workers, block by block."""

    def __init__(self, cluster: Cluster, blocks: Sequence[Block], handles: Rows) -> None:
        self._cluster, self._blocks, self.handles = cluster, blocks, handles

    def get(self, name: str) -> NDArray[Any]:
        """Fetch a table, one block at a time."""
        chosen = [i for i, block in enumerate(self._blocks) if block.table == name]
        rows = max(self._blocks[i].rows.stop for i in chosen)
        table: NDArray[Any] | None = None
        for i in chosen:
            handle = self.handles[i]
            assert handle is not None
            fetched = self._cluster.result(handle)
            if table is None:
                table = np.empty((rows, *fetched.shape[1:]), dtype=fetched.dtype)
            table[self._blocks[i].rows] = fetched
        assert table is not None
        return table


EndRound = Callable[[RoundRecord, Tables], "bool | None"]


def run_rounds(
    cluster: Cluster,
    work: Work,
    rounds: int,
    *,
    first: int = 0,
    saved: RoundFiles | None = None,
    data: Sequence[Handle] | None = None,
    shared: Handle | None = None,
    account: Callable[[int, list[dict[str, Any]]], None] | None = None,
    end_round: EndRound | None = None,
    folder: RoundFolder | None = None,
    start: Rows | None = None,
) -> Tables:
    """Run rounds and return the tables after the last one.

    Parameters
    ----------
    cluster : Cluster
    work : Work
    rounds : int
        In all.
    first : int
        Those that are done already.
    saved : RoundFiles, optional
        Where the tables after these are, with the blocks of the work.
    data : sequence of Handle, optional
        The data of each shard; by default what `Work.load` returns.
    shared : Handle, optional
        What `Work.load` needs for every shard.
    account : callable, optional
        Gets the number of rounds that are done and the notes of the last, before it is saved: may
        set `RoundFolder.notes`.
    end_round : callable, optional
        Called in this process after every round; returns whether to stop.
    folder : RoundFolder, optional
        Where the tables of every round are saved: a folder that all workers have.
    start : sequence of Handle, optional
        The tables before the first round; by default what `Work.begin` returns.

    Raises
    ------
    DcmeError
        A task has failed. Nothing of its round was mixed.
    """
    loaded = shards_of(cluster, work, shared) if data is None else data
    again = data is None
    if start is not None:
        cluster.wait([one for one in start if one is not None])
        handles = start
    else:
        handles = begun(cluster, work) if saved is None else _read(cluster, work, first, saved)
    kept: list[Any] = []  # the last two rounds, from which a lost value is computed again
    for number in range(first, rounds):
        since = time.monotonic()
        learned = learn(cluster, work, number, loaded, handles, shared, again)
        notes = notes_of(cluster, learned)
        seconds = [note.pop("seconds") for note in notes]
        if account is not None:
            account(number + 1, notes)
        kept = [*kept[-1:], handles]
        if folder is None:
            handles = mix(cluster, work, number, handles, learned)
        else:
            handles = _mix_and_save(cluster, work, number, handles, learned, folder)
        record = RoundRecord(
            number + 1, time.monotonic() - since, max(seconds), statistics.median(seconds),
            cluster.figures()["bytes_sent"], notes,
        )  # fmt: skip
        if end_round is not None and end_round(record, Tables(cluster, work.blocks, handles)):
            break
    return Tables(cluster, work.blocks, handles)


def shards_of(cluster: Cluster, work: Work, shared: Handle | None = None) -> list[Handle]:
    """Load the data of all shards, and wait for them: errors of the input come before a round."""
    found = [
        cluster.submit(work.load, k, shared, label=_label(work, k), near=k)
        for k in range(work.shards)
    ]
    cluster.wait(found)
    return found


def notes_of(cluster: Cluster, learned: Sequence[Handle]) -> list[dict[str, Any]]:
    """Return the notes of what the shards have learned, with its `seconds`."""
    noted = [cluster.submit(_pick, one, None, near=one) for one in learned]
    return [dict(cluster.result(one)) for one in noted]


def _mix_and_save(
    cluster: Cluster,
    work: Work,
    number: int,
    start: Rows,
    learned: Sequence[Handle],
    folder: RoundFolder,
) -> Rows:
    """Mix, each block into its file; return what reads them, so that no round depends on it.

    Where they cannot be written, training continues without the checkpoint, as on one machine.
    """
    since = time.monotonic()
    try:
        with folder.generation(number + 1):
            mixed = mix(cluster, work, number, start, learned, folder.files)
            written = [cluster.result(one) for one in mixed if one is not None]
            folder.complete(number + 1, time.monotonic() - since, written)
    except OutOfMemoryError:
        raise
    except ResourceError as error:
        cluster.reporter.message(f"warning: {error.message}; training continues")
        return mix(cluster, work, number, start, learned)
    return _read(cluster, work, number + 1, folder.files)


def learn(
    cluster: Cluster,
    work: Work,
    number: int,
    data: Sequence[Handle],
    tables: Rows,
    shared: Handle | None = None,
    again: bool = False,
) -> list[Handle]:
    """Let all shards learn, and wait for the last: nothing is mixed where one has failed.

    With `again`, a twin loads its data: where it was loaded, no worker may answer.
    """
    learned = []
    for k, one in enumerate(data):
        twin = (work, number, k, None, shared, tables) if again else None
        given = (work, number, k, one, None, tables)
        label = _label(work, k, number)
        learned.append(cluster.submit(_learn, *given, label=label, near=k, again=twin))
    cluster.wait(learned, twins=True)
    return learned


def mix(
    cluster: Cluster,
    work: Work,
    number: int,
    start: Rows,
    learned: Sequence[Handle],
    files: RoundFiles | None = None,
) -> Rows:
    """Mix what the shards have learned; return a handle for each block, and wait for them."""
    picks = [
        [cluster.submit(_pick, one, b, near=one) for one in learned]
        for b in range(len(work.blocks))
    ]
    joined: Handle | None = None
    if work.has_parts:
        parts = [
            cluster.submit(_part, work, number, b, start[b], picks[b], near=b)
            for b in range(len(work.blocks))
        ]
        joined = cluster.submit(work.join, number, parts, label=f"round {number + 1}")
    mixed = [
        cluster.submit(
            _mix, work, number, b, start[b], picks[b], joined, files,
            label=f"rows {block.rows.start} to {block.rows.stop} in round {number + 1}", near=b,
        )
        for b, block in enumerate(work.blocks)
    ]  # fmt: skip
    cluster.wait(mixed)
    return mixed


def begun(cluster: Cluster, work: Work) -> Rows:
    """Return the tables before the first round."""
    if work.begins_anywhere:
        return [None] * len(work.blocks)
    found = [cluster.submit(work.begin, block, near=b) for b, block in enumerate(work.blocks)]
    cluster.wait(found)
    return found


def _read(cluster: Cluster, work: Work, number: int, saved: RoundFiles) -> Rows:
    """Return the tables that were saved after so many rounds."""
    found = [cluster.submit(saved.read, number, b, near=b) for b in range(len(work.blocks))]
    cluster.wait(found)
    return found


def _label(work: Work, shard: int, number: int | None = None) -> str:
    name = f"shard {shard + 1}"
    if number is not None:
        name += f" of round {number + 1}"
    said = work.label(shard)
    return f"{name} ({said})" if said else name


# ---- tasks ----


def _learn(
    work: Work, number: int, shard: int, data: Any, shared: Any, tables: list[NDArray[Any] | None]
) -> tuple[list[Any], dict[str, Any]]:
    """Let a shard learn; a twin has no data and loads it."""
    since, whole = time.monotonic(), {}
    data = work.load(shard, shared) if data is None else data
    for name in dict.fromkeys(block.table for block in work.blocks):
        of = [_start(work, b, t) for b, t in enumerate(tables) if work.blocks[b].table == name]
        # a copy where it is written to: other tasks read what is given
        whole[name] = np.concatenate(of) if work.writes_tables or len(of) > 1 else of[0]
    found = work.learn(number, shard, data, whole)
    seconds = round(time.monotonic() - since, 3)
    return found.pieces, {**found.note, "seconds": seconds}


def _pick(learned: tuple[list[Any], dict[str, Any]], block: int | None) -> Any:
    """Return the rows of a block, or the note.

    The notes are picked first: then Dask has seen how short these tasks are. Tasks of unknown
    duration move to idle workers, with all that they pick from.
    """
    return dict(learned[1]) if block is None else learned[0][block]


def _start(work: Work, block: int, rows: NDArray[Any] | None) -> NDArray[Any]:
    return work.begin(work.blocks[block]) if rows is None else rows


def _part(
    work: Work, number: int, block: int, start: NDArray[Any] | None, pieces: list[Any]
) -> Any:
    return work.part(number, work.blocks[block], _start(work, block, start), pieces)


def _mix(
    work: Work,
    number: int,
    block: int,
    start: NDArray[Any] | None,
    pieces: list[Any],
    joined: Any,
    files: RoundFiles | None,
) -> Any:
    """Mix a block; with a folder, write it there and return its checksum."""
    before = _start(work, block, start)
    rows = work.mix(number, work.blocks[block], before, pieces, joined)
    return rows if files is None else files.write(number + 1, block, rows)
