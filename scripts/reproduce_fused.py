"""Few labels: fused features and latent classes against maxent, self-training, naive Bayes + EM.

    python scripts/reproduce_fused.py [--seeds 3] [--json FILE] [--only ROW ...] [--publish]

20 Newsgroups with 10 and 50 labels a class, Reuters R90 with 300 labelled documents in all, and six
changes of domain among the groups of 20 Newsgroups, 50 labels a class. Beside these: 200 labels a
class; paragraphs of Wikipedia instead of the unlabelled messages of 20 Newsgroups; and wikipara, 5
labels a class, a quarter of its other training documents unlabelled. The seed chooses which
training documents have their labels; the others are the unlabelled ones. Vocabulary and idf are
those of all training documents, with Wikipedia those of labelled and unlabelled ones. A labelled
document of Reuters has its first label; any of a test document's labels is right. A test set is
used once. With --json a stopped run is resumed; --publish writes the tables of docs/results/, where
cells without new figures stay as they are.
"""

from __future__ import annotations

import argparse
import functools
import lzma
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import document_data as data
import numpy as np
import peers
import results
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from dcme_w2v import LatentClassModel
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.options import FeatureOptions
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.few_labels.fit import Data, fit, fit_final, ones
from dcme_w2v.few_labels.initial import Rows
from dcme_w2v.few_labels.options import FusedOptions, resolved
from dcme_w2v.small_models.shrink import shrink_weights

# Row -> options of `fuse fit`.
FITS: dict[str, dict[str, Any]] = {
    "paper, K 2": {"impact": "paper", "optimiser": "admm", "levels": 2},
    "paper, K 8": {"impact": "paper", "optimiser": "admm"},
    "paper, K 16": {"impact": "paper", "optimiser": "admm", "levels": 16},
    "centred": {"impact": "centred", "initial": "supervised", "rounds": 1, "final": "tied"},
    "tied, one round": {"initial": "supervised", "rounds": 1, "final": "tied"},
    "beside": {"final": "beside"},
    "self-trained, tied": {"final": "tied"},
    "teach": {},
    "choose": {"choose": True},
}
BASELINES = ("maxent", "self-training", "naive Bayes, EM")
LATENT = "latent classes, `--unlabelled use`"
SMALL = {"teach, 8 levels, a twentieth": "1/20", "teach, 8 levels, a hundredth": "1/100"}
ROWS = (*BASELINES, *FITS, LATENT, *SMALL)
SETS = {
    "20news, 10 a class": ("20news", 10),
    "20news, 50 a class": ("20news", 50),
    "Reuters, 300": ("reuters21578", 300),
    "six changes of domain, 50": ("pairs", 50),
}
MORE = {
    "20news, 200 a class": ("20news", 200),
    "20news, 10, Wikipedia unlabelled": ("wikipedia", 10),
    "20news, 50, Wikipedia unlabelled": ("wikipedia", 50),
    "wikipara, 5 a class": ("wikipara", 5),
}
PARAGRAPHS = 30_000  # of Wikipedia, drawn by the seed
PAIRS = (("comp", "rec"), ("rec", "talk"), ("sci", "talk"), ("rec", "sci"), ("comp", "talk"),
         ("comp", "sci"))  # fmt: skip
# Smoothing, scale of tf-idf, iterations and weight of unlabelled documents: not tuned.
SMOOTHING, SCALE, STEPS = 0.02, 8.0, 8


@dataclass
class Problem:
    """Labelled, unlabelled and test rows; a prediction of any of a test row's labels is correct."""

    labelled: csr_matrix
    labels: NDArray[np.int64]
    groups: NDArray[np.int64]
    unlabelled: csr_matrix
    test: csr_matrix
    truth: list[set[int]]
    classes: int

    def right(self, decided: NDArray[np.int64]) -> float:
        """Return the accuracy, or precision at 1, in per cent."""
        hits = [int(label) in own for label, own in zip(decided, self.truth, strict=True)]
        return 100 * float(np.mean(hits))


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="keep the figures here, and continue from them")
    parser.add_argument("--only", nargs="+", help="only these rows")
    parser.add_argument("--sets", nargs="+", choices=[*SETS, *MORE], help="only these sets")
    parser.add_argument("--more", action="store_true", help="the second table")
    parser.add_argument("--publish", action="store_true", help="write docs/results/")
    given = parser.parse_args()
    kept = data.Results(given.json)
    sets = MORE if given.more else SETS
    if not given.publish:
        for name in given.sets or sets:
            kind, count = (SETS | MORE)[name]
            for seed in range(given.seeds):
                run(kept, name, list(problems(kind, count, seed)), seed, given.only)
    table = [[row, *(cell(kept, name, row) for name in sets)] for row in ROWS]
    if given.publish:
        path = results.RESULTS / ("fused-more.json" if given.more else "fused.json")
        table = results.with_published(path, ["method", *sets], table)
    for line in table:
        print(" | ".join(line))
    if given.publish:
        results.record(
            path,
            "More labels, other unlabelled text, many classes: accuracy, %"
            if given.more
            else "Few labels: accuracy, % (Reuters: precision at 1)",
            ["method", *sets],
            [line for line in table if set(line[1:]) != {"-"}],
            seeds="0, 1, 2 (mean ± standard deviation); 0 where there is none",
            data="20 Newsgroups by date with headers; "
            + ("enwiki17; wikipara" if given.more else "Reuters R90"),
        )


