"""Time the parts of latent classes and of classifiers of low rank, with one thread and with two.

    python scripts/bench_latent.py [TASK...] [--runs 5]

Tasks, each of which writes docs/results/latent-TASK.json: fitting (EM of 12 iterations with 10
steps each on 20 Newsgroups, K 20, and one gradient on wikipara, K 200) and scoring (scores of
full and of low rank, whose weights are random: time does not depend on them). Rows alternate
run by run; seconds are medians. Needs the development data; see scripts/peers.py.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import document_data as data
import numpy as np
import peers
import results
from scipy.sparse import csr_matrix

from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.options import FeatureOptions
from dcme_w2v.classify.top import most_probable
from dcme_w2v.classify.trainer import LowRankWeights, Weights, core_documents, documents_at_once
from dcme_w2v.latent.cost import Cost, Observations
from dcme_w2v.latent.em import expectation_maximisation
from dcme_w2v.latent.starts import one_hot

ITERATIONS, CLASSES, L2, SMOOTHING = 12, 1236, 3e-6, 0.1
Rows = list[list[str]]


def features(name: str, half: int) -> tuple[csr_matrix, list[tuple[int, ...]]]:
    """Return documents of a data set by the training half's features, and their labels."""
    halves = data.load(name)
    number = {label: i for i, label in enumerate(sorted({one[0] for one in halves[0].labels}))}
    text = TextFeatures(FeatureOptions())
    rows = text.fit_transform(one.encode() for one in halves[0].raw)
    if half:
        rows = text.transform(one.encode() for one in halves[half].raw)
    return rows, [(number[one[0]],) for one in halves[half].labels]


def alternated(tasks: dict[Any, Callable[[], object]], runs: int) -> dict[Any, tuple[float, float]]:
    """Return the medians of CPU and wall-clock seconds of each."""
    found: dict[Any, list[tuple[float, float]]] = {name: [] for name in tasks}
    for _ in range(runs):
        for name, task in tasks.items():
            begin, used = time.monotonic(), time.process_time()
            task()
            found[name].append((time.process_time() - used, time.monotonic() - begin))
    return {
        name: (statistics.median(one[0] for one in own), statistics.median(one[1] for one in own))
        for name, own in found.items()
    }


def fitting(runs: int) -> tuple[str, str, list[str], Rows]:
    """EM, and one gradient of the cost (2)."""
    rows, labels = features("20news", 0)
    news = Cost(Observations.of(rows, labels, 20), 20, L2, SMOOTHING, 1)
    start = one_hot(np.array([one[0] for one in labels]), 20)

    def iterate(threads: int) -> None:
        news.threads = threads
        expectation_maximisation(news, start, ITERATIONS, 0.0)

    table = _timed("EM, 12 x 10 steps, N 11,314, K 20", iterate, runs)
    rows, labels = features("wikipara", 0)
    para = Cost(Observations.of(rows, labels, CLASSES), 200, L2, SMOOTHING, 1)
    random = np.random.default_rng(0)
    para.posterior[:, :200] = random.dirichlet(np.ones(200), size=len(labels))
    para.fit_alpha()
    point = 0.3 * random.normal(size=(rows.shape[1] + 1, 200))

    def gradient(threads: int) -> None:
        para.threads = threads
        para.gradient(point)

    table += _timed("one gradient, N 129,968, K 200", gradient, runs)
    columns = ["what", "threads", "CPU s", "wall-clock s"]
    return "Time of fitting latent classes", "20 Newsgroups by date, wikipara", columns, table


def _timed(name: str, work: Callable[[int], object], runs: int) -> Rows:
    found = alternated({n: lambda n=n: work(n) for n in (1, 2)}, runs)  # type: ignore[misc]
    return [[name, str(n), *(f"{value:.2f}" for value in own)] for n, own in found.items()]


def scoring(runs: int) -> tuple[str, str, list[str], Rows]:
    """Scores, the most probable class, and all log-probabilities, of full and of low rank."""
    rows, _ = features("wikipara", 1)
    documents, random = core_documents(rows), np.random.default_rng(0)
    step = documents_at_once(CLASSES)
    models: dict[str, Weights] = {"full": Weights(rows.shape[1], CLASSES, 1.0)}
    models["full"].set(random.normal(size=(rows.shape[1] + 1, CLASSES)).astype(np.float32))
    for rank in (200, 50):
        low = models[str(rank)] = LowRankWeights(rows.shape[1], CLASSES, rank, 1.0, 0)
        low.output[:, :rank] = random.normal(size=(CLASSES, rank))

    def score(weights: Weights, finish: Callable[[Any], object] | None) -> None:
        for begin in range(0, len(documents), step):
            end = min(begin + step, len(documents))
            if finish:
                finish(weights.scores(documents, begin, end, 1))
            else:
                weights.raw_scores(documents, begin, end, 1)

    tasks: dict[Any, Callable[[], object]] = {}
    for name, weights in models.items():
        tasks[name, "scores"] = lambda w=weights: score(w, None)  # type: ignore[misc]
        tasks[name, "class"] = lambda w=weights: list(  # type: ignore[misc]
            most_probable(w, documents, 1, 1)
        )
        tasks[name, "all"] = lambda w=weights: score(w, log_softmax)  # type: ignore[misc]
    found = alternated(tasks, runs)
    table = [
        [name, *(f"{found[name, what][0]:.2f}" for what in ("scores", "class", "all"))]
        for name in models
    ]
    columns = ["rank", "scores", "most probable class", "all log-probabilities"]
    title = f"CPU seconds for {len(documents):,} documents, {CLASSES:,} classes"
    words = rows.nnz / len(documents)
    return title, f"wikipara, {words:.0f} different words a document", columns, table


TASKS = {"fitting": fitting, "scoring": scoring}


def main() -> None:
    """Run the tasks that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--runs", type=int, default=5, help="runs of each row")
    given = parser.parse_args()
    peers.development_data()
    for name in given.tasks or TASKS:
        if name not in TASKS:
            parser.error(f"{name}: must be one of {', '.join(TASKS)}")
        title, used, columns, rows = TASKS[name](given.runs)
        path = results.RESULTS / f"latent-{name}.json"
        results.record(path, title, columns, rows, data=used)
        print(results.markdown_table(results.load(path.stem)))


if __name__ == "__main__":
    main()
