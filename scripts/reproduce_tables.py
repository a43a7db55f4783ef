"""Compare the vectors derived from two tables, ours and gensim's.

    python scripts/reproduce_tables.py [--seeds 3] [--corpus FILE] [--json FILE] [--publish]

CBOW with negative sampling, 100 dimensions, window 5, five epochs, two threads. gensim writes its
input vectors; its two tables are added here, which shows where the gain comes from. The learning
rate of gensim is word2vec.c's 0.05. With --json a stopped run is resumed; --publish writes the
table of docs/results/ from the figures that are there.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import document_data
import peers
import results

WORD2VEC = peers.Setting()
# The defaults of this program for a vocabulary of 70,567 words, as options of gensim.
DEFAULTS = peers.Setting(negative=10, sample=1.4e-4, noise_power=0.5)
WIDE = peers.Setting(window=10, negative=20)

Trainer = Callable[[Path, Path, int], peers.Run]


def ours(setting: peers.Setting, **options: Any) -> Trainer:
    """Return a trainer of this program."""
    return lambda corpus, output, seed: peers.train_ours(
        corpus, output, setting, **{**options, "seed": seed}
    )


def gensim(setting: peers.Setting, both: bool) -> Trainer:
    """Return a trainer of gensim."""
    return lambda corpus, output, seed: peers.train_gensim(
        corpus, output, dataclasses.replace(setting, seed=seed), both
    )


ROWS: dict[str, Trainer] = {
    "5 samples, 1e-3, power 0.75: gensim": gensim(WORD2VEC, False),
    "… gensim, both tables added by hand": gensim(WORD2VEC, True),
    "… `--vectors input`": ours(WORD2VEC),
    "… `--vectors sum`": ours(WORD2VEC, vectors="sum"),
    "… `--vectors unit-sum`": ours(WORD2VEC, vectors="unit-sum"),
    "defaults (10 samples, 1.4e-4, power 0.5): gensim": gensim(DEFAULTS, False),
    "… gensim, both tables added by hand ": gensim(DEFAULTS, True),
    "… `--vectors input` ": ours(DEFAULTS, vectors="input", lr=0.075),
    "… `--vectors sum`, the default": ours(WORD2VEC, own_noise=True),
    "window 10, 20 samples, 1e-3, power 0.75: gensim": gensim(WIDE, False),
    "… `--vectors sum` ": ours(WIDE, vectors="sum"),
}
COLUMNS = ("analogies_30000", "analogies_all", "ws353", "simlex999")
HEADS = ("CBOW", "analogies, top 30,000", "whole vocabulary", "WS-353", "SimLex-999", "seeds")


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="runs of each row")
    parser.add_argument("--corpus", type=Path, help="plain text; default: the development corpus")
    parser.add_argument("--folder", help="folder for vectors and the decompressed corpus")
    parser.add_argument("--json", type=Path, help="keep the figures here, and continue from them")
    parser.add_argument("--only", type=int, nargs="+", help="only the rows of these numbers")
    parser.add_argument("--publish", action="store_true", help="write docs/results/ and do not run")
    given = parser.parse_args()
    kept = document_data.Results(given.json)
    if not given.publish:
        run(kept, given)
    rows = [[name.strip(), *cells(kept.figures.get(name, {}))] for name in ROWS]
    print(*rows, sep="\n")
    if given.publish:
        results.record(
            results.RESULTS / "words-tables.json", "One table or both, ours and gensim's", HEADS,
            rows, seeds="means; how many runs is in the last column",
            data="English Wikipedia, 17 million tokens, 70,567 words",
        )  # fmt: skip


def run(kept: document_data.Results, given: argparse.Namespace) -> None:
    """Compute the missing figures."""
    folder, data = peers.work_folder(given.folder), peers.development_data()
    corpus = given.corpus or peers.plain_corpus(folder)

    def figures(train: Trainer, seed: int) -> dict[str, float]:
        train(corpus, folder / "vectors.bin", seed)
        return peers.evaluate(folder / "vectors.bin", data)

    for seed in range(1, given.seeds + 1):
        for number, (name, train) in enumerate(ROWS.items(), 1):
            if not given.only or number in given.only:
                kept.get(name, seed, functools.partial(figures, train, seed))


def cells(runs: dict[str, dict[str, float]]) -> list[str]:
    """Return the means of some runs as text, and the number of runs."""
    if not runs:
        return ["-"] * len(COLUMNS) + ["0"]
    mean = {name: statistics.mean(run[name] for run in runs.values()) for name in COLUMNS}
    shares = [f"{100 * mean[name]:.1f} %" for name in COLUMNS[:2]]
    return [*shares, *(f"{mean[name]:.3f}" for name in COLUMNS[2:]), str(len(runs))]


if __name__ == "__main__":
    main()
