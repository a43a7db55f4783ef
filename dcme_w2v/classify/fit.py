"""Fit a linear classifier: choose its settings, train it, and calibrate its probabilities.

`fit_linear` is the only implementation; files, estimators, few labels and clusters all use it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from dcme_w2v._core.models import SparseRows
from dcme_w2v.errors import DivergedError, Interrupted, warn
from dcme_w2v.files.space import shortage
from dcme_w2v.numeric.arrays import F32, F64
from dcme_w2v.numeric.lbfgs import HISTORY
from dcme_w2v.numeric.parallel import one_blas_thread
from dcme_w2v.numeric.sparse_rows import AnyRows
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.platform import ReceivedSignal, memory_limit
from dcme_w2v.training.checkpoint_folder import Checkpoint, CheckpointFolder
from dcme_w2v.training.progress import QUIET, Reporter
from dcme_w2v.training.run import Checkpointer, TrainingRun, run_epochs
from dcme_w2v.training.trainer import Fingerprint, hash_of

from .calibration import Calibration
from .choose import (
    MIN_COMPARED,
    Choice,
    OutOfFold,
    Problem,
    Search,
    Setting,
    choose,
    mean_and_error,
)
from .constants import BALANCES, CERTAIN, CLEARLY, FOLDS, TRIAL_DOCUMENTS
from .label_tree import ROOT, Forest, train_trees
from .labeled import Labeled, instances_of
from .metrics import Measures, best_threshold, log_softmax, ndcg, relevance
from .options import TREES, ClassifyOptions
from .solver import solve
from .trainer import (
    PAD,
    ClassifierTrainer,
    Scorer,
    Start,
    Weights,
    losses_of,
    resized,
    untrained_loss,
)

EndIteration = Callable[[int, float], bool]
# Maximum numbers of documents and of scores that calibration uses.
MAX_DOCUMENTS, MAX_SCORES = 5000, 1 << 23
# Calibration needs more documents for large multilabel data, because most labels are rare.
LEFT_OUT_OF_SETS = 1000
ABOVE = 1.25  # training has diverged if the final loss exceeds the untrained loss by this factor
# Divergence limit for negative sampling, as a multiple of the untrained loss. The suite
# `sampled_losses` measured the following maxima at default learning rates.
# With negative sampling, the loss on five documents reaches 14 times the untrained loss.
# With negative sampling, the loss on five numeric rows reaches 30 times the untrained loss.
ABOVE_WITH_SAMPLES = 50
# The final model's score may be this many standard errors below the cross-validation score.
FALL = 10.0


@dataclass
class Fitted:
    """The result of `fit_linear`, including the options, scorer, calibration and threshold.

    Attributes
    ----------
    scorer : Scorer
        The weights, votes or trees.
    options : ClassifyOptions
        The options of the training, with all defaults filled in.
    calibration : Calibration
    threshold : float or None
        Minimum probability of predicted labels, if documents have several; None if not fitted.
    records : list of dict
        For each epoch: `epoch`, `seconds`, `loss`, `lr`, and the held-out measures.
    choice : Choice or None
        What was chosen on held-out documents.
    seconds : float
        Duration of the training.
    cluster : dict or None
        The record of a training on a cluster.
    """

    scorer: Scorer
    options: ClassifyOptions
    calibration: Calibration = field(default_factory=Calibration)
    threshold: float | None = None
    records: list[dict[str, Any]] = field(default_factory=list)
    choice: Choice | None = None
    seconds: float = 0.0
    cluster: dict[str, Any] | None = None


@dataclass
class Job:
    """Settings for how `fit_linear` runs and reports; the defaults print and save nothing.

    Attributes
    ----------
    reporter, received
        Take the progress, and signals.
    seconds : float, optional
        Time limit for the search of settings (--tune); 0: no trials, neither for settings nor for
        calibration.
    chooses, calibrates : bool
        Whether to choose the settings that are not given, and whether to calibrate probabilities.
    holdout : callable, optional
        Returns the held-out documents for a setting. The model is measured on them after every
        epoch, and with `patience` they choose the epoch.
    begin : callable, optional
        Receives the setting and the options before the training starts.
    partial : callable, optional
        Saves the result so far after a signal, and returns a message.
    checkpoints, folder, found
        Where and when SGD saves its state, and the checkpoint that it resumes from.
    recorded : callable
        Called after `begin`; returns further options, which a resumed run must share.
    described : str
        The data, for messages.
    remote : RemoteTraining, optional
        Trains on the workers of an executor.
    start : Start, optional
        Initial weights for SGD, which then uses the second half of the learning-rate schedule.
    """

    reporter: Reporter = QUIET
    received: ReceivedSignal = field(default_factory=ReceivedSignal)
    seconds: float | None = None
    chooses: bool = True
    calibrates: bool = True
    holdout: Callable[[Setting], Labeled | None] = lambda _: None
    begin: Callable[[Setting, ClassifyOptions], None] = lambda *_: None
    partial: Callable[[Fitted], str | None] = lambda _: None
    checkpoints: CheckpointOptions | None = None
    folder: CheckpointFolder | None = None
    found: Checkpoint | None = None
    recorded: Callable[[], Mapping[str, Any]] = dict
    described: str = ""
    remote: RemoteTraining | None = None
    start: Start | None = None


def fit_linear(problem: Problem, job: Job | None = None) -> Fitted:
    """Choose settings, train a linear classifier, and calibrate its probabilities and threshold.

    A document with weight w counts w times in all of these steps.

    Raises
    ------
    Interrupted
        A signal arrived.
    DivergedError
        The training diverged, or the model is far worse than the trials of the search.
    KeyboardInterrupt
        Interrupted while training; its attribute `partial` is the result so far.
    """
    with one_blas_thread():
        whole = problem.with_none()
        fitted = _fit_linear(whole, job or Job(), problem.classes)
        if whole.classes > problem.classes and isinstance(fitted.scorer, Weights):
            fitted.scorer = resized(fitted.scorer, problem.classes)
        return fitted


def _fit_linear(problem: Problem, job: Job, size: int) -> Fitted:
    """Fit a classifier for `size` labels and, if there is one more class, for "no label"."""
    choice = None
    if job.chooses and job.remote is None:
        choice = choose(problem, job.seconds, job.reporter, job.received)
    setting = choice.setting if choice else {}
    options = problem.options(setting)
    if choice is not None and choice.setting:
        job.reporter.message(f"settings: {choice.line}")
    job.begin(setting, options)
    data = replace(problem.data, matrix=problem.rows(setting))
    learned, left_out = _divided(data, problem, options, job)
    start = time.monotonic()
    kind = TASKS[options.learner] if job.remote is None else Task
    task = kind(learned, problem.classes, options, job.holdout(setting), problem.several, job)
    try:
        task.train()
    except KeyboardInterrupt as error:
        error.partial = task.current_model()  # type: ignore[attr-defined]
        raise
    fitted = task.current_model()
    _check_loss(task, fitted.scorer)
    fitted.choice, fitted.seconds = choice, task.seconds or time.monotonic() - start
    if choice is not None:
        _check_against(choice, fitted.scorer, data, options.threads or 1)
    if job.remote is not None:
        left_out = job.holdout(setting)
        fitted.cluster = job.remote.finish(task.weights, left_out)
    if job.calibrates and options.loss == "hinge":
        _calibrate(fitted, data, problem, left_out, size, job)
    return fitted


# ---- calibration ----


def _divided(
    data: Labeled, problem: Problem, options: ClassifyOptions, job: Job
) -> tuple[Labeled, Labeled | None]:
    """Split documents into a training set and a calibration set.

    If there are few documents, none are left out, because the calibration uses cross-validation.
    The limit is lower for label trees, which are not cross-validated.
    """
    count = len(data.labels)
    is_tree = options.objective == "tree"
    few = count < (MIN_COMPARED if is_tree else TRIAL_DOCUMENTS)
    if options.loss != "hinge" or not job.calibrates or job.remote is not None or few:
        return data, None
    left_out = min(count, CERTAIN) // FOLDS
    if problem.several and count >= TRIAL_DOCUMENTS:
        left_out = LEFT_OUT_OF_SETS
    groups = np.arange(count) if data.groups is None else data.groups
    order = np.random.default_rng(options.seed).permutation(count)
    is_out = np.isin(groups, groups[order[:left_out]])
    return data.some(np.flatnonzero(~is_out)), data.some(np.flatnonzero(is_out))


def scores_of(scorer: Scorer, data: Labeled, threads: int, most: int = MAX_DOCUMENTS) -> OutOfFold:
    """Return the scores of all labeled documents, or of an evenly spaced sample."""
    known = np.array(
        [i for i, labels in enumerate(data.labels) if min(labels, default=0) >= 0], dtype=int
    )
    count = min(most, max(1, MAX_SCORES // scorer.classes), len(known))
    at = known[np.linspace(0, len(known) - 1, count).astype(int)] if count else known
    some = data.some(at)
    scores = scorer.scores(SparseRows(some.matrix), 0, count, threads)
    return OutOfFold(scores, list(some.labels), count * some.shares())


def _calibrate(
    fitted: Fitted,
    data: Labeled,
    problem: Problem,
    left_out: Labeled | None,
    size: int,
    job: Job,
) -> None:
    """Fit the calibration and the threshold to documents that were not used for training."""
    options, several = fitted.options, problem.several
    kind = "logistic" if several else "normalized"
    if several or options.objective == "tree":
        fitted.calibration = Calibration(kind)
    held = fitted.choice.scores if fitted.choice else None
    if left_out is not None:
        held = scores_of(fitted.scorer, left_out, options.threads or 1)
    elif options.objective == "tree" or job.remote is not None:
        return
    elif held is None and data.held_together >= FOLDS and job.seconds != 0:
        job.reporter.stage("calibrating the probabilities", None, "documents")
        given = replace(problem, data=data, under=None, second_block=None, given=options)
        held = Search(given, reporter=job.reporter, received=job.received).scores({})
    if held is None or not held.labels:
        return
    scores, labels = held.scores, held.labels
    if several:
        scores, labels = scores[:, :size], [[one for one in own if one < size] for own in labels]
        if options.bias != 0 and isinstance(fitted.scorer, Weights):
            counts = data.counts(problem.classes)[:size]
            offsets = _best_offsets(scores, labels, counts, held.weights)
            scores = scores + offsets
            fitted.scorer.shift(np.append(offsets, np.zeros(problem.classes - size)))
    held = OutOfFold(scores, labels, held.weights)
    set_probabilities(fitted, held, several, size < problem.classes)


def set_probabilities(fitted: Fitted, held: OutOfFold, several: bool, has_none: bool) -> None:
    """Fit the calibration and, for multilabel data, the threshold to held-out documents."""
    kind = "logistic" if several else "normalized"
    fitted.calibration = Calibration.fit(kind, held.scores, held.labels, held.weights)
    if several and any(held.labels):
        log_p = fitted.calibration.apply(held.scores)
        may_be_none = has_none or not all(held.labels)
        fitted.threshold = best_threshold(log_p, held.labels, held.weights, may_be_none)


def _best_offsets(scores: F64, labels: list[Any], counts: F64, weights: F64) -> F64:
    """Return the score offsets, based on label frequencies, that improve nDCG@5 most.

    After few epochs, the scores of rare labels are too low (logit adjustment, Menon et al. 2021).
    All offsets are 0 if no other offsets are clearly better.
    """
    relevant = relevance(labels, len(counts))
    has = relevant.any(axis=1)
    relevant, scores, weights = relevant[has], scores[has], weights[has]
    best, highest = np.zeros(len(counts)), 0.0
    if len(scores) < 2:
        return best
    lacking = math.log(max(counts.max(), 1)) - np.log(np.maximum(counts, 1))
    first = ndcg(scores, relevant)
    for balance in BALANCES:
        gained = ndcg(scores + balance * lacking, relevant) - first
        mean, error = mean_and_error(gained, weights)
        if mean > max(highest, CLEARLY * error):
            highest, best = mean, balance * lacking
    return best


def _check_loss(task: Task, scorer: Scorer) -> None:
    """Raise an error if the training loss is far above the loss of an untrained model."""
    options, above = task.options, ABOVE
    if options.learner != "sgd" or not isinstance(scorer, Weights):
        return
    untrained = untrained_loss(options, task.classes)
    # Negative sampling makes the differences between scores too large, so its loss limit is higher.
    if math.isinf(untrained):
        untrained, above = math.log(task.classes), ABOVE_WITH_SAMPLES
    some = scores_of(scorer, task.data, options.threads or 1)
    losses = losses_of(some.scores, some.labels, options)
    found = float(np.average(losses, weights=some.weights))
    if found > above * untrained:
        raise DivergedError(
            f"training diverged: the loss is {found:.4g}, compared with {untrained:.4g} for an "
            "untrained model; use a lower --lr"
        )


def _check_against(choice: Choice, scorer: Scorer, data: Labeled, threads: int) -> None:
    """Raise an error if predictions are far worse than in cross-validation with these settings."""
    if choice.figures is None or choice.at is None or choice.measure is None:
        return
    some = data.some(choice.at)
    scores = [*scorer.batches(SparseRows(some.matrix), threads)]
    found = choice.measure(np.concatenate(scores), some.labels)
    weights = np.ones(len(found)) if some.weights is None else some.weights.astype(np.float64)
    fall, error = mean_and_error(choice.figures - found, weights)
    if fall > FALL * error:
        now = float(np.average(found, weights=weights))
        raise DivergedError(
            f"training diverged: the score on the training documents is {now:.4f}, but "
            f"cross-validation reached {now + fall:.4f}; use a lower --lr, or less extreme class "
            "or document weights"
        )


# ---- training ----


def measure(scorer: Scorer, data: Labeled, measures: Measures, threads: int) -> dict[str, Any]:
    """Evaluate a classifier on labeled documents."""
    begin = 0
    for scores in scorer.batches(SparseRows(data.matrix), threads):
        own = slice(begin, begin + len(scores))
        weights = None if data.weights is None else data.weights[own]
        measures.add(log_softmax(scores), data.labels[own], weights)
        begin += len(scores)
    return measures.result()


class Task:
    """Base class of tasks, which trains on a cluster; the subclasses train in this process.

    Parameters
    ----------
    data : Labeled
        Training documents; all labels are classes.
    classes : int
        Number of classes, at least 2.
    options : ClassifyOptions
        Options with all defaults filled in.
    holdout : Labeled, optional
        Held-out documents, on which the model is measured after every epoch. With `patience`, the
        weights of the last epoch with the best accuracy (precision at 1 if there are several
        labels) are kept.
    multilabel : bool
        Whether documents may have several labels.
    job : Job, optional

    Attributes
    ----------
    learned, sample_weight
        The documents, instances, `classes` and `options` for the learner, and the instance weights.
    weights : Weights
        The current weights or, after training, the weights of the best epoch. Trees have no
        weights.
    scorer : Scorer
        What scores documents so far: the weights, votes or trees.
    records : list of dict
        See `Fitted`.
    """

    def __init__(
        self,
        data: Labeled,
        classes: int,
        options: ClassifyOptions,
        holdout: Labeled | None = None,
        multilabel: bool = False,
        job: Job | None = None,
    ) -> None:
        self.data, self.classes, self.options, self.holdout = data, classes, options, holdout
        self.job, self.multilabel = job or Job(), multilabel
        matrix, settings, start = data.matrix, options, self.job.start
        if start is not None:
            matrix, settings = start.rows(matrix), _second_half(options, start)
            self.holdout = holdout and replace(holdout, matrix=start.rows(holdout.matrix))
        self.learned = (matrix, *instances_of(data.labels), classes, settings)
        self.sample_weight = data.instance_weights()
        self.records: list[dict[str, Any]] = []
        self.seconds = 0.0
        self.figure = f"heldout_{'precision_at_1' if multilabel else 'accuracy'}"
        self.best, self.best_epoch = -1.0, 0
        self.weights = self.initial()
        self.scorer: Scorer = self.weights
        self.best_tables: dict[str, F32] = {}
        if holdout is not None and options.patience:
            self.best_tables = {k: np.zeros_like(v) for k, v in self.weights.tables.items()}

    def initial(self) -> Weights:
        """Return the weights at the start of the training; trees have none."""
        features = 0 if self.options.learner == "tree" else self.data.matrix.shape[1]
        return Weights(features, self.classes, self.options.bias)

    def learn(self) -> None:
        """Train on the workers of the job; a subclass trains in this process."""
        assert self.job.remote is not None
        self.job.remote.train(self)

    @property
    def total_weight(self) -> float:
        """Total weight of all instances."""
        weights = self.sample_weight
        return float(len(self.learned[2]) if weights is None else weights.sum(dtype=np.float64))

    def current_model(self) -> Fitted:
        """Return the model trained so far."""
        start, scorer = self.job.start, self.scorer
        if start is not None:
            scorer = start.finished(self.weights)
        return Fitted(scorer, self.options, records=self.records)

    def scores(self) -> dict[str, Any]:
        """Evaluate the current weights on the held-out documents."""
        if self.holdout is None:
            return {}
        wanted = ("accuracy", "top5_accuracy", "log_likelihood", "precision_at_1")
        measures = Measures(self.classes, self.multilabel)
        found = measure(self.scorer, self.holdout, measures, self.options.threads or 1)
        return {f"heldout_{name}": found[name] for name in wanted if name in found}

    def end_epoch(self, record: Mapping[str, Any]) -> None:
        """Store the measures of an epoch, and the weights if they are the best so far."""
        self.records.append(dict(record))
        if self.best_tables:
            figure = record[self.figure]
            if (
                figure >= self.best
            ):  # prefer the last of tied epochs, because ties are common with few documents
                self.best, self.best_epoch = figure, record["epoch"]
                for name, table in self.weights.tables.items():
                    self.best_tables[name][:] = table

    def is_over(self) -> bool:
        """Return whether the held-out measure has not improved for `patience` epochs."""
        patience = self.options.patience
        if not patience or self.holdout is None or not self.records:
            return False
        figures = [one[self.figure] for one in self.records]
        return len(figures) - 1 - figures.index(max(figures)) >= patience

    def train(self) -> None:
        """Train until the last epoch or an early stop; restore the weights of the best epoch.

        Raises
        ------
        Interrupted, DivergedError
            See `dcme_w2v.training.run.run_epochs`.
        """
        self.learn()
        if self.best_tables and self.best_epoch and len(self.records) > 1:
            for name, table in self.weights.tables.items():
                table[:] = self.best_tables[name]
            self.job.reporter.message(
                f"kept the weights from epoch {self.best_epoch}, which scored best on the "
                "held-out documents"
            )

    def iterate(self, run: Callable[[EndIteration, Callable[[], None]], None]) -> None:
        """Run a solver, and report each of its iterations as an epoch.

        `run` is called with two functions: the first takes the number and loss of a finished
        iteration and returns whether to stop; the second raises Interrupted if a signal was
        received.
        """
        reporter, start = self.job.reporter, time.monotonic()
        reporter.stage("training", None, "iterations")

        def iterated(iteration: int, loss: float) -> bool:
            nonlocal start
            reporter.advance(iteration, loss=loss)
            seconds = round(time.monotonic() - start, 3)
            record = {"epoch": iteration, "seconds": seconds, "loss": loss, **self.scores()}
            self.end_epoch(record)
            reporter.epoch(record)
            start = time.monotonic()
            self.check_signals()
            return self.is_over()

        run(iterated, self.check_signals)

    def check_signals(self) -> None:
        """If a signal has arrived, save the current result and raise Interrupted."""
        received = self.job.received
        if received.number is not None:
            epoch = len(self.records) + 1
            saved = self.save_partial() or "nothing was saved"
            message = f"stopped by {received.name} in epoch {epoch}: {saved}"
            raise Interrupted(message, received.number)

    def save_partial(self) -> str | None:
        """Save the current result; return None if the weights are on workers or in tree nodes."""
        if not self.records and (self.job.remote or self.options.learner == "tree"):
            return None
        return self.job.partial(self.current_model())


def _second_half(options: ClassifyOptions, start: Start) -> ClassifyOptions:
    """Return options for the second half of the training schedule, without an L2 penalty.

    If all documents have the same label, they are visited once, because none of them supports
    another label.
    """
    lr, epochs = options.lr or 0.0, 1 if start.has_one_label else -(-(options.epochs or 1) // 2)
    bias = float(start.share * (options.bias or 0))
    return replace(options, lr=lr / 2, epochs=epochs, l2=0.0, bias=bias)


class SgdTask(Task, TrainingRun):
    """A resumable training by stochastic gradient descent or dual coordinate descent."""

    kind, unit = "classes", "documents"

    def initial(self) -> Weights:
        """Open the training in the C core, and return its weights."""
        start = self.job.start
        begun = None if start is None else start.begun(self.classes)
        self.training = ClassifierTrainer(*self.learned, begun, self.sample_weight)
        named = {**asdict(self.options), **self.job.recorded()}
        TrainingRun.__init__(self, self.training, named, self.training.count * self.training.epochs)
        return self.training.weights

    def learn(self) -> None:
        """Train the remaining epochs."""
        job, checkpoints = self.job, None
        if job.folder is not None and job.checkpoints is not None:
            checkpoints = Checkpointer(self, job.reporter, job.folder, job.checkpoints, job.found)
        run_epochs(self, job.reporter, job.received, checkpoints)
        self.seconds = self.position.seconds

    def fingerprint(self) -> Fingerprint:
        """Return hashes that identify the documents and their labels."""
        hashes = {"documents": _hash_of(self.data)}
        if self.holdout is not None:
            hashes["holdout"] = _hash_of(self.holdout)
        return Fingerprint(hashes, self.job.described)

    def tables(self) -> Mapping[str, F32]:
        """Return the tables for checkpoints: the current and the best weights."""
        best = {f"best_{name}": table for name, table in self.best_tables.items()}
        return {**self.training.tables, **best}

    def notes(self) -> dict[str, Any]:
        """Return the measures of all epochs so far, for checkpoints."""
        return {"epochs": self.records, "best": self.best, "best_epoch": self.best_epoch}

    def take_notes(self, notes: Mapping[str, Any]) -> None:
        """Restore the measures that `notes` returned."""
        self.records[:] = [{**one, "epoch": int(one["epoch"])} for one in notes["epochs"]]
        self.best, self.best_epoch = float(notes["best"]), int(notes["best_epoch"])


class LbfgsTask(Task):
    """A training by L-BFGS, whose iterations count as epochs."""

    def learn(self) -> None:
        """Minimize the loss until it converges; warn if the iterations are not enough."""

        def run(end: EndIteration, _: Callable[[], None]) -> None:
            solve(*self.learned, end, self.sample_weight, self.weights)

        self.iterate(run)
        if len(self.records) == self.options.epochs:
            warn(
                f"L-BFGS stopped after {self.options.epochs} iterations without converging; raise "
                "--epochs or --l2"
            )


class TreeTask(Task):
    """A training of label trees."""

    def learn(self) -> None:
        """Train the nodes of all trees."""
        self.job.reporter.stage("training", None, "documents of nodes")

        def watch(done: int) -> None:
            self.job.reporter.advance(done)
            self.check_signals()

        self.scorer = Forest(train_trees(*self.learned, watch, self.sample_weight), self.classes)


# Maps each value of `ClassifyOptions.learner` to the class of its tasks in this process.
TASKS: dict[str, type[Task]] = {
    "sgd": SgdTask, "dual": SgdTask, "lbfgs": LbfgsTask, "tree": TreeTask,
}  # fmt: skip


class RemoteTraining(Protocol):
    """Protocol for training on workers, implemented by `dcme_w2v.cluster.distribute`."""

    def prepare(self, options: ClassifyOptions, checkpoints: CheckpointOptions) -> ClassifyOptions:
        """Return the workers' options; raise UsageError if workers do not support an option."""

    def train(self, task: Task) -> None:
        """Train on the workers until all epochs are done or training is stopped."""

    def finish(self, weights: Weights, holdout: Labeled | None) -> dict[str, Any]:
        """Rescale the weights using held-out documents if necessary; return the training record."""


