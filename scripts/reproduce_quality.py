"""Train word vectors by every objective, gensim and fastText on one corpus and compare them.

    python scripts/reproduce_quality.py [--corpus FILE] [--seeds 1] [--folder FOLDER] [--json FILE]

Prints the table of the README: quality, and the training speed as a multiple of gensim's, with all
programs taking turns in one run. Without --corpus it uses the development data beside the project.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import peers

BASE = peers.Setting()
SKIPGRAM = peers.Setting(model="skipgram")
TREE, SKIPGRAM_TREE = (replace(setting, negative=0) for setting in (BASE, SKIPGRAM))


def ours(setting: peers.Setting, **options: object) -> Callable[[Path, Path, int], peers.Run]:
    """Return a trainer of this program with further options."""
    return lambda corpus, output, seed: peers.train_ours(
        corpus, output, setting, **{**options, "seed": seed}
    )


ROWS: dict[str, Callable[[Path, Path, int], peers.Run]] = {
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
COLUMNS = ("analogies_30000", "analogies_all", "ws353", "simlex999")


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, help="plain text; default: the development corpus")
    parser.add_argument("--seeds", type=int, default=1, help="runs of each row")
    parser.add_argument("--only", help="only rows whose name holds this text")
    parser.add_argument("--folder", help="where vectors and the decompressed corpus go")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    given = parser.parse_args()
    folder = peers.work_folder(given.folder)
    data = peers.development_data()
    corpus = given.corpus or peers.plain_corpus(folder)
    results: dict[str, list[dict[str, float]]] = {}
    for seed in range(1, given.seeds + 1):
        for name, train in ROWS.items():
            if given.only and given.only not in name and not name.startswith("gensim"):
                continue
            output = folder / "vectors.bin"
            if name.startswith("fastText"):
                output = folder / "vectors.txt"
            run = train(corpus, output, seed)
            figures = {"train_seconds": run.train_seconds, **peers.evaluate(output, data)}
            results.setdefault(name, []).append(figures)
            print(f"# {name}, seed {seed}: {figures}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=2) + "\n")
    print_table(results)


def print_table(results: dict[str, list[dict[str, float]]]) -> None:
    """Print means over the seeds, and speed against gensim's row of the same model."""
    print("| | analogies, top 30,000 | whole vocabulary | WS-353 | SimLex | speed over gensim |")
    print("|---|---|---|---|---|---|")
    for name, runs in results.items():
        model = "skipgram" if "skipgram" in name else "cbow"
        gensim = results[f"gensim corpus_file, {model}{' hs' * name.endswith(' hs')}"]
        seconds = statistics.median(run["train_seconds"] for run in runs)
        baseline = statistics.median(run["train_seconds"] for run in gensim)
        mean = {c: statistics.mean(run[c] for run in runs) for c in COLUMNS}
        print(
            f"| {name} | {100 * mean['analogies_30000']:.1f} % | "
            f"{100 * mean['analogies_all']:.1f} % | {mean['ws353']:.3f} | "
            f"{mean['simlex999']:.3f} | {baseline / seconds:.1f} |"
        )


if __name__ == "__main__":
    main()
