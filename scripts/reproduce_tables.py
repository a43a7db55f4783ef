"""Compare the vectors that two tables make, and the same tables made by gensim.

    python scripts/reproduce_tables.py [--seeds 3] [--corpus FILE] [--json FILE]

CBOW with negative sampling, 100 dimensions, window 5, five epochs, two threads. gensim writes its
input vectors; its two tables are added up here, so that it can be seen where the gain comes from.
The learning rate of gensim is word2vec.c's 0.05.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from collections.abc import Callable
from pathlib import Path

import peers
import results

WORD2VEC = peers.Setting()
# The defaults of this program for a vocabulary of 70,567 words, for a program that has others.
DEFAULTS = peers.Setting(negative=10, sample=1.4e-4, noise_power=0.5)
WIDE = peers.Setting(window=10, negative=20)

Trainer = Callable[[Path, Path, int], peers.Run]


def ours(setting: peers.Setting, **options: object) -> Trainer:
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
HEADS = ("CBOW", "analogies, top 30,000", "whole vocabulary", "WS-353", "SimLex-999")


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="runs of each row")
    parser.add_argument("--corpus", type=Path, help="plain text; default: the development corpus")
    parser.add_argument("--folder", help="where vectors and the decompressed corpus go")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    given = parser.parse_args()
    folder, data = peers.work_folder(given.folder), peers.development_data()
    corpus = given.corpus or peers.plain_corpus(folder)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ROWS}
    for seed in range(1, given.seeds + 1):
        for name, train in ROWS.items():
            train(corpus, folder / "vectors.bin", seed)
            found[name].append(peers.evaluate(folder / "vectors.bin", data))
            print(f"# {name}, seed {seed}: {found[name][-1]}", flush=True)
    rows = [[name.strip(), *cells(runs)] for name, runs in found.items()]
    print(*rows, sep="\n")
    if given.json:
        facts = {
            "seeds": f"{given.seeds}, means",
            "data": "English Wikipedia, 17 million tokens, 70,567 words",
        }
        results.record(given.json, "One table or both, ours and gensim's", HEADS, rows, **facts)


def cells(runs: list[dict[str, float]]) -> list[str]:
    """Return the means of some runs as text."""
    mean = {name: statistics.mean(run[name] for run in runs) for name in COLUMNS}
    return [f"{100 * mean[name]:.1f} %" for name in COLUMNS[:2]] + [
        f"{mean[name]:.3f}" for name in COLUMNS[2:]
    ]


if __name__ == "__main__":
    main()
