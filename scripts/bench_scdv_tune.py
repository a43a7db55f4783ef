"""`scdv fit --tune` beside the defaults and beside the best of all it may choose.

    python scripts/bench_scdv_tune.py [--sets NAME ...] [--seeds 3] [--json FILE] [--folder FOLDER]
        [--publish]

Sets are those of `bench_tune.py`. Word vectors (skip-gram, 100 dimensions, 10 epochs) are learnt
from the training documents, document vectors of each choice are classified by LinearSVC with C 1
trained on first labels, and the figure is its accuracy on the test documents. The best choice is
selected on them, so it is an upper bound and no method.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import bench_tune
import document_data as data
import results
from sklearn.svm import LinearSVC

from dcme_w2v.formats.documents import Document
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.scdv.tune import CLUSTERS, POWERS, tune_documents
from dcme_w2v.words.vectors import Vectors

WORDS: dict[str, Any] = {"dim": 100, "min_count": 5, "epochs": 10}
BUDGET = 60.0  # seconds of a search, the default of the command
SETS = ["20 Newsgroups", "Reuters", "headings", "source code"]
COLUMNS = ("set", "seeds", "defaults, %", "`--tune`, %", "best of six, %",
           "chosen: clusters, power", "search, s", "fit, s")  # fmt: skip


def measured(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Return the accuracy of the defaults, of the choice, and of the best choice."""
    problem = bench_tune.SETS[name](seed)
    training, tested = (
        data.Split(raw, [data.words_of(text).encode() for text in raw], [])
        for raw in (problem.train, problem.test)
    )
    file = data.vectors_of(
        folder, f"{name}-{seed}".replace(" ", "-"), training.words, seed, **WORDS
    )
    vectors, options = Vectors.load(file), ScdvOptions(seed=seed)
    first = [own[0] for own in problem.train_labels]
    documents = [
        Document(tuple(map(str, own)), text, "-", 0)
        for own, text in zip(problem.train_labels, training.words, strict=True)
    ]
    start = time.perf_counter()
    chosen, tuned = tune_documents(documents, vectors, options, (), BUDGET)
    searched = time.perf_counter() - start
    accuracy, fitting = {}, []
    wanted = {(chosen.clusters, chosen.power), (options.clusters, options.power)}
    for clusters, power in sorted(wanted | set(itertools.product(CLUSTERS, POWERS))):
        own = ScdvOptions(seed=seed, clusters=clusters, power=power)
        start = time.perf_counter()
        train, test = data.rows_of(file, training, tested, own)
        fitting.append(time.perf_counter() - start)
        accuracy[clusters, power] = problem.right(LinearSVC().fit(train, first).predict(test))
        print(f"# {name}, {seed}: {clusters}, {power}: {accuracy[clusters, power]:.2f}", flush=True)
    print(f"# {tuned.line}", flush=True)
    return {
        "defaults": accuracy[options.clusters, options.power],
        "tune": accuracy[chosen.clusters, chosen.power], "best": max(accuracy.values()),
        "chosen": f"{chosen.clusters}, {chosen.power:g}", "search": searched,
        "fit": statistics.median(fitting),
    }  # fmt: skip


def row(name: str, found: data.Results) -> list[str]:
    """Return the row of a set."""
    runs = list(found.figures[name].values())
    own = [found.cell(name, figure) for figure in ("defaults", "tune", "best")]
    chosen = "; ".join(str(run["chosen"]) for run in runs)
    times = [f"{statistics.median(run[key] for run in runs):.0f}" for key in ("search", "fit")]
    return [name, str(len(runs)), *own, chosen, *times]


def main() -> None:
    """Measure each set and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=list(bench_tune.SETS), default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="figures; resume from them")
    parser.add_argument("--folder", type=Path, help="keep word vectors here")
    parser.add_argument("--publish", action="store_true", help="write docs/results/scdv-tune.json")
    args = parser.parse_args()
    found = data.Results(args.json)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        for seed, name in itertools.product(range(1, args.seeds + 1), args.sets):
            found.get(name, seed, functools.partial(measured, name, seed, folder))
    rows = [row(name, found) for name in args.sets if name in found.figures]
    if args.publish:
        results.record(
            results.RESULTS / "scdv-tune.json", "SCDV: clusters and power by --tune", COLUMNS, rows,
            seeds="1 to 3 (mean ± standard deviation)",
            data="20 Newsgroups, Reuters; headings, source code: divided at random",
        )  # fmt: skip
    print(results.markdown_table({"columns": list(COLUMNS), "rows": rows}))


if __name__ == "__main__":
    main()
