"""Compare word vectors of a cluster and of one machine: quality, seconds, bytes sent.

    python scripts/bench_cluster.py CORPUS --data ../shared/data --rows one,p8 --seeds 1,2,3

Trains with `dcme-w2v train`, on one machine and on `--cluster` (local:0: the shards one after the
other, whose vectors are those of any number of workers), and evaluates the input vectors and the
sums of both tables. Figures are appended to --found as they come, so that a measurement can be
continued; --json writes the table of all that are there. Skips with a message where data is absent.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import results as results_files

PLAIN = "--dim 100 --window 5 --negative 5 --noise-power 0.75 --sample 1e-3 --epochs 5"
SKIPGRAM = f"{PLAIN} --model skipgram"
# Name of a row -> the text in the table, and the flags.
ROWS = {
    "one": ("CBOW, one machine", f"{PLAIN} --lr 0.05"),
    "p2": ("2 shards, 20 rounds", f"{PLAIN} --shards 2 --rounds 20"),
    "p4": ("4 shards, 20 rounds", f"{PLAIN} --shards 4 --rounds 20"),
    "p8": ("8 shards, 20 rounds", f"{PLAIN} --shards 8 --rounds 20"),
    "p8-r5": ("8 shards, 5 rounds", f"{PLAIN} --shards 8 --rounds 5"),
    "p16": ("16 shards, 20 rounds", f"{PLAIN} --shards 16 --rounds 20"),
    "mean": (
        "8 shards, 20 rounds, --mix mean, lr 0.2",
        f"{PLAIN} --shards 8 --rounds 20 --mix mean --lr 0.2",
    ),
    "mean-r5": (
        "8 shards, 5 rounds, --mix mean, lr 0.05",
        f"{PLAIN} --shards 8 --rounds 5 --mix mean --lr 0.05",
    ),
    "defaults": ("CBOW with the defaults, one machine", ""),
    "defaults-p8": ("8 shards, 20 rounds", "--shards 8"),
    "skipgram": ("skip-gram, one machine", f"{SKIPGRAM} --lr 0.05"),
    "skipgram-p8": ("8 shards, 20 rounds", f"{SKIPGRAM} --shards 8 --rounds 20"),
    "nce": ("CBOW with nce, one machine", "--objective nce"),
    "nce-p8": ("8 shards, 20 rounds", "--objective nce --shards 8"),
}
FIGURES = ("analogies", "ws353", "simlex999")
COLUMNS = ["run", *(f"{kind}: {name}" for kind in ("input", "sum") for name in FIGURES)]


def main() -> None:
    """Train and evaluate the rows that are missing, and write the table."""
    parser = argparse.ArgumentParser(description="word vectors of a cluster and of one machine")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of analogies and wordsim")
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--cluster", default="local:0")
    parser.add_argument("--found", type=Path, default=Path("bench-cluster.jsonl"))
    parser.add_argument("--json", type=Path)
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
    for seed in given.seeds.split(","):
        for name in given.rows.split(","):
            if not any(one["row"] == name and one["seed"] == seed for one in read(given.found)):
                figures = measured(given, sets, ROWS[name][1].split(), seed)
                with given.found.open("a") as file:
                    file.write(json.dumps({"row": name, "seed": seed, **figures}) + "\n")
    write(given, read(given.found))


def read(path: Path) -> list[dict[str, Any]]:
    """Return the figures so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measured(
    given: argparse.Namespace, sets: dict[str, Path], flags: list[str], seed: str
) -> dict[str, Any]:
    """Train once; return the figures of both kinds of vectors."""
    if "--shards" in flags:
        flags = [*flags, "--cluster", given.cluster]
    with tempfile.TemporaryDirectory() as folder:
        output, tables = Path(folder, "sum.bin"), Path(folder, "tables")
        start = time.monotonic()
        run("train", given.corpus, "--output", output, "--vectors", "sum", "--output-tables",
            tables, "--threads", "1", "--seed", seed, "--quiet", *flags)  # fmt: skip
        seconds = time.monotonic() - start
        manifest = json.loads(Path(f"{output}.json").read_text())
        figures = {
            kind: {
                name: evaluated(vectors, name, path) for name, path in sets.items()
            }
            for kind, vectors in (("input", tables), ("sum", output))
        }  # fmt: skip
    cluster = manifest.get("cluster", {})
    return {"seconds": round(seconds, 1), "bytes_sent": cluster.get("bytes_sent", 0), **figures}


def evaluated(vectors: Path, name: str, path: Path) -> float:
    """Return the accuracy of analogies, or the rank correlation of similarities."""
    kind = "analogies" if name == "analogies" else "similarity"
    found = json.loads(run("eval", kind, vectors, path, "--json"))
    return float(found["accuracy" if kind == "analogies" else "spearman"])


def run(*arguments: object) -> str:
    """Run the program and return its output."""
    command = [sys.executable, "-m", "dcme_w2v", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def write(given: argparse.Namespace, found: list[dict[str, Any]]) -> None:
    """Print the table of means over the seeds, and write it."""
    rows = []
    for name, (title, _) in ROWS.items():
        runs = [one for one in found if one["row"] == name]
        if not runs:
            continue
        cells = [f"{title} ({len(runs)} seed{'s' * (len(runs) > 1)})"]
        for kind in ("input", "sum"):
            for figure in FIGURES:
                value = statistics.mean(one[kind][figure] for one in runs)
                cells.append(f"{value:.1%}" if figure == "analogies" else f"{value:.3f}")
        rows.append(cells)
        print(" | ".join(cells))
    if given.json:
        seeds = ", ".join(sorted({one["seed"] for one in found}))
        results_files.record(
            given.json,
            "Word vectors of a cluster and of one machine",
            COLUMNS,
            rows,
            seeds=f"{seeds}; the number of seeds is in each row",
            data="English Wikipedia, 17 million tokens",
        )


if __name__ == "__main__":
    main()
