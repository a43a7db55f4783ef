"""Compare word vectors of a cluster and of one machine: quality, seconds, bytes sent.

    python scripts/bench_cluster.py CORPUS --data ../shared/data --rows one,p8 --seeds 1,2,3

Trains with `dcme-w2v train`, on one machine and on `--cluster` (local:0 trains the shards one after
the other; the vectors are those of any number of workers), and evaluates the input vectors and the
sums of both tables. --json has the runs beside the table and is written after each of them, so that
a measurement can be continued; --curve writes a second table, quality by the tokens of a round.
Skips with a message where data is absent.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import results as results_files

PLAIN = "--dim 100 --window 5 --negative 5 --noise-power 0.75 --sample 1e-3 --epochs 5"
SKIPGRAM = f"{PLAIN} --model skipgram"
# Name of a row -> the text in the table, and the flags.
ROWS = {
    "one": ("CBOW, one machine", f"{PLAIN} --lr 0.05"),
    "one-fast": ("CBOW, one machine, lr 0.075", f"{PLAIN} --lr 0.075"),
    "p2": ("2 shards, 20 rounds", f"{PLAIN} --shards 2 --rounds 20 --lr 0.075"),
    "p4": ("4 shards, 20 rounds", f"{PLAIN} --shards 4 --rounds 20 --lr 0.075"),
    "p8": ("8 shards, 20 rounds", f"{PLAIN} --shards 8 --rounds 20 --lr 0.075"),
    "p16": ("16 shards, 20 rounds", f"{PLAIN} --shards 16 --rounds 20 --lr 0.075"),
    "mean": (
        "8 shards, 20 rounds, --mix mean, lr 0.2",
        f"{PLAIN} --shards 8 --rounds 20 --mix mean --lr 0.2",
    ),
    "mean-r5": (
        "8 shards, 5 rounds, --mix mean, lr 0.05",
        f"{PLAIN} --shards 8 --rounds 5 --mix mean --lr 0.05",
    ),
    "defaults": ("CBOW with the defaults, one machine", ""),
    "defaults-p8": ("defaults, 8 shards, 20 rounds", "--shards 8"),
    "defaults-p2-r10": ("defaults, 2 shards, 10 rounds", "--shards 2 --rounds 10"),
    "defaults-p2-r5": ("defaults, 2 shards, 5 rounds", "--shards 2 --rounds 5"),
    "defaults-p2": ("defaults, 2 shards, 20 rounds", "--shards 2 --rounds 20"),
    "skipgram": ("skip-gram, one machine", f"{SKIPGRAM} --lr 0.05"),
    "skipgram-p8": (
        "skip-gram, 8 shards, 20 rounds",
        f"{SKIPGRAM} --shards 8 --rounds 20 --lr 0.075",
    ),
    "nce": ("CBOW with nce, one machine", "--objective nce"),
    "nce-p8": ("nce, 8 shards, 20 rounds", "--objective nce --shards 8"),
    "dim300": ("CBOW, dim 300, one machine", f"{PLAIN} --dim 300 --lr 0.05"),
    "dim300-p8": (
        "dim 300, 8 shards, 20 rounds",
        f"{PLAIN} --dim 300 --shards 8 --rounds 20 --lr 0.075",
    ),
}
# Rows of the curve: the shards, rounds in all, and epochs; more epochs are longer rounds.
CURVE = {
    "p8-r60": (8, 60, 5), "p8": (8, 20, 5), "p8-r10": (8, 10, 5), "p8-r5": (8, 5, 5),
    "p8-r1": (8, 1, 5),
    "p4": (4, 20, 5), "p4-r5": (4, 5, 5), "p4-r1": (4, 1, 5),
    "p2": (2, 20, 5), "p2-r10": (2, 10, 5), "p2-r5": (2, 5, 5), "p2-r1": (2, 1, 5),
    "p8-e20": (8, 20, 20), "p2-e10": (2, 20, 10), "p2-e20": (2, 20, 20), "p2-e40": (2, 20, 40),
}  # fmt: skip
ALONE = {"one": 5, "one-e10": 10, "one-e20": 20, "one-e40": 40}  # epochs of one machine
for _name, (_shards, _rounds, _epochs) in CURVE.items():
    _flags = f"{PLAIN} --shards {_shards} --rounds {_rounds} --lr 0.075 --epochs {_epochs}"
    ROWS.setdefault(_name, (f"{_shards} shards, {_rounds} rounds", _flags))
for _name, _epochs in ALONE.items():
    ROWS.setdefault(_name, ("one machine", f"{PLAIN} --lr 0.05 --epochs {_epochs}"))
FIGURES = ("analogies", "ws353", "simlex999")
QUALITY = [f"{kind}: {name}" for kind in ("input", "sum") for name in FIGURES]
DATA = "English Wikipedia, 17 million tokens"


def main() -> None:
    """Train and evaluate the rows that are missing, and write the table."""
    parser = argparse.ArgumentParser(description="word vectors of a cluster and of one machine")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of analogies and wordsim")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--cluster", default="local:0")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--curve", type=Path, help="the table by the tokens of a round")
    given = parser.parse_args()
    sets = {
        "analogies": given.data / "analogies" / "questions-words.txt",
        "ws353": given.data / "wordsim" / "ws353.txt",
        "simlex999": given.data / "wordsim" / "simlex999.txt",
    }
    for path in (given.corpus, *sets.values()):
        if not path.exists():
            print(f"skipped: there is no {path}")
            return
    found = results_files.runs_of(given.json)
    for seed in given.seeds.split(","):
        for name in filter(None, given.rows.split(",")):
            if not any(one["row"] == name and one["seed"] == seed for one in found):
                figures = measured(given, sets, ROWS[name][1].split(), seed)
                found.append({"row": name, "seed": seed, **figures})
                print(json.dumps(found[-1]), flush=True)
                write(given.json, found)
    write(given.json, found)
    write_curve(given.curve, found)


def measured(
    given: argparse.Namespace, sets: dict[str, Path], flags: list[str], seed: str
) -> dict[str, Any]:
    """Train once; return the figures of both kinds of vectors."""
    if "--shards" in flags:
        flags = [*flags, "--cluster", given.cluster]
    with tempfile.TemporaryDirectory() as folder:
        output, tables = Path(folder, "sum.bin"), Path(folder, "tables")
        start, spent = time.monotonic(), cpu_seconds()
        run("train", given.corpus, "--output", output, "--vectors", "sum", "--output-tables",
            tables, "--threads", "1", "--seed", seed, "--quiet", *flags)  # fmt: skip
        seconds, spent = time.monotonic() - start, cpu_seconds() - spent
        manifest = json.loads(Path(f"{output}.json").read_text())
        figures = {
            kind: {
                name: evaluated(vectors, name, path) for name, path in sets.items()
            }
            for kind, vectors in (("input", tables), ("sum", output))
        }  # fmt: skip
    cluster = manifest.get("cluster", {})
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(spent, 1),
        "tokens": manifest["tokens"]["corpus"],
        "epochs": manifest["options"]["epochs"],
        "bytes_sent": cluster.get("bytes_sent", 0),
        "workers": cluster.get("workers", 0),
        **figures,
    }


def cpu_seconds() -> float:
    """Return the CPU time of all programs that were run, with their workers."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def evaluated(vectors: Path, name: str, path: Path) -> float:
    """Return the accuracy of analogies, or the rank correlation of similarities."""
    kind = "analogies" if name == "analogies" else "similarity"
    found = json.loads(run("eval", kind, vectors, path, "--json"))
    return float(found["accuracy" if kind == "analogies" else "spearman"])


