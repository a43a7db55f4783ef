"""Time the levels and the statistics of fused features, and measure small models.

    python scripts/bench_fused.py [--only levels statistics size] [--runs 3] [--publish]

Levels: 10^5 to 10^7 numbers, 8 levels, exact and in bins, beside kmeans1d (without weights) where
it is installed. Statistics: 20 Newsgroups, one and two threads, in turns with scipy's product X.T @
P of float64; the ratios are valid on a busy machine, too. Small models: maximum entropy on all
labels of 20 Newsgroups, shrunk; bytes on disk are those of the whole folder. --publish writes
docs/results/.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import document_data as data
import numpy as np
import results
from scipy.sparse import csr_matrix

from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.model import Classifier, load_classifier
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions
from dcme_w2v.few_labels import initial
from dcme_w2v.few_labels.options import ShrinkOptions
from dcme_w2v.few_labels.statistics import Statistics
from dcme_w2v.numeric.levels import BINS, fit_levels
from dcme_w2v.small_models.shrink import shrink, squares_of

KEPT = (None, "1/5", "1/10", "1/20", "1/30", "1/50", "1/100")
ALTERNATIONS = 20  # repetitions of the statistics per run, as one takes milliseconds
LABELLED = 400  # documents of the initial model whose probabilities are added


def main() -> None:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("levels", "statistics", "size")
    parser.add_argument("--only", nargs="+", default=parts, choices=parts)
    parser.add_argument("--runs", type=int, default=3, help="the fastest one is reported")
    parser.add_argument("--publish", action="store_true", help="write docs/results/")
    given = parser.parse_args()
    train, test = data.load("20news")
    names = sorted({own[0] for own in train.labels})
    labels, truth = ([names.index(own[0]) for own in half.labels] for half in (train, test))
    text = TextFeatures(FeatureOptions())
    rows = text.fit_transform(raw.encode() for raw in train.raw)
    if "levels" in given.only:
        table = levels(given.runs)
        show(table)
        if given.publish:
            results.record(
                results.RESULTS / "fused-speed.json",
                "Fused features: levels, seconds (fastest run)",
                ["step", "seconds"],
                table,
                data="random numbers",
            )
    if "statistics" in given.only:
        table = statistics(rows, np.array(labels), given.runs)
        show(table)
        if given.publish:
            results.record(
                results.RESULTS / "fused-statistics.json",
                "Fused features: the statistics pass",
                ["step", "time as a share of scipy's"],
                table,
                seeds=f"{ALTERNATIONS * given.runs} runs in turns, the fastest of each",
                data="20 Newsgroups, 11,314 documents, 20 classes",
            )
    if "size" in given.only:
        table = sizes(rows, np.array(labels), np.array(truth), names, text, test.raw)
        show(table)
        if given.publish:
            results.record(
                results.RESULTS / "fused-size.json",
                "Small models of maximum entropy on 20 Newsgroups, all labels",
                ["weights kept, levels, words", "bytes on disk", "bytes of levels", "accuracy, %"],
                table,
                data="20 Newsgroups by date, headers kept",
                chart={"kind": "bar", "x": "accuracy, %"},
            )


def show(table: list[list[str]]) -> None:
    """Print a table."""
    print("\n".join(" | ".join(row) for row in table))


def fastest(function: Callable[[], object], runs: int) -> str:
    """Return the seconds of the fastest run."""
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return f"{min(found):.5f}"


def levels(runs: int) -> list[list[str]]:
    """Return rows of the clustering of numbers."""
    table = []
    for power in (5, 6, 7):
        random = np.random.default_rng(power)
        numbers, weights = random.exponential(size=10**power), random.exponential(size=10**power)
        cluster = functools.partial(fit_levels, numbers, weights, 8)
        if power < 7:
            exact = fastest(functools.partial(cluster, bins=1 << 30), runs)
            table.append([f"levels of 10^{power} numbers, exact", exact])
            try:
                import kmeans1d

                other = fastest(functools.partial(kmeans1d.cluster, numbers, 8), 1)
                table.append([f"kmeans1d of 10^{power} numbers, without weights", other])
            except ImportError:
                print("# kmeans1d is not installed")
        if power > 5:
            binned = fastest(functools.partial(cluster, bins=BINS), runs)
            table.append([f"levels of 10^{power} numbers, in bins", binned])
    return table


def statistics(rows: csr_matrix, labels: np.ndarray, runs: int) -> list[list[str]]:
    """Return rows of the statistics pass."""
    random = np.random.default_rng(0)
    some = np.sort(random.permutation(len(labels))[:LABELLED])
    weights = initial.train(csr_matrix(rows[some]), labels[some], 20, 1e-6, 1)
    log_p = np.concatenate(list(initial.Rows(rows, 1).log_probabilities(weights)))
    p, wide = np.exp(log_p), csr_matrix(rows, dtype=np.float64)

    def add(threads: int) -> None:
        Statistics.zeros(rows.shape[1], 20).add(rows, log_p, threads)

    steps: dict[str, Callable[[], object]] = {
        "statistics, 1 thread": functools.partial(add, 1),
        "statistics, 2 threads": functools.partial(add, 2),
        "scipy's X.T @ P, float64": lambda: wide.T @ p,
    }
    found: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ALTERNATIONS * runs):
        for name, step in steps.items():
            found[name].append(float(fastest(step, 1)))
    least = min(found["scipy's X.T @ P, float64"])
    return [[name, f"{min(times) / least:.2f}"] for name, times in found.items()]


def sizes(
    rows: csr_matrix,
    labels: np.ndarray,
    truth: np.ndarray,
    names: list[str],
    text: TextFeatures,
    raw: list[str],
) -> list[list[str]]:
    """Return rows of models in folders."""
    weights = initial.train(rows, labels, len(names), 1e-6, 1)
    model = Classifier(names, weights, text, ClassifyOptions(solver="lbfgs"))
    table = []
    texts = [one.encode() for one in raw]
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "full")
        table.append(measured("all, float32, plain", Path(folder) / "full", texts, truth))
        for kept in KEPT:
            for words in ("front", "hashed"):
                for count in (4, 8) if words == "front" else (8,):
                    small = shrink(
                        model, ShrinkOptions(keep=kept, levels=count, words=words),
                        squares_of(model),
                    )  # fmt: skip
                    path = Path(folder) / f"{kept or 'all'}-{words}-{count}".replace("/", "_")
                    small.save(path)
                    name = f"{kept or 'all'}, {count}, {words}"
                    table.append(measured(name, path, texts, truth))
    return table


def measured(name: str, path: Path, texts: list[bytes], truth: np.ndarray) -> list[str]:
    """Return the row of a model in a folder."""
    model = load_classifier(path)
    found = np.concatenate(list(model.log_probabilities(model.rows(texts), 1))).argmax(axis=1)
    total = sum(file.stat().st_size for file in path.iterdir())
    of_levels = sum(file.stat().st_size for file in path.glob("levels*")) or sum(
        file.stat().st_size for file in path.glob("weights*")
    )
    return [name, f"{total:,}", f"{of_levels:,}", f"{100 * np.mean(found == truth):.2f}"]


if __name__ == "__main__":
    main()
