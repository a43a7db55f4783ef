"""`classify train --tune` beside linear models of scikit-learn tuned by cross-validation.

    python scripts/bench_tune.py [--sets NAME ...] [--only METHOD ...] [--seeds 3] [--json FILE]
        [--publish]

Each method gets its own best practice: ours the search of `--tune` over loss, learning rate,
features, epochs and L2; scikit-learn's the tf-idf vectors with logarithmic counts of all words and
a grid of C (or alpha) by three-fold cross-validation. Processor seconds are of the search and the
final training, in one thread, without the reading and counting of words. Sets are the development
data, with their own test documents, and some made from it and from this machine by
scripts/reproduce_fused_sets.py, a quarter of whose documents is drawn for the test.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import document_data as data
import numpy as np
import reproduce_fused_sets as fused_sets
import results
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC

from dcme_w2v.classify.dataset import numbers_of
from dcme_w2v.classify.feature_sets import FeatureSets, KeptText
from dcme_w2v.classify.fit import Labelled, fit, measure
from dcme_w2v.classify.metrics import Measures
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions
from dcme_w2v.classify.tune import Search

FOLDS, OURS = 3, "dcme-w2v --tune"
Figures = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """Texts and class indices of training and test documents."""

    train: list[str]
    train_labels: list[list[int]]
    test: list[str]
    test_labels: list[list[int]]
    classes: int

    @property
    def several(self) -> bool:
        """Whether documents have several labels."""
        return any(len(one) > 1 for one in self.train_labels)

    def right(self, best: np.ndarray) -> float:
        """Return the share of test documents, in %, of which a class is a label."""
        found = [one in own for one, own in zip(best.tolist(), self.test_labels, strict=True)]
        return 100 * statistics.mean(found)


def given_halves(name: str) -> Callable[[int], Problem]:
    """Return the development data `name`, which has a test half."""

    def make(seed: int) -> Problem:
        train, test = data.load(name)
        classes = sorted({label for own in train.labels for label in own})
        numbers = [numbers_of(half.labels, classes) for half in (train, test)]
        return Problem(train.raw, numbers[0], test.raw, numbers[1], len(classes))

    return make


def drawn(make_texts: Callable[[], fused_sets.Texts]) -> Callable[[int], Problem]:
    """Return texts divided at random."""

    def make(seed: int) -> Problem:
        texts = make_texts()
        order = np.random.default_rng(seed).permutation(len(texts)).tolist()
        test, train = order[: len(texts) // 4], order[len(texts) // 4 :]
        classes = sorted({texts[i][0] for i in train})
        halves = [
            ([texts[i][1] for i in half], numbers_of([(texts[i][0],) for i in half], classes))
            for half in (train, test)
        ]
        return Problem(*halves[0], *halves[1], len(classes))

    return make


SETS: dict[str, Callable[[int], Problem]] = {
    "20 Newsgroups": given_halves("20news"),
    "Reuters": given_halves("reuters21578"),
    "headings": drawn(fused_sets.headings),
    "source code": drawn(fused_sets.source_code),
    "languages": drawn(fused_sets.languages),
    "wikipara, 150 articles": drawn(functools.partial(fused_sets.paragraphs, 150)),
    "wikipara": given_halves("wikipara"),
}
DRAWN = ("headings", "source code", "languages", "wikipara, 150 articles")


def ours(problem: Problem, seed: int, budget: float, loss: str | None = None) -> Figures:
    """Search and train as `classify train --tune` does."""
    features, given = FeatureOptions(), ClassifyOptions(threads=1, seed=seed, loss=loss)
    kept = KeptText(FeatureSets.widest(features, ()))
    kept.fit_counts(text.encode() for text in problem.train)
    start = time.process_time()
    sets = FeatureSets(kept, features, (), problem.classes)
    search = Search(sets, problem.train_labels, problem.classes, given, budget)
    tuned = search.run()
    searched = time.process_time()
    text, rows = sets.of(tuned.setting)
    labelled = Labelled(rows, problem.train_labels)
    weights, _ = fit(labelled, problem.classes, tuned.options(given, problem.classes))
    seconds = time.process_time() - start
    test = Labelled(text.transform(t.encode() for t in problem.test), problem.test_labels)
    found = measure(weights, test, Measures(problem.classes, problem.several), 1)
    accuracy = found.get("accuracy", found.get("precision_at_1", 0.0))
    print(f"# {tuned.line}", flush=True)
    return {
        "accuracy": 100 * accuracy, "cpu_seconds": seconds, "held_out_accuracy": tuned.accuracy,
        "search_seconds": searched - start, "trials": len(tuned.trials),
        "complete": tuned.is_complete, "flags": tuned.flags,
    }  # fmt: skip


def sklearn(model: Any, grid: dict[str, list[float]]) -> Callable[..., Figures]:
    """Return a run of a model of scikit-learn, its parameter by cross-validation."""

    def run(problem: Problem, seed: int, budget: float) -> Figures:
        warnings.simplefilter("ignore")  # that iterations did not suffice
        text = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+")
        train, test = text.fit_transform(problem.train), text.transform(problem.test)
        own, own_grid, labels = model(seed), grid, np.array([y[0] for y in problem.train_labels])
        if problem.several:
            own = OneVsRestClassifier(own)
            own_grid = {f"estimator__{name}": values for name, values in grid.items()}
            binarizer = MultiLabelBinarizer(classes=range(problem.classes))
            labels = binarizer.fit_transform(problem.train_labels)

        def first_is_right(fitted: Any, rows: Any, wanted: np.ndarray) -> float:
            best = scores_of(fitted, rows).argmax(axis=1)
            if problem.several:
                return float(wanted[np.arange(len(best)), best].mean())
            return float((fitted.classes_[best] == wanted).mean())

        start = time.process_time()
        folds = KFold(FOLDS, shuffle=True, random_state=seed)
        search = GridSearchCV(own, own_grid, cv=folds, scoring=first_is_right)
        search.fit(train, labels)
        seconds = time.process_time() - start
        best = scores_of(search, test).argmax(axis=1)
        accuracy = problem.right(best if problem.several else search.classes_[best])
        chosen = next(iter(search.best_params_.values()))
        return {"accuracy": accuracy, "cpu_seconds": seconds, "chosen": chosen}

    return run


def scores_of(model: Any, rows: Any) -> np.ndarray:
    """Return the scores of all classes."""
    scores: np.ndarray = model.decision_function(rows)
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


METHODS: dict[str, Callable[..., Figures]] = {
    OURS: ours,
    f"{OURS} --loss softmax": functools.partial(ours, loss="softmax"),
    "LinearSVC": sklearn(lambda seed: LinearSVC(random_state=seed), {"C": [0.1, 0.3, 1.0, 3.0]}),
    "SGDClassifier": sklearn(
        lambda seed: SGDClassifier(random_state=seed), {"alpha": [1e-6, 1e-5, 3e-5, 1e-4]}
    ),
    "LogisticRegression": sklearn(
        lambda seed: LogisticRegression(max_iter=50, tol=1e-3), {"C": [3.0, 30.0, 300.0]}
    ),
}


def table(kept: data.Results) -> list[list[str]]:
    """Return a row for each set and method that has figures."""
    rows = []
    for name in SETS:
        own = {m: list(kept.figures.get(f"{name}: {m}", {}).values()) for m in METHODS}
        seconds = {m: statistics.mean(v["cpu_seconds"] for v in f) for m, f in own.items() if f}
        for method, figures in own.items():
            if not figures:
                continue
            accuracy = [one["accuracy"] for one in figures]
            spread = f" ± {statistics.stdev(accuracy):.2f}" if len(accuracy) > 1 else ""
            times = "" if OURS not in seconds else (
                f"{seconds[method] / seconds[OURS]:.1f}"
            )  # fmt: skip
            rows.append([
                name, method, str(len(figures)), f"{statistics.mean(accuracy):.2f}{spread}",
                f"{seconds[method]:.1f}", times,
            ])  # fmt: skip
    return rows


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--only", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of --tune")
    parser.add_argument("--json", type=Path, help="keep the figures here, and continue from them")
    parser.add_argument("--publish", action="store_true", help="write docs/results/tune.json")
    given = parser.parse_args()
    kept = data.Results(given.json)
    for seed in range(1, given.seeds + 1) if not given.publish else ():
        for name in given.sets:
            problem = None
            for method in given.only:
                if str(seed) in kept.figures.get(f"{name}: {method}", {}):
                    continue
                problem = problem or SETS[name](seed)
                run = functools.partial(METHODS[method], problem, seed, given.budget)
                kept.get(f"{name}: {method}", seed, run)
    rows = table(kept)
    print("\n".join(" | ".join(row) for row in rows))
    if given.publish:
        results.record(
            results.RESULTS / "tune.json",
            "Settings that find themselves, beside tuned linear models",
            ["set", "method", "seeds", "accuracy, % (P@1 on Reuters)", "CPU s",
             "times those of --tune"],
            rows,
            seeds="1, 2, 3 (mean ± standard deviation), as many as the row says",
            data="20 Newsgroups, Reuters R90, wikipara; Python's library; installed translations",
        )  # fmt: skip


if __name__ == "__main__":
    main()
