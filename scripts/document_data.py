"""Documents, word vectors and scores for the scripts about document vectors.

The development data is in a folder beside the project (scripts/peers.py). scikit-learn comes with
`pip install dcme-w2v[bench]`.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import peers
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.metrics import (
    accuracy_score,
    normalized_mutual_info_score,
    precision_recall_fscore_support,
)
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from dcme_w2v.classify.metrics import cluster_measures
from dcme_w2v.latent.reduction import directions, reduced
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.words.vectors import Vectors

# The paper's word vectors: skip-gram, 200 dimensions, window 10, 20 occurrences, 10 negatives.
PAPER = peers.Setting(
    model="skipgram", dim=200, window=10, negative=10, min_count=20, sample=1e-3, epochs=25
)
GRID = (0.3, 1.0, 3.0)
# Options that improve on the paper's form; and with tf-idf concatenated to the vectors.
BETTER: dict[str, Any] = {"centre": True, "term_frequency": "log"}
ALONE = {**BETTER, "power": 0.5}
BEST = {**ALONE, "tfidf": 2.0}


@dataclass(frozen=True)
class Split:
    """One half of a data set: raw texts, words without stop words, and labels."""

    raw: list[str]
    words: list[bytes]
    labels: list[tuple[str, ...]]


def arguments(description: str, quick: str) -> argparse.Namespace:
    """Return the parsed command line; `description` is the script's docstring."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="runs of each row")
    parser.add_argument("--only", nargs="+", help="only rows of these names")
    parser.add_argument("--threads", type=int, default=1, help="figures are reproducible with one")
    parser.add_argument(
        "--json", type=Path, help="save the figures to this file, and resume from it"
    )
    parser.add_argument("--folder", help="keep word vectors here")
    parser.add_argument("--quick", action="store_true", help=quick)
    given = parser.parse_args()
    given.seeds = 1 if given.quick else given.seeds
    return given


def load(name: str) -> tuple[Split, Split]:
    """Return the training and the test documents of a data set, or end with a message."""
    folder = peers.development_data() / name
    return _read(folder / "train.tsv.xz"), _read(folder / "test.tsv.xz")


def words_of(text: str) -> str:
    """Return the words of a text, two letters or digits at least, lower case, no stop words."""
    found = re.findall(r"\b\w\w+\b", text.lower())
    return " ".join(word for word in found if word not in ENGLISH_STOP_WORDS)


def _read(path: Path) -> Split:
    raw, labels = [], []
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            label, _, text = line.rstrip("\n").partition("\t")
            raw.append(text)
            labels.append(tuple(label.split("|")))
    return Split(raw, [words_of(text).encode() for text in raw], labels)


def vectors_of(folder: Path, name: str, texts: Sequence[bytes], seed: int, **options: Any) -> Path:
    """Train this program's word vectors on texts, unless the folder has them, and return them."""
    target = folder / f"{name}-{seed}.npy"
    if not target.exists():
        corpus = folder / f"{name}.txt"
        corpus.write_bytes(b"\n".join(texts) + b"\n")
        peers.train_ours(corpus, target, PAPER, **{**options, "seed": seed})
    return target


def rows_of(
    vectors: Path,
    train: Split,
    test: Split,
    options: ScdvOptions,
    learnt_from: Sequence[bytes] | None = None,
) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Return the vectors of both halves by a model of the training half, or of other texts."""
    model = fit_documents(learnt_from or train.words, Vectors.load(vectors), options)
    parts = [sparse.vstack(list(model.transform(half.words)), "csr") for half in (train, test)]
    return parts[0], parts[1]


def classify(
    train: Any,
    test: Any,
    train_labels: list[str],
    labels: list[str],
    chosen: float | None = None,
    threads: int = 1,
) -> dict[str, float]:
    """Train LinearSVC, C by 5-fold cross-validation unless given; return the scores in per cent."""
    if chosen is None:
        # A rougher solution gives the same ranking of the values of C, in half the time.
        search = GridSearchCV(
            LinearSVC(tol=1e-2), {"C": GRID}, cv=5, scoring="f1_macro", n_jobs=threads, refit=False
        )
        chosen = float(search.fit(train, train_labels).best_params_["C"])
    predicted = LinearSVC(C=chosen).fit(train, train_labels).predict(test)
    p, r, f, _ = precision_recall_fscore_support(
        labels, predicted, average="macro", zero_division=0
    )
    accuracy = accuracy_score(labels, predicted)
    scores = {"accuracy": accuracy, "precision": p, "recall": r, "f1": f}
    return {**{name: 100 * float(value) for name, value in scores.items()}, "C": chosen}


class Results:
    """Figures by row and seed, saved in a JSON file so that a run can be resumed."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.figures: dict[str, dict[str, dict[str, float]]] = {}
        if path and path.exists():
            self.figures = json.loads(path.read_text())

    def get(self, row: str, seed: int, make: Callable[[], dict[str, float]]) -> None:
        """Compute the figures of a row unless they exist."""
        own = self.figures.setdefault(row, {})
        if str(seed) not in own:
            own[str(seed)] = make()
            print(f"# {row}, seed {seed}: {own[str(seed)]}", flush=True)
            if self._path:
                self._path.write_text(json.dumps(self.figures, indent=1) + "\n")

    def first(self, row: str, figure: str) -> float | None:
        """Return a figure of the first seed, if there is one."""
        return self.figures.get(row, {}).get("1", {}).get(figure)

    def cell(self, row: str, figure: str) -> str:
        """Return the mean of a figure over the seeds, and its spread if there are several seeds."""
        values = [own[figure] for own in self.figures.get(row, {}).values()]
        if not values:
            return "-"
        spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
        return f"{np.mean(values):.2f}{spread}"


def bumps(
    k: int, count: int, noise: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Two stretched bumps, or five round ones on a circle, and columns of noise."""
    random = np.random.default_rng(seed)
    y = np.arange(count) % k
    if k == 2:
        x = np.c_[random.normal(size=count) * 5, (2 * y - 1) * 2 + random.normal(size=count) * 0.4]
    else:
        angle = 2 * np.pi * y / k
        x = np.c_[np.cos(angle), np.sin(angle)] * 6 + random.normal(size=(count, 2)) * 0.5
    x = np.c_[x, random.normal(size=(count, noise))]
    return (x - x.mean(axis=0)) / x.std(axis=0), y


def unit_rows(made: sparse.csr_matrix, dims: int | None, seed: int) -> NDArray[np.float32]:
    """Return rows of unit length, in so many dimensions."""
    if dims is not None:
        made = reduced(made, directions(made, dims, seed))
    dense = np.asarray(made.toarray(), dtype=np.float32)
    return dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)


def against(y: NDArray[np.int64], own: NDArray[np.int64]) -> tuple[float, float]:
    """Return the NMI and the matching accuracy of clusters against classes."""
    table = np.zeros((y.max() + 1, own.max() + 1), dtype=np.int64)
    np.add.at(table, (y, own), 1)
    found = cluster_measures(table)
    assert abs(found["nmi"] - normalized_mutual_info_score(y, own)) < 1e-9
    return found["nmi"], found["matching_accuracy"]