def _hash_of(data: Labeled) -> str:
    matrix, (documents, labels) = data.matrix, instances_of(data.labels)
    arrays = [matrix.indptr, matrix.indices, matrix.data, documents, labels]
    return hash_of(arrays if data.weights is None else [*arrays, data.weights])


PIECE = 16384  # documents are scored in batches of this size, as in csrc/classify/full_gradient.c


def resource_estimate(
    matrix: AnyRows, labels: Iterable[Sized], classes: int, options: ClassifyOptions
) -> dict[str, Any]:
    """Estimate the memory that training takes, and compare it with the available memory.

    Parameters
    ----------
    matrix : AnyRows, shape (documents, features)
        The documents to train on.
    labels : iterable of sequences
        The labels of each document.
    classes : int
    options : ClassifyOptions
        Options with all defaults filled in.

    Returns
    -------
    dict
        Its entry "refused" is the error if there is not enough memory, so that a run fails at once
        rather than after hours.
    """
    features, count = matrix.shape[1], sum(map(len, labels))
    rows = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes + 16 * count
    width = -(-classes // PAD) * PAD
    table = 4 * (features + 1) * width
    if options.objective == "tree":
        memory = tree_bytes(features, rows, count, classes, TREES)
    elif (
        options.solver == "lbfgs"
    ):  # L-BFGS stores its points, gradients, direction and correction pairs as float64
        memory = table + 8 * (features + 1) * classes * (2 * HISTORY + 8)
        memory += 8 * matrix.nnz  # L-BFGS also stores a transposed copy of the documents
        memory += 4 * min(count, PIECE) * width  # scores
    else:
        # With `patience`, a second table holds the weights of the best epoch.
        memory = table * (2 if options.patience else 1)
        if options.solver == "dual":  # one dual variable per document and class is stored
            memory += 4 * count * width
        if options.objective == "dcme":  # robust dcme stores two float32 columns per cluster
            columns = options.clusters if options.dcme_update == "robust" else 0
            memory += 8 * (features + 1) * -(-(columns or 0) // PAD) * PAD
    what = f"training {features:,} features and {classes:,} classes"
    remedy = "lower --features or --hashing, or use --objective tree for many classes"
    return {
        "documents": matrix.shape[0],
        "classes": classes,
        "features": features,
        "memory_bytes": rows + memory,
        "memory_available_bytes": memory_limit(),
        "refused": shortage(rows + memory, what, remedy),
    }


def tree_bytes(features: int, documents_bytes: int, labels: int, classes: int, trees: int) -> int:
    """Estimate the memory for training label trees, without the memory for the documents.

    On EURLEX57K, each label of a document adds about ten weights and two feature rows to a tree.
    """
    weights = trees * (150 * labels + 64 * classes)
    root = 4 * features * min(ROOT, max(1, classes // 32))
    return documents_bytes + root + 1024 * (features + 2 * classes) + weights
