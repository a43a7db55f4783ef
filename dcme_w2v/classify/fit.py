"""Training of a linear classifier: epochs, held-out measures, early stopping, best weights."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v._core.models import SparseRows
from dcme_w2v.errors import UsageError, warn
from dcme_w2v.numeric.arrays import F32, F64, I32, I64
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import Reporter
from dcme_w2v.training.run import Checkpointer, TrainingRun, interrupted, run_epochs
from dcme_w2v.training.trainer import Fingerprint, hash_of

from .forest import Forest
from .label_tree import train_trees
from .metrics import Measures, log_softmax
from .options import ClassifyOptions
from .solver import solve
from .trainer import (
    ClassifierTrainer,
    Scorer,
    Weights,
)

MOST_WEIGHT = 1_000_000  # of a class; weights are of single precision
EndIteration = Callable[[int, float], bool]


def instances_of(labels: Sequence[Sequence[int]]) -> tuple[I64, I32]:
    """Return an instance for each label of documents: indices of documents and of classes."""
    sizes = [len(own) for own in labels]
    flat = [label for own in labels for label in own]
    return np.repeat(np.arange(len(sizes)), sizes), np.array(flat, dtype=np.int32)


def class_weights(
    given: Any, names: Sequence[Any], labels: Sequence[Sequence[int]], weights: F64 | None = None
) -> F64:
    """Return the weight of each document's class, of several the mean.

    Parameters
    ----------
    given : mapping or {"balanced"}
        Weights by name, 1 by default; "balanced" gives all classes the same total weight.
    names : sequence
        The classes.
    labels : sequence of sequence of int
        Class indices of each document.
    weights : ndarray of float64, shape (documents,), optional
        Of the documents themselves.

    Raises
    ------
    UsageError
        A name is no class, or a weight is no number from 0 to `MOST_WEIGHT`.
    """
    (rows, numbers), found = instances_of(labels), np.ones(len(names))
    if given == "balanced":
        sums = np.bincount(numbers, None if weights is None else weights[rows], len(names))
        held = sums > 0
        found[held] = sums.sum() / (held.sum() * sums[held])
    elif not isinstance(given, Mapping):
        raise UsageError(f"--class-weight={given!r}: must be balanced, or a weight for each label")
    else:
        place = {name: number for number, name in enumerate(names)}
        for name, weight in given.items():
            if name not in place:
                if place.keys() <= given.keys():  # as in scikit-learn
                    continue
                raise UsageError(f"--class-weight: no document has the label {name!r}; omit it")
            if not isinstance(weight, Real) or not 0 <= float(weight) <= MOST_WEIGHT:
                raise UsageError(
                    f"--class-weight: {name!r} has {weight!r}; give a number above 0, at most "
                    f"{MOST_WEIGHT:,}"
                )
            found[place[name]] = weight
    sizes, sums = (np.bincount(rows, one, len(labels)) for one in (None, found[numbers]))
    return np.where(sizes, sums / np.maximum(sizes, 1), 1.0)


@dataclass(frozen=True)
class Labeled:
    """Documents and the class indices of their labels; -1 is a label that is not a class.

    Attributes
    ----------
    matrix : csr_matrix of float32, shape (documents, features)
        The documents.
    labels : sequence of sequence of int
        The labels of each document, at least one.
    weights : ndarray of float32, shape (documents,), optional
        Weights of the documents, above 0; 1 by default.
    """

    matrix: csr_matrix
    labels: Sequence[Sequence[int]]
    weights: F32 | None = None

    def instances(self) -> tuple[I64, I32]:
        """Return an instance for each label: indices of documents and of classes."""
        return instances_of(self.labels)

    def some(self, chosen: I64) -> Labeled:
        """Return the documents of these numbers."""
        weights = None if self.weights is None else self.weights[chosen]
        return Labeled(self.matrix[chosen], [self.labels[i] for i in chosen], weights)


def measure(scorer: Scorer, data: Labeled, measures: Measures, threads: int) -> dict[str, Any]:
    """Return the measures of a classifier on labeled documents."""
    begin = 0
    for scores in scorer.batches(SparseRows(data.matrix), threads):
        measures.add(log_softmax(scores), data.labels[begin : begin + len(scores)])
        begin += len(scores)
    return measures.result()


class Fit(TrainingRun):
    """Training of a classifier by one of `LEARNERS`.

    Parameters
    ----------
    data : Labeled
        Training documents; all labels are classes.
    classes : int
        Number of classes, at least 2.
    options : ClassifyOptions
        Resolved.
    holdout : Labeled, optional
        Held-out documents, measured after every epoch. With `patience` the weights of the last
        epoch with the best accuracy (with several labels: precision at 1) are kept.
    multilabel : bool
        Whether documents may have several labels.
    others : mapping, optional
        Further options; a resumed run must have the same.
    described : str
        The data, for messages.
    remote : RemoteTraining, optional
        Trains this task on the workers of an executor, in place of `LEARNERS`.

    Attributes
    ----------
    data, classes, resolved
        As given.
    learned, sample_weight
        What learners take: the documents, their instances, `classes` and `resolved`; and the
        weights of the instances.
    total_weight : float
        Of all instances.
    weights : Weights
        The current weights; after training the weights of the best epoch. Trees have none.
    scorer : Scorer
        What scores documents so far: the weights, votes or trees.
    records : list of dict
        Each epoch's `epoch`, `seconds`, `loss`, `lr`, and with `holdout` its measures.
    """

    kind, unit = "classes", "documents"

    def __init__(
        self,
        data: Labeled,
        classes: int,
        options: ClassifyOptions,
        holdout: Labeled | None = None,
        multilabel: bool = False,
        others: Mapping[str, Any] | None = None,
        described: str = "",
        remote: RemoteTraining | None = None,
    ) -> None:
        documents, labels = data.instances()
        sample_weight = None if data.weights is None else data.weights[documents]
        self.learned = (data.matrix, documents, labels, classes, options)
        self.sample_weight = sample_weight
        self.records: list[dict[str, Any]] = []
        self._data, self._holdout, self._multilabel = data, holdout, multilabel
        self._described = described
        self._measured = f"heldout_{'precision_at_1' if multilabel else 'accuracy'}"
        self._best, self._best_epoch = -1.0, 0
        self.data, self.classes, self.resolved = data, classes, options
        self.total_weight = (
            float(len(labels))
            if sample_weight is None
            else float(sample_weight.sum(dtype=np.float64))
        )
        self._remote = remote
        if options.learner != "sgd" or remote is not None:
            features = 0 if options.learner == "tree" else data.matrix.shape[1]
            self.weights = Weights(features, classes, options.bias)
        else:
            training = ClassifierTrainer(*self.learned, sample_weight=sample_weight)
            named = {**asdict(options), **(others or {})}
            super().__init__(training, named, training.count * training.epochs)
            self.weights = training.weights
        self.scorer: Scorer = self.weights
        self._best_tables: dict[str, F32] = {}
        if holdout is not None and options.patience:
            self._best_tables = {k: np.zeros_like(v) for k, v in self.weights.tables.items()}

    # ---- what the engine calls ----

    def fingerprint(self) -> Fingerprint:
        """Return hashes of the documents and their labels."""
        hashes = {"documents": _hash_of(self._data)}
        if self._holdout is not None:
            hashes["holdout"] = _hash_of(self._holdout)
        return Fingerprint(hashes, self._described)

    def scores(self) -> dict[str, Any]:
        """Return the measures on the held-out documents."""
        if self._holdout is None:
            return {}
        wanted = ("accuracy", "top5_accuracy", "log_likelihood", "precision_at_1")
        measures = Measures(self.classes, self._multilabel)
        found = measure(self.scorer, self._holdout, measures, self.resolved.threads or 1)
        return {f"heldout_{name}": found[name] for name in wanted if name in found}

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        """Store the figures of an epoch, and its weights if they are the best."""
        self.records.append(dict(record))
        if self._best_tables:
            figure = record[self._measured]
            if figure >= self._best:  # few documents have ties, where more training is better
                self._best, self._best_epoch = figure, record["epoch"]
                for name, table in self.weights.tables.items():
                    self._best_tables[name][:] = table

    def is_over(self) -> bool:
        """Return whether the measure has not improved for `patience` epochs."""
        patience = self.resolved.patience
        if not patience or self._holdout is None or not self.records:
            return False
        figures = [one[self._measured] for one in self.records]
        return len(figures) - 1 - figures.index(max(figures)) >= patience

    def tables(self) -> Mapping[str, F32]:
        """Return the current weights and the best ones."""
        best = {f"best_{name}": table for name, table in self._best_tables.items()}
        return {**self.trainer.tables, **best}

    def notes(self) -> dict[str, Any]:
        """Return the figures of all epochs so far."""
        return {"epochs": self.records, "best": self._best, "best_epoch": self._best_epoch}

    def take_notes(self, notes: Mapping[str, Any]) -> None:
        """Restore them."""
        self.records = [{**one, "epoch": int(one["epoch"])} for one in notes["epochs"]]
        self._best, self._best_epoch = float(notes["best"]), int(notes["best_epoch"])

    def current_model(self) -> object:
        """Return what scores documents so far."""
        return self.scorer

    def save_partial(self) -> str | None:
        """Save nothing: there is no output."""
        return None

    # ---- the training ----

    def train(
        self,
        reporter: Reporter,
        received: ReceivedSignal | None = None,
        checkpointer: Checkpointer | None = None,
    ) -> None:
        """Train until the last epoch or early stopping, and use the weights of the best epoch.

        Raises
        ------
        Interrupted, DivergedError
            See `dcme_w2v.training.run.run_epochs`.
        """
        self.checkpointer = checkpointer or Checkpointer(self, reporter)
        learn = self._remote.train if self._remote else LEARNERS[self.resolved.learner]
        learn(self, reporter, received or ReceivedSignal())
        if self._best_tables and self._best_epoch and len(self.records) > 1:
            for name, table in self.weights.tables.items():
                table[:] = self._best_tables[name]
            reporter.message(
                f"the weights are from epoch {self._best_epoch}, the best on held-out documents"
            )

    def iterate(
        self,
        run: Callable[[EndIteration, Callable[[], None]], None],
        reporter: Reporter,
        received: ReceivedSignal,
    ) -> None:
        """Call `run`, whose iterations are reported as epochs.

        It gets a function for the end of each iteration, with its number and loss, that returns
        whether to stop, and one that raises Interrupted if a signal was received.
        """
        reporter.stage("training", None, "iterations")
        start = time.monotonic()

        def check_signals() -> None:
            self.check(received)

        def iterated(iteration: int, loss: float) -> bool:
            nonlocal start
            reporter.advance(iteration, loss=loss)
            seconds = round(time.monotonic() - start, 3)
            record = {"epoch": iteration, "seconds": seconds, "loss": loss, **self.scores()}
            self.end_epoch(record)
            reporter.epoch(record)
            start = time.monotonic()
            self.checkpointer.end_epoch()
            check_signals()
            return self.is_over()

        run(iterated, check_signals)

    def check(self, received: ReceivedSignal) -> None:
        """Raise Interrupted if a signal was received."""
        if received.number is not None:
            raise interrupted(self, self.checkpointer, received)


def _by_sgd(task: Fit, reporter: Reporter, received: ReceivedSignal) -> None:
    run_epochs(task, task.checkpointer, reporter, received)


def _by_lbfgs(task: Fit, reporter: Reporter, received: ReceivedSignal) -> None:
    def run(end: EndIteration, _: Callable[[], None]) -> None:
        solve(*task.learned, end, task.sample_weight, task.weights)

    task.iterate(run, reporter, received)
    if len(task.records) == task.resolved.epochs:
        warn(
            f"L-BFGS was stopped after {task.resolved.epochs} iterations, before the optimum: "
            "raise --epochs, or give a larger --l2"
        )


def _by_trees(task: Fit, reporter: Reporter, received: ReceivedSignal) -> None:
    reporter.stage("training", None, "documents of nodes")

    def watch(done: int) -> None:
        reporter.advance(done)
        task.check(received)

    task.scorer = Forest(train_trees(*task.learned, watch), task.classes)


Learner = Callable[[Fit, Reporter, ReceivedSignal], None]
# What trains a task, by `ClassifyOptions.learner`; `RemoteTraining.train` is another.
LEARNERS: dict[str, Learner] = {"sgd": _by_sgd, "lbfgs": _by_lbfgs, "tree": _by_trees}


class RemoteTraining(Protocol):
    """Training on the workers of an executor; see `dcme_w2v.cluster.distribute`."""

    def prepare(self, options: ClassifyOptions, checkpoints: CheckpointOptions) -> ClassifyOptions:
        """Return the options of a worker; raise UsageError for options that are not supported."""

    def train(self, task: Fit, reporter: Reporter, received: ReceivedSignal) -> None:
        """Train to the end."""

    def finish(self, weights: Weights, holdout: Labeled | None) -> dict[str, Any]:
        """Return the record of the training; may rescale the weights by held-out documents."""


def _hash_of(data: Labeled) -> str:
    matrix, (documents, labels) = data.matrix, data.instances()
    arrays = [matrix.indptr, matrix.indices, matrix.data, documents, labels]
    return hash_of(arrays if data.weights is None else [*arrays, data.weights])
