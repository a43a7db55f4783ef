"""Training to the end: epochs, held-out measures, early stopping, the best epoch's weights.

Called by `dcme_w2v.classify.estimator` and `dcme_w2v.classify.pipeline`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.classify.metrics import Measures, log_softmax
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.solver import solve
from dcme_w2v.classify.trainer import CHUNK, ClassifierTrainer, Progress, Weights, core_documents
from dcme_w2v.progress import Quiet, Reporter


@dataclass(frozen=True)
class Labelled:
    """Documents and the numbers of their labels; -1 is a label that is no class.

    Attributes
    ----------
    matrix : csr_matrix of float32, shape (documents, features)
        The documents.
    labels : sequence of sequence of int
        The labels of each, at least one.
    weights : ndarray of float32, shape (documents,), optional
        How much each counts, above 0; 1 by default.
    """

    matrix: csr_matrix
    labels: Sequence[Sequence[int]]
    weights: NDArray[np.float32] | None = None

    def instances(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return each document once for each of its labels: numbers of documents and of labels."""
        sizes = [len(labels) for labels in self.labels]
        flat = [label for labels in self.labels for label in labels]
        return np.repeat(np.arange(len(sizes)), sizes), np.array(flat, dtype=np.int32)


def measure(weights: Weights, data: Labelled, measures: Measures, threads: int) -> dict[str, Any]:
    """Return the measures of a classifier on labelled documents."""
    documents = core_documents(data.matrix)
    for begin in range(0, len(data.labels), CHUNK):
        end = min(begin + CHUNK, len(data.labels))
        scores = weights.scores(documents, begin, end, threads)
        measures.add(log_softmax(scores), data.labels[begin:end])
    return measures.result()


def fit(
    data: Labelled,
    classes: int,
    options: ClassifyOptions,
    holdout: Labelled | None = None,
    several: bool = False,
    reporter: Reporter | None = None,
) -> tuple[Weights, list[dict[str, Any]]]:
    """Train a linear classifier.

    Parameters
    ----------
    data : Labelled
        What to learn; all labels are classes.
    classes : int
        Number of classes, at least 2.
    options : ClassifyOptions
        Resolved.
    holdout : Labelled, optional
        Documents to measure every epoch by; the weights of the epoch with the best accuracy (with
        several labels: precision of the first) are kept.
    several : bool
        Whether documents may have several labels.
    reporter : Reporter, optional
        Hears of the progress.

    Returns
    -------
    weights : Weights
        The result.
    epochs : list of dict
        Each epoch's `epoch`, `seconds`, `loss`, `lr`, and with `holdout` its measures.
    """
    watcher = _Watcher(classes, options, holdout, several, reporter or Quiet())
    documents, labels = data.instances()
    sample_weight = None if data.weights is None else data.weights[documents]
    if options.solver == "lbfgs":
        watcher.begin(None, "iterations")
        weights = solve(
            data.matrix, documents, labels, classes, options, watcher.iterated, sample_weight
        )
        return watcher.chosen(weights), watcher.records
    assert options.epochs is not None
    watcher.begin(len(labels) * options.epochs, "documents")
    training = ClassifierTrainer(
        data.matrix, documents, labels, classes, options, sample_weight=sample_weight
    )
    for number in range(options.epochs):
        progress = training.epoch(number, watcher.advanced)
        if watcher.ended(number + 1, progress.loss, training.weights, lr=progress.lr):
            break
    return watcher.chosen(training.weights), watcher.records


class _Watcher:
    """Measures and tells of every epoch, and keeps the best one's weights."""

    def __init__(
        self,
        classes: int,
        options: ClassifyOptions,
        holdout: Labelled | None,
        several: bool,
        reporter: Reporter,
    ) -> None:
        self.records: list[dict[str, Any]] = []
        self._classes, self._options = classes, options
        self._holdout, self._several, self._reporter = holdout, several, reporter
        self._best: tuple[float, int, NDArray[np.float32] | None] = (-1.0, 0, None)
        self._start = time.monotonic()

    def begin(self, total: int | None, unit: str) -> None:
        self._reporter.stage("training", total, unit)
        self._start = time.monotonic()

    def advanced(self, progress: Progress) -> None:
        self._reporter.advance(progress.instances, loss=progress.loss, lr=progress.lr)

    def iterated(self, iteration: int, loss: float, weights: Weights) -> bool:
        self._reporter.advance(iteration, loss=loss)
        return self.ended(iteration, loss, weights)

    def ended(self, epoch: int, loss: float, weights: Weights, **fields: float) -> bool:
        """Take note of an epoch's end; returns whether to stop now."""
        record: dict[str, Any] = {"epoch": epoch, "seconds": time.monotonic() - self._start}
        record |= {"loss": loss, **fields}
        if self._holdout is not None:
            found = self._measures(weights, self._holdout)
            record |= {f"heldout_{name}": value for name, value in found.items()}
            figure = found["precision_at_1" if self._several else "accuracy"]
            if figure > self._best[0]:
                self._best = (figure, epoch, weights.table.copy())
        record["seconds"] = round(record["seconds"], 3)
        self.records.append(record)
        self._reporter.epoch(record)
        self._start = time.monotonic()
        patience = self._options.patience
        return bool(self._holdout and patience and epoch - self._best[1] >= patience)

    def chosen(self, weights: Weights) -> Weights:
        """Return the weights with the best epoch's numbers."""
        _, epoch, table = self._best
        if table is not None:
            weights.table[:] = table
            self._reporter.talk(f"epoch {epoch} was the best and is kept")
        return weights

    def _measures(self, weights: Weights, holdout: Labelled) -> dict[str, Any]:
        wanted = ("accuracy", "top5_accuracy", "log_likelihood", "precision_at_1")
        measures = Measures(self._classes, self._several)
        found = measure(weights, holdout, measures, self._options.threads or 1)
        return {name: found[name] for name in wanted if name in found}
