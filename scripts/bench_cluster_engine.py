"""Bytes that a merge of tables moves, and memory of scheduler and workers.

    python scripts/bench_cluster.address.py [--workers 4] [--megabytes 240] [--json FILE]

Starts a Dask scheduler and workers, which exchange tables of random numbers in rounds as `train
--cluster` does, one shard a worker; nothing is learned. Each row is one size of tables. Bytes of a
merge, and of spreading its result to all workers, are in units of (p - 1) times the tables.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import results as results_files
from numpy.typing import NDArray

from dcme_w2v.cluster import mixing
from dcme_w2v.cluster.address import open_cluster
from dcme_w2v.cluster.folder import Block
from dcme_w2v.cluster.rounds import Learned, Work, begun, blocks_of, learn, mix, notes_of, shards_of

DIM = 100
# As local:N and the page on clusters have it: else Dask removes copies that the next step needs.
KEEP_COPIES = {"DASK_DISTRIBUTED__SCHEDULER__ACTIVE_MEMORY_MANAGER__START": "False"}
PR_SET_PDEATHSIG = 1  # of linux/prctl.h
COLUMNS = [
    "tables, MB", "workers", "blocks", "rounds", "merge, mean",
    "merge, most", "spread, most", "scheduler, MB", "a worker at most, MB",
]  # fmt: skip


@dataclass(frozen=True)
class Noise(Work):
    """Changes tables at random."""

    shards: int
    blocks: tuple[Block, ...]

    def begin(self, block: Block) -> NDArray[Any]:
        """Return zeros."""
        return np.zeros((block.rows.stop - block.rows.start, DIM), dtype=np.float32)

    def learn(self, number: int, shard: int, data: Any, tables: dict[str, NDArray[Any]]) -> Learned:
        """Add a number to all."""
        for table in tables.values():
            table += np.float32(number + shard)
        return Learned([tables[one.table][one.rows] for one in self.blocks])

    def mix(
        self, number: int, block: Block, start: NDArray[Any], pieces: list[Any], joined: Any
    ) -> NDArray[Any]:
        """Return the mean."""
        return mixing.mean(pieces)


def main() -> None:
    """Measure one size of tables, and write the table with those measured before."""
    parser = argparse.ArgumentParser(description="bytes of a merge and memory of the engine")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--megabytes", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    row = measured(given.workers, given.megabytes, given.rounds)
    print(" | ".join(row))
    if given.json:
        runs = [one for one in results_files.runs_of(given.json) if one["row"][:2] != row[:2]]
        runs.append({"row": row})
        results_files.record(
            given.json, "Bytes of a merge and memory of the engine", COLUMNS,
            [one["row"] for one in runs], runs, data=f"random tables of {DIM} dimensions",
        )  # fmt: skip


def measured(workers: int, megabytes: int, rounds: int) -> list[str]:
    """Exchange tables in rounds, and return a row."""
    words = megabytes * 10**6 // (2 * 4 * DIM)
    tables = 2 * 4 * DIM * words
    with started(workers) as (file, scheduler), open_cluster(str(file)) as cluster:
        work = Noise(workers, blocks_of(dict.fromkeys(("input", "output"), (words, DIM)), workers))
        data, rows = shards_of(cluster, work), begun(cluster, work)
        given, merged = [], []
        for number in range(rounds):
            before = cluster.figures()["bytes_sent"]
            learned = learn(cluster, work, number, data, rows)
            notes_of(cluster, learned)
            between = cluster.figures()["bytes_sent"]
            rows = mix(cluster, work, number, rows, learned)
            del learned
            given.append(between - before)
            merged.append(cluster.figures()["bytes_sent"] - between)
        peaks = cluster._client.run(peak_megabytes).values()  # type: ignore[attr-defined]
        least = (workers - 1) * tables
        return [
            str(megabytes), str(workers), str(len(work.blocks)), str(rounds),
            *(f"{one / least:.2f}" for one in (sum(merged) / rounds, max(merged), max(given))),
            f"{peak_megabytes(scheduler):.0f}", f"{max(peaks):.0f}",
        ]  # fmt: skip


def peak_megabytes(process: int | str = "self") -> float:
    """Return the largest memory that a process has had, this one or another."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1e3
    raise ValueError(f"process {process} has no VmHWM")


@contextlib.contextmanager
def started(workers: int) -> Iterator[tuple[Path, int]]:
    """Start a scheduler and workers; return the scheduler's file and its process."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = Path(folder, "scheduler.json")
        place = ("--scheduler-file", str(file), "--no-dashboard", "--local-directory", folder)
        scheduler = run(stack, "scheduler", "--host", "127.0.0.1", "--port", "0", *place[:3])
        while not file.exists():
            time.sleep(0.2)
        for _ in range(workers):
            run(stack, "worker", *place, "--nthreads", "1", "--no-nanny", "--memory-limit", "0")
        with open_cluster(str(file)) as cluster:
            cluster._client.wait_for_workers(workers)  # type: ignore[attr-defined]
        yield file, scheduler


def run(stack: contextlib.ExitStack, *command: str) -> int:
    """Start a program of Dask that ends with the stack, or when this one is killed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | KEEP_COPIES,
        preexec_fn=die_with_parent,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process.pid


def die_with_parent() -> None:
    """Let the system end this process when its parent is gone (Linux)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    main()
