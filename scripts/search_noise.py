"""Search negative samples, noise and subsampling for the sum of both tables, by CBOW's ns.

    python scripts/search_noise.py [--seeds 3] [--only NAME] [--json FILE]

Trains each setting on the development corpus and on every second article of it, with several seeds,
and prints the scores of the input vectors, of the sum of both tables and of the sum of both at unit
length. All other options are the defaults.
"""

from __future__ import annotations

import argparse
import lzma
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import peers
import results

from dcme_w2v.options import TrainOptions, VocabularyOptions
from dcme_w2v.text.encode import EncodedCorpus, encode
from dcme_w2v.words import evaluate
from dcme_w2v.words.combined import combined
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.trainer import Trainer
from dcme_w2v.words.vectors import Vectors

WORD2VEC = {"negative": 5, "sample": 1e-3, "noise_power": 0.75}
TEN = {**WORD2VEC, "negative": 10}
SETTINGS: dict[str, dict[str, Any]] = {
    "word2vec's: 5 samples, 1e-3, 0.75": WORD2VEC,
    "10 samples": TEN,
    "10 samples, power 0.5": {**TEN, "noise_power": 0.5},
    "10 samples, sample 1e-4": {**TEN, "sample": 1e-4},
    "5 samples, 1e-4, power 0.5": {**WORD2VEC, "sample": 1e-4, "noise_power": 0.5},
    "10 samples, 1e-4, power 0.5": {**TEN, "sample": 1e-4, "noise_power": 0.5},
    "10 samples, 1e-4, power 0.25": {**TEN, "sample": 1e-4, "noise_power": 0.25},
    "10 samples, 3e-5, power 0.5": {**TEN, "sample": 3e-5, "noise_power": 0.5},
    "10 samples, 1e-4, power 0.5, lr 0.1": {
        **TEN,
        "sample": 1e-4,
        "noise_power": 0.5,
        "lr": 0.1,
    },
    "default": {},
}
TABLES = ("input", "sum", "unit-sum")
COLUMNS = ("text", "setting", "vectors", "analogies, top 30,000", "WS-353", "SimLex-999")


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="runs of each setting")
    parser.add_argument("--only", help="only settings whose name contains this text")
    parser.add_argument("--folder", help="folder for the decompressed texts")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    given = parser.parse_args()
    folder, data = peers.work_folder(given.folder), peers.development_data()
    texts = {"whole": peers.plain_corpus(folder), "every second article": half_of(folder, data)}
    rows = []
    for text, path in texts.items():
        corpus = encode((str(path),), VocabularyOptions(), threads=2)
        for name, setting in SETTINGS.items():
            if given.only is None or given.only in name:
                runs = [scores(corpus, setting, seed + 1, data) for seed in range(given.seeds)]
                rows += [[text, name, *cells] for cells in means(runs)]
                print(*rows[-len(TABLES) :], sep="\n", flush=True)
    if given.json:
        seeds = f"{given.seeds}, means"
        what = "English Wikipedia, 17 million tokens, and every second article of it"
        results.record(
            given.json, "Noise and subsampling, CBOW ns", COLUMNS, rows, seeds=seeds, data=what
        )


def half_of(folder: Path, data: Path) -> Path:
    """Write every second article of the development corpus to a file, and return its path."""
    target = folder / "half.txt"
    corpora = data / "corpora"
    with (
        lzma.open(corpora / "enwiki17.articles.xz", "rt") as articles,
        lzma.open(corpora / "enwiki17.txt.xz", "rt") as lines,
        target.open("w") as file,
    ):
        numbers: dict[str, int] = {}
        for article, line in zip(articles, lines, strict=True):
            if numbers.setdefault(article, len(numbers)) % 2 == 0:
                file.write(line)
    return target


def scores(
    corpus: EncodedCorpus, setting: dict[str, Any], seed: int, data: Path
) -> list[tuple[float, float, float]]:
    """Train once; return analogies, WS-353 and SimLex of each of `TABLES`."""
    options = resolved(TrainOptions(seed=seed, **setting), len(corpus.vocabulary))
    training = Trainer(corpus.ids, corpus.vocabulary.counts, options)
    for epoch in range(options.epochs):
        training.epoch(epoch)
    found = []
    for kind in TABLES:
        matrix = np.array(combined(training.input, training.output, kind))
        vectors = Vectors(corpus.vocabulary, matrix)
        analogies = evaluate.analogies(vectors, data / "analogies" / "questions-words.txt")
        pairs = [
            evaluate.similarity(vectors, data / "wordsim" / f"{name}.txt").spearman
            for name in ("ws353", "simlex999")
        ]
        found.append((float(analogies.total.accuracy or 0), *pairs))
    return found


def means(runs: list[list[tuple[float, float, float]]]) -> list[list[str]]:
    """Return the cells of each of `TABLES`: means over the runs."""
    cells = []
    for kind, of_kind in zip(TABLES, zip(*runs, strict=True), strict=True):
        analogies, ws353, simlex = (
            statistics.mean(column) for column in zip(*of_kind, strict=True)
        )
        cells.append([kind, f"{100 * analogies:.1f} %", f"{ws353:.3f}", f"{simlex:.3f}"])
    return cells


if __name__ == "__main__":
    main()
