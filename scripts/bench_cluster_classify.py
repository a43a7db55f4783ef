"""Compare classifiers of a cluster and of one machine: docs/results/cluster-classify.json.

    python scripts/bench_cluster_classify.py [--data 20news,reuters21578,wikipara] [--rows NAMES]
        [--json FILE]

The methods of Mann et al. (2009), their Tables 1 and 3 on our data: accuracy, log-likelihood, and
the bytes that the workers and the program have sent by the engine's own counters (without the
documents themselves). Bytes are measured on 8 worker processes; the other runs train their shards
one after another in one process (local:0), whose models are the same. The seed decides which
documents a shard has. --json has the runs beside the table and is written after each of them, so
that a measurement can be continued (--data none measures nothing). Accuracy is precision at 1 where
documents have several labels.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import peers
import results as results_files

LBFGS, SGD = "--solver lbfgs", "--objective gd"
# Name of a row -> its text in the table, its flags, and what is replaced in the program.
ROWS = {
    "lbfgs": ("one machine, L-BFGS", LBFGS, ""),
    "sgd": ("one machine, SGD, 5 epochs", SGD, ""),
    "gradient": ("gradient", f"{LBFGS} --distribute gradient", ""),
    "vote": ("vote, mean of probabilities", f"{LBFGS} --distribute vote", ""),
    "uniform": ("mixture, uniform (the paper's)", f"{LBFGS} --distribute mixture", "uniform"),
    "mixture": ("mixture by counts", f"{LBFGS} --distribute mixture", ""),
    "factor": (
        "mixture by counts, score factor of 5 % held out",
        f"{LBFGS} --distribute mixture --holdout 0.05",
        "",
    ),
    "iterate": ("iterate, 5 rounds", f"{SGD} --distribute iterate", ""),
    "iterate-mean": (
        "iterate, 5 rounds, mean by counts (McDonald et al.)",
        f"{SGD} --distribute iterate",
        "mean",
    ),
    "iterate-mean-in-order": (
        "iterate, mean by counts, shards in file order",
        f"{SGD} --distribute iterate",
        "mean,in-order",
    ),
    "uniform-in-order": (
        "mixture, uniform, shards in file order",
        f"{LBFGS} --distribute mixture",
        "uniform,in-order",
    ),
    "mixture-in-order": (
        "mixture by counts, shards in file order",
        f"{LBFGS} --distribute mixture",
        "in-order",
    ),
    "iterate-in-order": (
        "iterate, 5 rounds, shards in file order",
        f"{SGD} --distribute iterate",
        "in-order",
    ),
}
# Data, shards, rows, seeds, workers.
PLAN = (
    ("20news", 1, "lbfgs", "1", 0),
    ("20news", 8, "gradient,mixture,vote", "1", 8),
    ("20news", 8, "iterate", "1", 0),
    ("20news", 32, "iterate,mixture", "1", 0),
    ("20news", 8, "iterate-in-order,mixture-in-order,factor", "1", 0),
    ("20news", 1, "sgd", "1", 0),
    ("reuters21578", 1, "lbfgs,sgd", "1", 0),
    ("reuters21578", 8, "mixture,iterate,gradient", "1", 0),
    ("20news", 8, "uniform", "1", 0),
    ("20news", 32, "uniform", "1", 0),
    ("wikipara", 1, "sgd", "1", 0),
    ("wikipara", 8, "iterate", "1", 0),
    ("20news", 8, "iterate,mixture,vote", "2,3", 0),
    ("20news", 32, "iterate,mixture", "2,3", 0),
    ("20news", 32, "vote", "1,2,3", 0),
    ("20news", 1, "sgd", "2,3", 0),
    ("20news", 2, "gradient", "1", 0),
    ("20news", 32, "gradient", "1", 0),
    ("20news", 8, "uniform,factor", "2,3", 0),
    ("20news", 32, "uniform", "2,3", 0),
    ("20news", 8, "uniform-in-order", "1", 0),
    ("20news", 8, "iterate", "1", 8),
    ("reuters21578", 8, "uniform,vote,factor", "1", 0),
    ("20news", 8, "iterate-mean", "1,2,3", 0),
    ("20news", 32, "iterate-mean", "1,2,3", 0),
    ("20news", 8, "iterate-mean-in-order", "1", 0),
    ("reuters21578", 8, "iterate-mean", "1", 0),
    ("wikipara", 8, "iterate-mean", "1", 0),
    ("wikipara", 8, "mixture", "1", 0),
    ("wikipara", 1, "lbfgs", "1", 0),
    ("wikipara", 8, "gradient,vote,uniform", "1", 0),
)
COLUMNS = [
    "data", "method", "shards", "seeds", "accuracy", "log-likelihood", "iterations or rounds",
    "MB sent",
]  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One training."""

    data: str
    row: str
    shards: int
    seed: str
    workers: int

    def is_in(self, found: list[dict[str, Any]]) -> bool:
        """Return whether it was measured before."""
        return any(asdict(self).items() <= one.items() for one in found)


