"""A `Work` for tests of rounds: each shard adds its own numbers to the tables."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dcme_w2v.cluster.address import open_cluster
from dcme_w2v.cluster.rounds import Block, Learned, Work, blocks_of, run_rounds
from dcme_w2v.errors import DivergedError
from dcme_w2v.training.progress import Quiet

SHAPES = {"input": (50, 3), "context": (50, 2)}


@dataclass(frozen=True)
class Adding(Work):
    """Sums of random changes; in its second round, a shard may fail, wait or exit (`fault`)."""

    shards: int
    blocks: tuple[Block, ...]
    folder: str  # where tasks record that they run, and wait for the test
    fault: str = ""
    fault_shard: int = 1
    has_parts: bool = True
    begins_anywhere: bool = False

    def begin(self, block):
        rows = np.arange(block.rows.start, block.rows.stop, dtype=np.float32)
        return np.repeat(rows[:, None], SHAPES[block.table][1], axis=1)

    def load(self, shard, shared):
        if self.fault == "missing" and shard == self.fault_shard:
            Path("/nowhere/part-2.txt").read_bytes()
        return np.random.default_rng(shard).random(7)

    def learn(self, number, shard, data, tables):
        if number == 1 and self.fault and shard == self.fault_shard:
            self._fail()
        random = np.random.default_rng([number, shard])
        for table in tables.values():
            table += random.standard_normal(table.shape).astype(np.float32) * data.sum()
        note = {"tokens": 10 * (shard + 1), "process": os.getpid(), "round": number}
        return Learned([tables[b.table][b.rows] for b in self.blocks], note)

    def _fail(self):
        mine = Path(self.folder) / f"{time.monotonic_ns()}-{os.getpid()}"
        first = not any(Path(self.folder).glob("*-*"))
        mine.touch()
        if self.fault == "exit" or (self.fault == "exit once" and first):
            os._exit(9)
        if self.fault == "diverged":
            raise DivergedError("training diverged (NaN or infinity)")
        if self.fault == "wait" and first:  # for the test to stop or kill this process
            (Path(self.folder) / "reached").write_text(str(os.getpid()))
            (Path(self.folder) / "go").read_text()

    def part(self, number, block, start, pieces):
        return float(sum(piece.sum(dtype=np.float64) for piece in pieces))

    def join(self, number, parts):
        return sum(parts)

    def mix(self, number, block, start, pieces, joined):
        total = np.zeros(start.shape)
        for piece in pieces:
            total += piece - start
        return (start + total / len(pieces) + 1e-6 * (joined or 0)).astype(np.float32)

    def label(self, shard):
        return f"part-{shard + 1}.txt"


# ---- helpers ----

SHARDS, ROUNDS = 3, 3
BLOCKS = blocks_of(SHAPES, 1)


def straight_digest(folder):
    """Return the digest of a run in this process."""
    with open_cluster("local:0") as cluster:
        return digest(run_rounds(cluster, work(folder), ROUNDS))


def digest(tables):
    return hashlib.sha256(b"".join(tables.get(name).tobytes() for name in SHAPES)).hexdigest()


def work(folder, fault="", blocks=BLOCKS, **others):
    return Adding(SHARDS, blocks, str(folder), fault, **others)


def gates(folder):
    """Make two pipes: a task that waits writes its process to "reached" and reads "go"."""
    found = [Path(folder) / name for name in ("reached", "go")]
    for one in found:
        os.mkfifo(one)
    return found


class Hearing(Quiet):
    """Records messages; `lost` is set when a worker is lost."""

    def __init__(self):
        self.lines, self.lost = [], threading.Event()

    def message(self, message):
        self.lines.append(message)
        if "is lost" in message:
            self.lost.set()