def run(
    kept: data.Results, name: str, given: list[Problem], seed: int, only: list[str] | None
) -> None:
    """Compute the rows of one set and seed."""
    taught: dict[int, Weights] = {}

    def distill(i: int) -> Weights:
        if i not in taught:
            taught[i] = fit(data_of(given[i], seed, {})).weights
        return taught[i]

    def right(row: str, i: int) -> float:
        problem = given[i]
        if row in ("maxent", "self-training"):
            return decide(problem, fit_final(data_of(problem, seed, {}), row).weights)
        if row in BASELINES:
            return problem.right(naive_bayes(problem))
        if row == LATENT:
            return problem.right(latent_classes(problem, seed))
        if row == "teach":
            return decide(problem, distill(i))
        if row in SMALL:
            rows = csr_matrix(sparse.vstack([problem.labelled, problem.unlabelled]))
            small = shrink_weights(distill(i), squares(rows), 8, SMALL[row])
            return decide(problem, small.weights())
        found = fit(data_of(problem, seed, FITS[row]))
        return decide(problem, found.weights, found.predicts_binary)

    def mean(row: str) -> dict[str, float]:
        start = time.monotonic()
        figure = float(np.mean([right(row, i) for i in range(len(given))]))
        return {"right": figure, "seconds": round(time.monotonic() - start, 1)}

    for row in ROWS:
        if not only or row in only:
            kept.get(f"{name}: {row}", seed, functools.partial(mean, row))


def data_of(problem: Problem, seed: int, options: dict[str, Any]) -> Data:
    """Return a problem as input of the package."""
    plain = {"choose": False} | options
    chosen = resolved(
        FusedOptions(threads=1, seed=seed, **plain), len(problem.labels), problem.classes
    )
    return Data(
        problem.labelled, problem.labels, problem.unlabelled, problem.classes, chosen,
        problem.groups,
    )  # fmt: skip


def decide(problem: Problem, weights: Weights, binary: bool = False) -> float:
    """Return the accuracy of a linear model."""
    decided, _ = Rows(ones(problem.test) if binary else problem.test, 1).decisions(weights)
    return problem.right(decided)


def squares(rows: csr_matrix) -> NDArray[np.float64]:
    """Return the sums of the squares of the columns."""
    return np.bincount(rows.indices, np.square(rows.data, dtype=float), rows.shape[1])


def naive_bayes(problem: Problem) -> NDArray[np.int64]:
    """Return the predictions of naive Bayes with EM (Nigam et al. 2000) on tf-idf."""
    own = np.eye(problem.classes)[problem.labels]
    x, u = problem.labelled.astype(float), problem.unlabelled.astype(float)
    r: NDArray[np.float64] | None = None
    for _ in range(STEPS):
        counts = x.T @ own + (u.T @ r if r is not None else 0)
        sizes = own.sum(axis=0) + (r.sum(axis=0) if r is not None else 0)
        weights = np.log((counts + SMOOTHING) / (counts + SMOOTHING).sum(axis=0))
        prior = np.log((sizes + 1) / (sizes + 1).sum())
        scores = u @ weights * SCALE + prior
        r = np.exp(scores - scores.max(axis=1, keepdims=True))
        r /= r.sum(axis=1, keepdims=True)
    return np.asarray((problem.test @ weights * SCALE + prior).argmax(axis=1))


def latent_classes(problem: Problem, seed: int) -> NDArray[np.int64]:
    """Return the predictions of latent classes; an unlabelled document is its own observation."""
    rows = csr_matrix(sparse.vstack([problem.labelled, problem.unlabelled]))
    labels = np.concatenate([problem.labels, np.full(problem.unlabelled.shape[0], -1)])
    model = LatentClassModel(unlabelled="use", random_state=seed, threads=1)
    return np.asarray(model.fit(rows, labels).predict(problem.test), dtype=np.int64)


def cell(kept: data.Results, name: str, row: str) -> str:
    """Return the mean over the seeds and its spread."""
    own = kept.figures.get(f"{name}: {row}", {})
    values = [figures["right"] for figures in own.values()]
    if not values:
        return "-"
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


# ---- data sets ----


