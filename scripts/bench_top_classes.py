"""Compare the most probable of many classes by bounds with those of the scores of all classes.

    python scripts/bench_top_classes.py [--classes 24001 100000] [--documents 60000 150000]
        [--held-out 10000] [--runs 5] [--threads 1] [--seeds 1 2 3] [--json FILE]

Data, and the models (`dcme`, two epochs), are those of `bench_many_classes.py`. All ways run
alternately in one process. Scores: of all classes, nothing else. All: scores, the highest ones, and
their probabilities. Bounds: `BestClasses`, whose codes are made by the first call. The classes are
compared; they must be equal.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_many_classes as many
import numpy as np
import results

from dcme_w2v.classify.best import BestClasses
from dcme_w2v.classify.fit import fit
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.top import batches_of, most_probable
from dcme_w2v.classify.trainer import Weights, core_documents

COUNTS = (1, 5, 10)  # classes a document
COLUMNS = ("classes", "features a document", "top", "scores, µs", "all, µs", "bounds, µs",
           "scores / bounds", "all / bounds", "codes, s", "scored classes a document")  # fmt: skip


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call, and what it returned."""
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def measured(weights: Weights, matrix: Any, count: int, args: argparse.Namespace) -> dict[str, Any]:
    """Return the median seconds of each way."""
    documents, times = core_documents(matrix), dict[str, list[float]]()

    def scores() -> None:
        for rows in batches_of(matrix.shape[0], weights.classes, args.threads):
            weights.raw_scores(documents, rows.start, rows.stop, args.threads)

    def every() -> Any:
        found = most_probable(weights, documents, count, args.threads)
        return np.concatenate([best for best, _ in found])

    for _ in range(args.runs):
        search = BestClasses(weights)
        bounds = functools.partial(search.find, matrix, count, args.threads)
        first, _ = seconds(bounds)
        again, best = seconds(bounds)
        took, wanted = seconds(every)
        assert np.array_equal(best, wanted) and search.scored
        for name, value in (
            ("codes", first - again), ("bounds", again), ("all", took),
            ("scores", seconds(scores)[0]),
        ):  # fmt: skip
            times.setdefault(name, []).append(value)
    found: dict[str, Any] = {name: statistics.median(one) for name, one in times.items()}
    return found | {"scored": search.scored / 2 / matrix.shape[0]}


def one_model(classes: int, documents: int, seed: int, args: argparse.Namespace) -> list[Any]:
    """Train a model and return what was measured for each number of classes a document."""
    train, test = many.read(classes, documents, seed, args.held_out)
    _, names, learned, held = many.vectors(train, test, classes)
    options = ClassifyOptions(epochs=2, threads=args.threads, seed=seed, objective="dcme")
    weights, _ = fit(learned, len(names), resolved(options, len(names)), reporter=many.Quiet())
    matrix = held.matrix
    size = {"classes": len(names), "features": matrix.nnz / matrix.shape[0]}
    size["documents"] = matrix.shape[0]
    return [size | {"top": n} | measured(weights, matrix, n, args) for n in COUNTS]


def row(runs: list[dict[str, Any]]) -> list[str]:
    """Return the medians of the seeds as a row of the table."""
    median = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    each = {name: median[name] / median["documents"] * 1e6 for name in ("scores", "all", "bounds")}
    return [
        f"{median['classes']:,.0f}", f"{median['features']:.0f}", f"{median['top']}",
        *(f"{value:.0f}" for value in each.values()),
        f"{each['scores'] / each['bounds']:.1f}", f"{each['all'] / each['bounds']:.1f}",
        f"{median['codes']:.2f}", f"{median['scored']:.0f}",
    ]  # fmt: skip


def main() -> None:
    """Measure each number of classes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[24_001, 100_000])
    parser.add_argument("--documents", type=int, nargs="+", default=[60_000, 150_000])
    parser.add_argument("--held-out", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()
    table = []
    for classes, documents in zip(args.classes, args.documents, strict=True):
        runs = [one_model(classes, documents, seed, args) for seed in args.seeds]
        table += [row([run[i] for run in runs]) for i in range(len(COUNTS))]
    if args.json:
        results.record(
            args.json, "Classification: the most probable classes by bounds", COLUMNS, table,
            seeds=", ".join(map(str, args.seeds)),
            data="paragraphs of enwiki17 by article, above 24,001 classes the next word",
        )  # fmt: skip
    print(results.markdown_table({"columns": list(COLUMNS), "rows": table}))


if __name__ == "__main__":
    main()