def run(*arguments: object) -> str:
    """Run the program and return its output."""
    command = [sys.executable, "-m", "dcme_w2v", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def write(path: Path | None, found: list[dict[str, Any]]) -> None:
    """Write the table of means over the seeds, with the runs."""
    rows = []
    for name, (title, _) in ROWS.items():
        runs = [one for one in found if one["row"] == name]
        shown = name in ("one", "p2", "p4", "p8") or name not in (*CURVE, *ALONE)
        if runs and shown:
            spent = [one["cpu_seconds"] for one in runs if not one["workers"]]
            seconds = f"{statistics.mean(spent):.0f}" if spent else "-"
            rows.append([title, str(len(runs)), *cells(runs), seconds])
    columns = ["run", "seeds", *QUALITY, "CPU s, one process"]
    save(path, "Word vectors of a cluster and of one machine", columns, rows, found)


def write_curve(path: Path | None, found: list[dict[str, Any]]) -> None:
    """Write quality by the tokens that a shard has in a round."""
    rows = []
    for name, (shards, rounds, epochs) in CURVE.items():
        runs = [one for one in found if one["row"] == name]
        if runs:
            tokens = runs[0]["tokens"] * epochs / shards / rounds
            given = [str(shards), str(rounds), str(epochs), f"{tokens / 1e6:.1f}"]
            rows.append([*given, str(len(runs)), *cells(runs)])
    for name, epochs in ALONE.items():
        if alone := [one for one in found if one["row"] == name]:
            rows.append(["1", "-", str(epochs), "-", str(len(alone)), *cells(alone)])
    columns = ["shards", "rounds", "epochs", "million tokens a round and shard", "seeds", *QUALITY]
    save(path, "Word vectors by length of round", columns, rows, ())


def cells(runs: list[dict[str, Any]]) -> list[str]:
    """Return the means of all figures of quality."""
    means = {
        (kind, figure): statistics.mean(one[kind][figure] for one in runs)
        for kind in ("input", "sum")
        for figure in FIGURES
    }
    return [f"{v:.1%}" if key[1] == "analogies" else f"{v:.3f}" for key, v in means.items()]


def save(
    path: Path | None,
    title: str,
    columns: list[str],
    rows: list[list[str]],
    runs: Sequence[dict[str, Any]],
) -> None:
    """Write a table where there is a path."""
    if path:
        seeds = "1 to 3; their number is in each row"
        results_files.record(path, title, columns, rows, runs, seeds=seeds, data=DATA)


if __name__ == "__main__":
    main()