def problems(kind: str, count: int, seed: int) -> Iterator[Problem]:
    """Yield the problems of a data set; the figure is their mean."""
    if kind == "pairs":
        train, test, names = rows_of("20news")
        for one in PAIRS:
            yield pair(train, test, names, one, count, seed)
        return
    if kind == "wikipedia":
        yield wikipedia(count, seed)
        return
    train, test, names = rows_of(kind)
    random = np.random.default_rng(seed)
    first = np.array([own[0] for own in train[1]])
    if kind == "reuters21578":
        labelled = random.permutation(len(first))[:count]
    else:
        labelled = by_class(first, count, random)
    others = np.setdiff1d(np.arange(len(first)), labelled)
    if kind == "wikipara":
        others = np.sort(random.permutation(others)[: len(others) // 4])
    one = train[0], [own[:1] for own in train[1]]
    yield problem_of(one, test, labelled, others)


def by_class(
    labels: NDArray[np.int64], count: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Return the places of so many documents of each class."""
    chosen = [random.permutation(np.flatnonzero(labels == c))[:count] for c in np.unique(labels)]
    return np.concatenate(chosen)


def wikipedia(count: int, seed: int) -> Problem:
    """Return 20 Newsgroups with paragraphs of Wikipedia as the unlabelled documents."""
    train, test = data.load("20news")
    names = sorted({own[0] for own in train.labels})
    first, truth = (
        np.array([names.index(own[0]) for own in half.labels]) for half in (train, test)
    )
    random = np.random.default_rng(seed)
    labelled = by_class(first, count, random)
    with lzma.open(peers.development_data() / "corpora" / "enwiki17.txt.xz") as lines:
        every = lines.read().splitlines()
    some = [every[i] for i in np.sort(random.permutation(len(every))[:PARAGRAPHS])]
    text = TextFeatures(FeatureOptions())
    rows = text.fit_transform([*(train.raw[i].encode() for i in labelled), *some])
    numbers = [[int(label)] for label in first[labelled]] + [[0]] * len(some)
    own = text.transform(raw.encode() for raw in test.raw), [[int(label)] for label in truth]
    places = np.arange(len(numbers))
    return problem_of((rows, numbers), own, places[: len(labelled)], places[len(labelled) :])


_cache: dict[str, Any] = {}


def rows_of(name: str) -> Any:
    """Return rows and labels by number of both halves of a data set, and the names."""
    if name not in _cache:
        halves = data.load(name)
        text = TextFeatures(FeatureOptions())
        train, test = halves
        names = sorted({label for half in halves for own in half.labels for label in own})
        number = {label: i for i, label in enumerate(names)}
        numbers = [[[number[label] for label in own] for own in half.labels] for half in halves]
        rows = text.fit_transform(raw.encode() for raw in train.raw)
        others = text.transform(raw.encode() for raw in test.raw)
        _cache[name] = (rows, numbers[0]), (others, numbers[1]), names
    return _cache[name]


def problem_of(train: Any, test: Any, labelled: Any, unlabelled: Any) -> Problem:
    """Return a problem; classes without labelled documents have numbers, but no model."""
    there = sorted({label for i in labelled for label in train[1][i]})
    number = {label: i for i, label in enumerate(there)}
    sizes = [len(train[1][i]) for i in labelled]
    groups = np.repeat(np.arange(len(labelled)), sizes)
    labels = np.array([number[label] for i in labelled for label in train[1][i]], dtype=np.int64)
    truth = [{number.get(label, -1) for label in own} for own in test[1]]
    return Problem(
        csr_matrix(train[0][labelled[groups]]), labels, groups, csr_matrix(train[0][unlabelled]),
        test[0], truth, len(there),
    )  # fmt: skip


def pair(train: Any, test: Any, names: list[str], tops: Any, count: int, seed: int) -> Problem:
    """Return a change of domain: labels from the first half of the groups, tests from the other."""
    random = np.random.default_rng(seed)
    subgroups = [[i for i, name in enumerate(names) if name.startswith(top)] for top in tops]
    side = {g: c for c, own in enumerate(subgroups) for g in own}
    source = {g for own in subgroups for g in own[: (len(own) + 1) // 2]}
    halves = []
    for rows, labels in (train, test):
        first = np.array([own[0] for own in labels])
        halves.append((rows, first))
    first = halves[0][1]
    labelled = np.concatenate(
        [
            random.permutation(np.flatnonzero(np.isin(first, [g for g in own if g in source])))[
                :count
            ]
            for own in subgroups
        ]
    )
    target = [g for own in subgroups for g in own if g not in source]
    unlabelled = np.flatnonzero(np.isin(first, target))
    tested = np.flatnonzero(np.isin(halves[1][1], target))
    numbers = ([[side.get(g, 0)] for g in first], [[side[g]] for g in halves[1][1][tested]])
    return problem_of(
        (train[0], numbers[0]), (csr_matrix(test[0][tested]), numbers[1]), labelled, unlabelled
    )


if __name__ == "__main__":
    main()
