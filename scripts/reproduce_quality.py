"""Train word vectors by every objective, gensim and fastText on one corpus and compare them.

    python scripts/reproduce_quality.py [--corpus FILE] [--seeds 1] [--folder FOLDER] [--json FILE]

Prints and writes the table of the README: quality, and the training speed as a multiple of
gensim's, with all programs alternating in one run. Without --corpus it uses the development data
beside the project.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import peers
import results as results_files

BASE = peers.Setting()
SKIPGRAM = peers.Setting(model="skipgram")
TREE, SKIPGRAM_TREE = (replace(setting, negative=0) for setting in (BASE, SKIPGRAM))


def ours(setting: peers.Setting, **options: object) -> Callable[[Path, Path, int], peers.Run]:
    """Return a trainer of this program with further options."""
    return lambda corpus, output, seed: peers.train_ours(
        corpus, output, setting, **{**options, "seed": seed}
    )


ROWS: dict[str, Callable[[Path, Path, int], peers.Run]] = {
    "cbow, defaults": lambda c, o, s: peers.train_ours(c, o, BASE, own_noise=True, seed=s),
    "cbow ns": ours(BASE),
    "gensim corpus_file, cbow": lambda c, o, s: peers.train_gensim(c, o, BASE),
    "cbow ns, true gradient": ours(BASE, gradient="exact", input_rate=7),
    "cbow ns, fixed window": ours(BASE, window_mode="fixed"),
    "cbow ns, linear window": ours(BASE, window_mode="linear"),
    "cbow nce": ours(BASE, objective="nce"),
    "cbow dcme": ours(BASE, objective="dcme"),
    "skipgram ns": ours(SKIPGRAM),
    "skipgram nce": ours(SKIPGRAM, objective="nce"),
    "gensim corpus_file, skipgram": lambda c, o, s: peers.train_gensim(c, o, SKIPGRAM),
    "cbow hs": ours(TREE),
    "gensim corpus_file, cbow hs": lambda c, o, s: peers.train_gensim(c, o, TREE),
    "skipgram hs": ours(SKIPGRAM_TREE),
    "gensim corpus_file, skipgram hs": lambda c, o, s: peers.train_gensim(c, o, SKIPGRAM_TREE),
    "fastText, cbow": lambda c, o, s: peers.train_fasttext(c, o, BASE),
}
HEADS = ("program", "analogies, top 30,000", "analogies, whole vocabulary", "WS-353", "SimLex-999",
         "training speed, gensim = 1")  # fmt: skip
CHART = {"kind": "bar", "x": HEADS[-1]}
DATA = "English Wikipedia, 17 million tokens, lower case, 70,567 words that occur at least 5 times"
COLUMNS = ("analogies_30000", "analogies_all", "ws353", "simlex999")


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="plain text; default: the development corpus")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each row")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")
    parser.add_argument("--folder", help="folder for vectors and the decompressed corpus")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    given = parser.parse_args()
    folder = peers.work_folder(given.folder)
    data = peers.development_data()
    corpus = given.corpus or peers.plain_corpus(folder)
    results: dict[str, list[dict[str, float]]] = {}
    wanted = [name for name in ROWS if given.only in name]
    chosen = {*wanted, *map(baseline_of, wanted)}
    for seed in range(1, given.seeds + 1):
        for name, train in ROWS.items():
            if name not in chosen:
                continue
            output = folder / "vectors.bin"
            if name.startswith("fastText"):
                output = folder / "vectors.txt"
            run = train(corpus, output, seed)
            figures = {"train_seconds": run.train_seconds, **peers.evaluate(output, data)}
            results.setdefault(name, []).append(figures)
            print(f"# {name}, seed {seed}: {figures}", flush=True)
    rows = table_of(results)
    for row in rows:
        print(" | ".join(row))
    if given.json:
        results_files.record(
            given.json, "Word vectors: quality and training speed", HEADS, rows,
            seeds=", ".join(map(str, range(1, given.seeds + 1))), data=DATA, chart=CHART,
        )  # fmt: skip


def baseline_of(name: str) -> str:
    """Return gensim's row of the same model and kind of objective."""
    model = "skipgram" if "skipgram" in name else "cbow"
    return f"gensim corpus_file, {model}{' hs' * name.endswith(' hs')}"


def table_of(results: dict[str, list[dict[str, float]]]) -> list[list[str]]:
    """Return the means over the seeds, and the speed relative to gensim's row of the same kind."""
    rows = []
    for name, runs in results.items():
        gensim = results[baseline_of(name)]
        seconds = statistics.median(run["train_seconds"] for run in runs)
        baseline = statistics.median(run["train_seconds"] for run in gensim)
        mean = {c: statistics.mean(run[c] for run in runs) for c in COLUMNS}
        shares = [f"{100 * mean[c]:.1f} %" for c in ("analogies_30000", "analogies_all")]
        pairs = [f"{mean[c]:.3f}" for c in ("ws353", "simlex999")]
        rows.append([name, *shares, *pairs, f"{baseline / seconds:.1f}"])
    return rows


if __name__ == "__main__":
    main()
