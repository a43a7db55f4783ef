"""Compare classifiers on the same vectors: this program, scikit-learn, scipy, fastText.

    python scripts/bench_classify.py [--data wikipara] [--quick] [--only NAME] [--seed 1]
        [--json FILE]

Data sets are the development data `wikipara`, `20news` and `reuters21578` (R90). All but fastText,
which has its own features, get the same tf-idf vectors of unit length; seconds (wall clock and CPU
time) are of training only. scikit-learn and fastText come with `pip install dcme-w2v[bench]`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import peers
from scipy.sparse import csr_matrix

from dcme_w2v.classify.dataset import numbers_of
from dcme_w2v.classify.features import WORD, TextFeatures
from dcme_w2v.classify.fit import Labelled, fit, measure
from dcme_w2v.classify.metrics import Measures, log_softmax
from dcme_w2v.classify.model import THRESHOLD
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions, resolved
from dcme_w2v.formats.documents import Document, read_documents

THREADS = 2
SHOWN = ("accuracy", "top5_accuracy", "log_likelihood", "macro_f1", "micro_f1", "precision_at_1",
         "label_ranking_average_precision")  # fmt: skip


class Task:
    """Documents of a data set as vectors."""

    def __init__(self, name: str, quick: bool, seed: int = 1) -> None:
        self.seed = seed
        data = peers.development_data() / name
        self.texts: dict[str, list[Document]] = {}
        text, rows = TextFeatures(FeatureOptions()), {}
        for part in ("train", "test"):
            documents = list(read_documents([str(data / f"{part}.tsv.xz")], form="tab"))
            self.texts[part] = documents[::8] if quick else documents
            make = text.fit_transform if part == "train" else text.transform
            rows[part] = make(document.text for document in self.texts[part])
        found = {label for document in self.texts["train"] for label in document.labels}
        self.classes = sorted(found)
        self.train, self.test = (
            Labelled(rows[part], numbers_of([d.labels for d in documents], self.classes))
            for part, documents in self.texts.items()
        )
        self.several = any(len(labels) > 1 for labels in self.train.labels)

    def measures(self, scores: np.ndarray) -> dict[str, Any]:
        """Return the measures of scores of the test documents."""
        measures = Measures(len(self.classes), self.multilabel, THRESHOLD)
        for begin in range(0, len(scores), 2048):
            part = np.asarray(scores[begin : begin + 2048], dtype=np.float64)
            measures.add(log_softmax(part), self.test.labels[begin : begin + 2048])
        return measures.result()


def ours(**options: Any) -> Callable[[Task], tuple[dict[str, float], dict[str, Any]]]:
    """Return a run of this program."""

    def run(task: Task) -> tuple[dict[str, float], dict[str, Any]]:
        chosen = ClassifyOptions(threads=THREADS, seed=task.seed, **options)
        chosen = resolved(chosen, len(task.classes))
        spent = Clock()
        weights, _ = fit(task.train, len(task.classes), chosen, multilabel=task.multilabel)
        seconds = spent.seconds()
        measures = Measures(len(task.classes), task.multilabel, THRESHOLD)
        return seconds, measure(weights, task.test, measures, THREADS)

    return run


class Clock:
    """Wall-clock and CPU time since it was created."""

    def __init__(self) -> None:
        self._wall, self._processor = time.perf_counter(), time.process_time()

    def seconds(self) -> dict[str, float]:
        """Return both."""
        return {
            "wall_seconds": time.perf_counter() - self._wall,
            "cpu_seconds": time.process_time() - self._processor,
        }


def sklearn(kind: str, **options: Any) -> Callable[[Task], tuple[dict[str, float], dict[str, Any]]]:
    """Return a run of a linear model of scikit-learn, one-vs-rest for several labels."""

    def run(task: Task) -> tuple[dict[str, float], dict[str, Any]]:
        import warnings

        from sklearn import linear_model, multiclass, svm

        warnings.simplefilter("ignore")  # about too few iterations
        model = getattr(linear_model, kind, None) or getattr(svm, kind)
        model = model(**options)
        labels: Any = np.array([one[0] for one in task.train.labels])
        if task.several:
            labels = csr_matrix(_indicators(task.train.labels, len(task.classes)))
            model = multiclass.OneVsRestClassifier(model)
        spent = Clock()
        model.fit(task.train.matrix, labels)
        seconds = spent.seconds()
        scores = model.decision_function(task.test.matrix)
        figures = task.measures(scores)
        if task.several:  # one-vs-rest has its own threshold: 0
            wanted, chosen = _indicators(task.test.labels, len(task.classes)), scores > 0
            right = (wanted & chosen).sum()
            figures["micro_f1"] = 2 * right / (wanted.sum() + chosen.sum())
        for name in ("log_likelihood",) if kind != "LogisticRegression" else ():
            figures.pop(name)  # these scores are not log-probabilities
        return seconds, figures

    return run


def _indicators(labels: Any, classes: int) -> np.ndarray:
    found = np.zeros((len(labels), classes), dtype=bool)
    for row, one in enumerate(labels):
        found[row, [label for label in one if label >= 0]] = True
    return found


def scipy_softmax(task: Task, rate: float = 4.0, epochs: int = 5, batch: int = 256) -> Any:
    """Exact softmax by mini-batches in a few lines of scipy, with a rate searched as for ours."""
    instances, labels = task.train.instances()
    rows = task.train.matrix
    weights = np.zeros((rows.shape[1], len(task.classes)), dtype=np.float32)
    random, spent, total = np.random.default_rng(task.seed), Clock(), epochs * len(labels)
    for epoch in range(epochs):
        order = random.permutation(len(labels))
        for begin in range(0, len(order), batch):
            some = order[begin : begin + batch]
            x = rows[instances[some]]
            p = x @ weights
            p = np.exp(p - p.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            p[np.arange(len(some)), labels[some]] -= 1
            columns, inverse = np.unique(x.indices, return_inverse=True)
            small = csr_matrix((x.data, inverse, x.indptr), shape=(len(some), len(columns)))
            step = rate * (1 - (epoch * len(labels) + begin) / total)
            weights[columns] -= np.float32(step) * (small.T @ p)
    seconds = spent.seconds()
    return seconds, task.measures(task.test.matrix @ weights)


FASTTEXT = """
import json, sys, time
import fasttext, numpy
folder, options = sys.argv[1], json.loads(sys.argv[2])
wall, processor = time.perf_counter(), time.process_time()
model = fasttext.train_supervised(folder + "/train.txt", verbose=0, **options)
seconds = {"wall_seconds": time.perf_counter() - wall,
           "cpu_seconds": time.process_time() - processor}
