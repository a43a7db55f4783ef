"""Training speed against gensim's corpus_file (and fastText) in one run, with quality.

    python scripts/bench_speed.py [--runs 5] [--epochs 1] [--quality] [--json FILE]
        [--chart FILE.png]

The programs alternate; figures are medians of raw tokens a second of training, and ratios. With
--quality each setting is also trained for five epochs by this program and gensim and evaluated.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

import peers

SETTINGS = {
    "cbow 100/5/5": peers.Setting(),
    "cbow 100/10/20": peers.Setting(window=10, negative=20),
    "cbow 300/5/5": peers.Setting(dim=300),
    "skipgram 100/5/5": peers.Setting(model="skipgram"),
}


def main() -> None:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="plain text; default: the development corpus")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--only", default="", help="only settings whose name contains this text")
    parser.add_argument("--fasttext", action="store_true", help="time fastText, too")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--folder", help="folder for vectors and the decompressed corpus")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    parser.add_argument("--chart", type=Path, help="draw throughput to this PNG (needs [plot])")
    given = parser.parse_args()
    folder = peers.work_folder(given.folder)
    corpus = given.corpus or peers.plain_corpus(folder)
    wanted = {name: setting for name, setting in SETTINGS.items() if given.only in name}
    results: dict[str, Any] = {"speed": speed(corpus, folder, wanted, given)}
    if given.quality:
        results["quality"] = quality(corpus, folder, wanted)
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")
    if given.chart:
        draw(results["speed"], given.chart)


def speed(
    corpus: Path, folder: Path, wanted: dict[str, peers.Setting], given: argparse.Namespace
) -> dict[str, dict[str, list[float]]]:
    """Time every setting with 2 threads and 1, in turns; print medians and ratios."""
    found: dict[str, dict[str, list[float]]] = {}
    print("| dim/window/negatives | ours, M tokens/s | gensim | ours / gensim | 2 threads / 1 |")
    print("|---|---|---|---|---|")
    for name, setting in wanted.items():
        setting = dataclasses.replace(setting, epochs=given.epochs)
        single = dataclasses.replace(setting, threads=1)
        times: dict[str, list[float]] = {"ours": [], "ours, 1 thread": [], "gensim": []}
        for _ in range(given.runs):
            output = folder / "vectors.bin"
            for row, run in (
                ("ours", peers.train_ours(corpus, output, setting)),
                ("gensim", peers.train_gensim(corpus, output, setting)),
                ("ours, 1 thread", peers.train_ours(corpus, output, single)),
            ):
                times[row].append(run.tokens * given.epochs / run.train_seconds / 1e6)
            if given.fasttext:
                run = peers.train_fasttext(corpus, folder / "vectors.txt", setting)
                # fastText does not report tokens, and its seconds include counting
                tokens = peers.train_ours(corpus, output, setting).tokens * given.epochs
                times.setdefault("fastText", []).append(tokens / run.train_seconds / 1e6)
        found[name] = times
        ours, gensim, one = (
            statistics.median(times[row]) for row in ("ours", "gensim", "ours, 1 thread")
        )
        print(
            f"| {name} | {ours:.2f} | {gensim:.2f} | {ours / gensim:.1f} | {ours / one:.2f} |",
            flush=True,
        )
    return found


def quality(corpus: Path, folder: Path, wanted: dict[str, peers.Setting]) -> dict[str, Any]:
    """Train each setting for five epochs here and by gensim, evaluate both, print a table."""
    data = peers.development_data()
    found: dict[str, Any] = {}
    print("\n| | analogies, top 30,000 | WS-353 | SimLex |\n|---|---|---|---|")
    for name, setting in wanted.items():
        for row, train in (("ours", peers.train_ours), ("gensim", peers.train_gensim)):
            output = folder / "vectors.bin"
            train(corpus, output, setting)
            figures = peers.evaluate(output, data)
            found[f"{name}, {row}"] = figures
            print(
                f"| {name}, {row} | {100 * figures['analogies_30000']:.1f} % | "
                f"{figures['ws353']:.3f} | {figures['simlex999']:.3f} |",
                flush=True,
            )
    return found


def draw(speeds: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Draw the median throughput of each program and setting as bars."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4))
    rows = sorted({row for times in speeds.values() for row in times})
    for place, row in enumerate(rows):
        heights = [statistics.median(times.get(row, [0.0])) for times in speeds.values()]
        axes.bar([i + place / (len(rows) + 1) for i in range(len(speeds))], heights,
                 1 / (len(rows) + 1),
                 label=row if "thread" in row else f"{row}, 2 threads")  # fmt: skip
    axes.set_xticks([i + 0.3 for i in range(len(speeds))], list(speeds))
    axes.set_ylabel("million raw tokens a second")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
