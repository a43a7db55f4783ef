"""Compare classifiers of a cluster and of one machine: docs/results/cluster-classify.json.

    python scripts/bench_cluster_classify.py --data 20news --shards 8 [--workers 8] [--rows NAMES]
        [--seeds 1] [--json FILE]

The methods of Mann et al. (2009), their Tables 1 and 3 on our data: accuracy, log-likelihood, the
bytes that the workers and the program have sent by the engine's own counters (without the documents
themselves), seconds, and processor seconds of all processes, less those of reading. Data sets are
the development data `20news`, `reuters21578` and `wikipara`. Figures are appended to --found as
they come, so that a measurement can be continued.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import peers
import results as results_files

LBFGS = "--solver lbfgs"
SGD = "--objective gd"
# Name of a row -> its text in the table, and its flags; {p} is the number of shards.
ROWS = {
    "lbfgs": ("one machine, L-BFGS", LBFGS),
    "sgd": ("one machine, SGD", SGD),
    "gradient": ("distributed gradient", f"{LBFGS} --distribute gradient"),
    "vote": ("vote, mean of probabilities", f"{LBFGS} --distribute vote"),
    "mixture": ("mixture weight by counts", f"{LBFGS} --distribute mixture"),
    "factor": ("the same, with a score factor", f"{LBFGS} --distribute mixture --holdout 0.05"),
    "iterate": ("iterative mixing, 5 rounds", f"{SGD} --distribute iterate"),
}
FIGURES = ("accuracy", "precision_at_1", "log_likelihood")
COLUMNS = [
    "data", "method", "shards", "accuracy", "log-likelihood", "MB sent", "evaluations or rounds",
    "seconds", "CPU seconds",
]  # fmt: skip


def main() -> None:
    """Train and test the rows that are missing, and write the table."""
    parser = argparse.ArgumentParser(description="classifiers of a cluster and of one machine")
    parser.add_argument("--data", default="20news")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--workers", type=int, default=8, help="0: the shards one after the other")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--found", type=Path, default=Path("bench-cluster-classify.jsonl"))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    data = peers.development_data() / given.data
    for seed in given.seeds.split(","):
        for name in given.rows.split(","):
            shards = 1 if "--distribute" not in ROWS[name][1] else given.shards
            key = {"data": given.data, "row": name, "shards": shards, "seed": seed}
            if not any(key.items() <= one.items() for one in read(given.found)):
                figures = measured(data, ROWS[name][1].split(), shards, given.workers, seed)
                with given.found.open("a") as file:
                    file.write(json.dumps({**key, **figures}) + "\n")
    write(given, read(given.found))


def read(path: Path) -> list[dict[str, Any]]:
    """Return the figures so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measured(data: Path, flags: list[str], shards: int, workers: int, seed: str) -> dict[str, Any]:
    """Train and test once."""
    if "--distribute" in flags:
        flags = [*flags, "--cluster", f"local:{workers}", "--shards", str(shards)]
    with tempfile.TemporaryDirectory() as folder:
        before, start = processor_seconds(), time.monotonic()
        record = json.loads(
            run("train", data / "train.tsv.xz", "--output", f"{folder}/model", "--threads", "1",
                "--seed", seed, "--quiet", "--json", *flags)
        )  # fmt: skip
        whole, spent = time.monotonic() - start, processor_seconds() - before
        tested = json.loads(run("test", f"{folder}/model", data / "test.tsv.xz", "--json"))
    return {
        "seconds": round(record["train_seconds"], 1),
        "processor_seconds": round(spent - (whole - record["train_seconds"]), 1),
        "bytes_sent": record.get("cluster", {}).get("bytes_sent", 0),
        "epochs": len(record["epochs"]),
        **{name: tested[name] for name in FIGURES if name in tested},
    }


def processor_seconds() -> float:
    """Return the processor time of all child processes and theirs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*arguments: object) -> str:
    """Run `classify` of the program and return its output."""
    command = [sys.executable, "-m", "dcme_w2v", "classify", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def write(given: argparse.Namespace, found: list[dict[str, Any]]) -> None:
    """Print the table of means over the seeds, and write it."""
    rows = []
    for data, shards in sorted({(one["data"], one["shards"]) for one in found}):
        for name, (title, _) in ROWS.items():
            runs = [
                one
                for one in found
                if (one["data"], one["shards"], one["row"]) == (data, shards, name)
            ]
            if runs:
                rows.append([data, title, str(shards), *cells(runs)])
                print(" | ".join(rows[-1]))
    if given.json:
        seeds = ", ".join(sorted({one["seed"] for one in found}))
        results_files.record(
            given.json, "Classifiers of a cluster and of one machine", COLUMNS, rows,
            seeds=seeds, data="20 Newsgroups by date, Reuters-21578 R90, Wikipedia paragraphs",
        )  # fmt: skip


def cells(runs: list[dict[str, Any]]) -> list[str]:
    """Return the figures of a row: means over its runs."""

    def mean(name: str) -> float:
        return statistics.mean(one[name] for one in runs)

    accuracy = "accuracy" if "accuracy" in runs[0] else "precision_at_1"
    log_likelihood = f"{mean('log_likelihood'):.3f}" if "log_likelihood" in runs[0] else "-"
    return [
        f"{mean(accuracy):.2%}", log_likelihood, f"{mean('bytes_sent') / 1e6:.1f}",
        f"{mean('epochs'):.0f}", f"{mean('seconds'):.1f}", f"{mean('processor_seconds'):.1f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