def main() -> None:
    """Train and test the rows that are missing, and write the table."""
    if sys.argv[1:2] == ["run"]:
        sys.exit(run_changed(sys.argv[2].split(","), sys.argv[3:]))
    parser = argparse.ArgumentParser(description="classifiers of a cluster and of one machine")
    parser.add_argument("--data", default="20news,reuters21578,wikipara")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    wanted, rows = given.data.split(","), given.rows.split(",")
    found = results_files.runs_of(given.json)
    for one in planned():
        if one.data in wanted and one.row in rows and not one.is_in(found):
            found.append({**asdict(one), **measured(one)})
            print(json.dumps(found[-1]), flush=True)
            write(given.json, found)
    write(given.json, found)


def planned() -> Iterator[Run]:
    """Return all runs of the table."""
    for data, shards, rows, seeds, workers in PLAN:
        for seed in seeds.split(","):
            for row in rows.split(","):
                yield Run(data, row, shards, seed, workers)


# ---- training ----


def run_changed(changes: list[str], arguments: list[str]) -> int:
    """Run the program with the rules of comparison that it does not offer."""
    from dcme_w2v.classify import voting
    from dcme_w2v.cli.main import run
    from dcme_w2v.cluster import classes, distribute
    from dcme_w2v.numeric.weighted_mean import mean_by_counts

    def uniform(
        self: Any, number: int, block: Any, start: Any, pieces: list[Any], joined: Any
    ) -> Any:
        return np.mean([one.dense(start) for one in pieces], axis=0).astype(np.float32)

    def votes(self: Any, *given: Any) -> Any:
        chosen = [one.scores(*given).argmax(axis=1) for one in self.models]
        found = np.stack([(np.array(chosen) == j).sum(axis=0) for j in range(self.classes)], axis=1)
        return np.log(np.maximum(found, 1e-9))  # of equals, the first class

    def in_order(documents: int, shards: int, seed: int) -> Any:
        return np.arange(documents) * shards // documents

    if "uniform" in changes:
        mock.patch.object(classes.Mixture, "mix", uniform).start()
    if "mean" in changes:
        mock.patch.object(classes, "in_turn", lambda *given: mean_by_counts(*given[:3])).start()
    if "votes" in changes:
        mock.patch.object(voting.VotingWeights, "scores", votes).start()
    if "in-order" in changes:
        mock.patch.object(distribute, "shards_of", in_order).start()
    return run(arguments)


def measured(one: Run) -> dict[str, Any]:
    """Train and test once."""
    data = peers.development_data() / one.data
    _, flags, changes = ROWS[one.row]
    options = flags.split()
    if "--distribute" in options:
        options += ["--cluster", f"local:{one.workers}", "--shards", str(one.shards)]
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        record = json.loads(
            classify(changes, "train", data / "train.tsv.xz", "--output", model, "--threads", "1",
                     "--seed", one.seed, "--quiet", "--json", *options)
        )  # fmt: skip
        test = ("test", model, data / "test.tsv.xz", "--json")
        tested = json.loads(classify("", *test))
        votes = json.loads(classify("votes", *test)) if one.row == "vote" else {}
    figures = {
        "accuracy": accuracy(tested),
        "log_likelihood": tested.get("log_likelihood"),
        "iterations": len(record["epochs"]),
    }
    if votes:
        figures["majority"] = accuracy(votes)
    if one.workers:
        figures["bytes_sent"] = record["cluster"]["bytes_sent"]
    return figures


def accuracy(tested: dict[str, Any]) -> float:
    """Return the accuracy, or precision at 1 where documents have several labels."""
    return float(tested.get("accuracy", tested.get("precision_at_1")))


def classify(changes: str, *arguments: object) -> str:
    """Run `classify` of the program and return its output."""
    command = [sys.executable, __file__, "run", changes, "classify", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


# ---- the table ----


def write(path: Path | None, found: list[dict[str, Any]]) -> None:
    """Write the table of means over the seeds, with the runs."""
    rows = []
    keys = dict.fromkeys((one.data, one.row, one.shards) for one in planned())
    order = list(ROWS)
    for data, row, shards in sorted(keys, key=lambda k: (k[0], k[2], order.index(k[1]))):
        same = [o for o in found if (o["data"], o["row"], o["shards"]) == (data, row, shards)]
        if same:
            rows.append([data, ROWS[row][0], str(shards), *cells(same)])
            if row == "vote":
                votes = [{**o, "accuracy": o["majority"], "log_likelihood": None} for o in same]
                rows.insert(-1, [data, "majority vote", str(shards), *cells(votes)])
    if path:
        seeds = "1 to 3, which also decide the documents of a shard; their number is in each row"
        results_files.record(
            path, "Classifiers of a cluster and of one machine", COLUMNS, rows, found,
            seeds=seeds, data="20 Newsgroups by date, Reuters-21578 R90, Wikipedia paragraphs",
        )  # fmt: skip


def cells(runs: list[dict[str, Any]]) -> list[str]:
    """Return the figures of a row: means over its seeds."""
    by_seed = {one["seed"]: one for one in runs}.values()

    def mean(name: str) -> float:
        return statistics.mean(one[name] for one in by_seed)

    log_likelihood = "-"
    if all(one["log_likelihood"] is not None for one in by_seed):
        log_likelihood = f"{mean('log_likelihood'):.3f}"
    sent = [one["bytes_sent"] for one in runs if "bytes_sent" in one]
    return [
        str(len(by_seed)), f"{mean('accuracy'):.2%}", log_likelihood, f"{mean('iterations'):.0f}",
        f"{sent[0] / 1e6:.1f}" if sent else "-",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
