"""Seconds and bytes of a cluster on paper: `docs/results/cluster-model.json`; nothing is measured.

    python scripts/model_cluster.py [--json FILE]
    python scripts/model_cluster.py --measure CORPUS [--dim 100]

The figures of `train --dry-run --cluster`, for corpora that this machine does not have: tables of
10^6 words and 300 dimensions, 16 threads a worker, a network of 10 Gbit/s. --measure prints
what the constant `NUMBERS_A_SECOND` of dcme_w2v/cluster/estimate.py is here: tokens times
dimensions in a second of CPU time, of five epochs of CBOW less one.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import results as results_files

from dcme_w2v.cluster.engine import ClusterOptions
from dcme_w2v.cluster.estimate import estimate
from dcme_w2v.cluster.words import resolved_for
from dcme_w2v.options import TrainOptions
from dcme_w2v.words.job import TrainJob

WORDS, DIM, THREADS = 1_000_000, 300, 16
COLUMNS = [
    "billion tokens", "workers", "rounds an epoch", "million tokens a round and shard",
    "GB a round, all workers", "minutes an epoch, one machine", "minutes an epoch, cluster",
    "pays from billion tokens",
]  # fmt: skip


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description="seconds and bytes of a cluster on paper")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--measure", type=Path, metavar="CORPUS")
    parser.add_argument("--dim", type=int, default=100)
    given = parser.parse_args()
    if given.measure:
        print(f"{measured(given.measure, given.dim):.3g}")
        return
    rows = [cells(tokens, workers) for tokens in (10**10, 10**11, 10**12) for workers in (10, 100)]
    for row in rows:
        print(" | ".join(row))
    if given.json:
        results_files.record(
            given.json, "A cluster on paper", COLUMNS, rows, seeds="none", machine="none",
            data=f"estimated: {WORDS:,} words, {DIM} dimensions, {THREADS} threads a worker",
        )  # fmt: skip


def measured(corpus: Path, dim: int) -> float:
    """Return the tokens times dimensions that a thread learns in a second of CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "v.bin")
        spent = []
        for epochs in (1, 5):
            before = cpu_seconds()
            subprocess.run(
                [sys.executable, "-m", "dcme_w2v", "train", corpus, "--output", output, "--quiet",
                 "--dim", str(dim), "--negative", "5", "--epochs", str(epochs), "--threads", "1"],
                check=True,
            )  # fmt: skip
            spent.append(cpu_seconds() - before)
        tokens = json.loads(Path(f"{output}.json").read_text())["tokens"]["corpus"]
    return float(4 * tokens * dim / (spent[1] - spent[0]))


def cpu_seconds() -> float:
    """Return the CPU time of the programs that were run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cells(tokens: int, workers: int) -> list[str]:
    """Return a row."""
    job = TrainJob((), cluster=ClusterOptions(f"local:{workers}"))
    options = resolved_for(TrainOptions(dim=DIM, threads=THREADS), WORDS, workers)
    found = estimate(job, options, WORDS, tokens)
    alone, together = (
        found[f"epoch_seconds_on_{place}"] / 60 for place in ("one_machine", "the_cluster")
    )
    return [
        f"{tokens / 1e9:,.0f}", str(workers), f"{found['rounds'] / options.epochs:,.0f}",
        f"{found['tokens_a_round'] / 1e6:.0f}", f"{found['bytes_a_round'] / 1e9:.0f}",
        f"{alone:,.0f}", f"{together:,.0f}", f"{found['cluster_pays_from_tokens'] / 1e9:.1f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