names = [name[len("__label__"):] for name in model.get_labels()]
scores = numpy.full((sum(1 for _ in open(folder + "/test.txt")), len(names)), -30, "float32")
for row, line in enumerate(open(folder + "/test.txt", encoding="utf-8")):
    for p, name in model.f.predict(line, len(names), -1.0, "strict"):
        scores[row, int(name[len("__label__"):])] = numpy.log(max(p, 1e-13))
numpy.save(folder + "/scores.npy", scores)
print(json.dumps(seconds))
"""


def fasttext(**options: Any) -> Callable[[Task], tuple[dict[str, float], dict[str, Any]]]:
    """Return a run of fastText on the words; its seconds include reading."""

    def run(task: Task) -> tuple[dict[str, float], dict[str, Any]]:
        with tempfile.TemporaryDirectory(prefix="dcme-w2v-") as folder:
            for part, data in (("train", task.train), ("test", task.test)):
                pairs = list(zip(task.texts[part], data.labels, strict=True))
                if part == "train":  # fastText trains in the order of the file
                    pairs = [pairs[i] for i in np.random.default_rng(1).permutation(len(pairs))]
                with Path(folder, f"{part}.txt").open("w", encoding="utf-8") as file:
                    for document, numbers in pairs:
                        words = " ".join(WORD.findall(document.text.decode().lower()))
                        labels = " ".join(f"__label__{n}" for n in numbers if part == "train")
                        file.write(f"{labels} {words}\n".lstrip() if words else f"{labels} .\n")
            command = [sys.executable, "-W", "ignore", "-c", FASTTEXT, folder]
            given = json.dumps({"thread": THREADS, **options})
            done = subprocess.run([*command, given], check=True, stdout=subprocess.PIPE, text=True)
            scores = np.load(Path(folder, "scores.npy"))
        full = np.full((len(scores), len(task.classes)), -30, dtype=np.float64)
        full[:, : scores.shape[1]] = scores[:, : len(task.classes)]
        return json.loads(done.stdout.splitlines()[-1]), task.measures(full)

    return run


ROWS: dict[str, Callable[[Task], tuple[dict[str, float], dict[str, Any]]]] = {
    "dcme": ours(),
    "dcme, 2 epochs": ours(epochs=2),
    "gd": ours(objective="gd"),
    "gd, 2 epochs": ours(objective="gd", epochs=2),
    "gd, 10 epochs": ours(objective="gd", epochs=10),
    "nce": ours(objective="nce"),
    "ns": ours(objective="ns"),
    "scipy softmax, batch 256": scipy_softmax,
    "fastText softmax": fasttext(lr=0.5, epoch=10, dim=100),
    "fastText hs": fasttext(lr=0.5, epoch=10, dim=100, loss="hs"),
    "sklearn LinearSVC": sklearn("LinearSVC"),
    "sklearn SGDClassifier": sklearn("SGDClassifier", loss="log_loss", alpha=1e-6, max_iter=2,
                                     tol=None, n_jobs=THREADS),
    "sklearn LogisticRegression": sklearn("LogisticRegression", C=100.0, max_iter=20),
}  # fmt: skip
# Takes too long over many classes.
SMALL_ONLY = ("sklearn LinearSVC",)


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", default="wikipara", choices=("wikipara", "20news", "reuters21578")
    )
    parser.add_argument("--quick", action="store_true", help="an eighth of the documents")
    parser.add_argument("--only", help="rows whose name contains this text")
    parser.add_argument("--seed", type=int, default=1, help="of this program and of scipy")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    given = parser.parse_args()
    task = Task(given.data, given.quick, given.seed)
    results = {}
    for name, run in ROWS.items():
        if (given.only and given.only not in name) or (
            name in SMALL_ONLY and len(task.classes) > 200
        ):
            continue
        seconds, figures = run(task)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        shown = {key: float(figures[key]) for key in SHOWN if key in figures}
        results[name] = {**seconds, "peak_mib_so_far": peak, **shown}
        print(f"# {name}: {results[name]}", flush=True)
        if given.json:
            given.json.write_text(json.dumps(results, indent=1) + "\n")
    columns = list(dict.fromkeys(key for found in results.values() for key in found))
    print("\n| | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, found in results.items():
        cells = [f"{found[key]:.4g}" if key in found else "" for key in columns]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
