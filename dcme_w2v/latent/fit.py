"""Fit a latent-class model: EM from several starts, and the solution of the lowest cost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.options import resolved as resolved_classifier
from dcme_w2v.classify.solver import solve
from dcme_w2v.classify.trainer import Weights, core_documents
from dcme_w2v.numeric.arrays import F32, F64
from dcme_w2v.training.progress import Quiet, Reporter

from .cost import OWN, Cost, Observations
from .em import (
    Solution,
    balanced,
    expectation_maximization,
    finish,
    has_settled,
)
from .options import EPOCHS, LatentOptions, resolved
from .reduction import directions, reduced
from .starts import Starts, one_hot

EMPTY = 0.5  # sum of xi below which a class is reported as empty
FOLDS = 5  # folds of the labeled documents for `unlabeled="auto"`
TRIED = 5  # iterations from each of several starts; only the best start is continued


@dataclass
class Fit:
    """The best solution, and figures of all starts.

    Attributes
    ----------
    solution : Solution
    starts : list of dict
        `init`, `cost`, `iterations` and `seconds` of each start.
    l2 : float
        The L2 regularization that was used.
    facts : dict
        Further figures for the record.
    """

    solution: Solution
    starts: list[dict[str, Any]] = field(default_factory=list)
    l2: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def active(self) -> int:
        """Number of classes that are not empty."""
        return int((self.solution.sizes >= EMPTY).sum())


@dataclass
class Learned:
    """A fit, with the reduction of the rows before it.

    Attributes
    ----------
    fit : Fit
    right : ndarray of float32, shape (features, dimensions), or None
        See `dcme_w2v.latent.reduction.reduced`.
    options : LatentOptions
        Resolved.
    rows : csr_matrix
        The rows that were learned, reduced if there is `right`.
    """

    fit: Fit
    right: F32 | None
    options: LatentOptions
    rows: csr_matrix


def learn(
    matrix: csr_matrix,
    labels: Sequence[Sequence[int]] | None,
    classes: int,
    options: LatentOptions,
    reporter: Reporter | None = None,
) -> Learned:
    """Resolve the options, reduce the rows and fit.

    Parameters
    ----------
    matrix : csr_matrix of float32, shape (documents, features)
    labels : sequence of sequence of int, or None
        The labels of each document, possibly none; None clusters the documents.
    classes : int
        Number of labels.
    options : LatentOptions
    reporter : Reporter, optional

    Raises
    ------
    UsageError
        The options do not fit the documents.
    """
    reporter = reporter or Quiet()
    options = resolved(options, classes, *matrix.shape)
    right = None
    if options.lsa:
        reporter.stage("latent semantic analysis", None, "rows")
        right = directions(matrix, options.lsa, options.seed)
        matrix = reduced(matrix, right)
    data = Observations.of(matrix, labels, classes if labels is not None else 0)
    return Learned(fit(data, options, reporter), right, options, matrix)


def fit(data: Observations, options: LatentOptions, reporter: Reporter | None = None) -> Fit:
    """Fit a model.

    Parameters
    ----------
    data : Observations
        Without any label, with labels for all, or, for `unlabeled="use"`, for some.
    options : LatentOptions
        Resolved.
    reporter : Reporter, optional
        Takes each iteration.

    Raises
    ------
    DivergedError
        The cost is not finite.
    """
    reporter = reporter or Quiet()
    if data.classes and options.unlabeled != "ignore":
        return _from_labeled(data, options, reporter)
    latent, rounds = options.latent or 2, options.epochs or EPOCHS
    starts = Starts(data, latent, options, reporter)
    l2 = options.l2
    if l2 is None:  # lambda / K, with the lambda of the ridge regression
        l2 = starts.quadratic.ridge / latent
    cost = Cost(data, latent, l2, options.smoothing if data.classes else 0.0, options.threads or 1)
    tried = [(kind, number) for kind in starts.kinds() for number in range(options.starts or 1)]
    several = len(tried) > 1 and not data.classes
    best, name, found = None, "", Fit(Solution(cost.weights.get(), cost.alpha, cost.sizes, []))
    found.l2 = l2
    for kind, number in tried:
        begin, shown = time.monotonic(), f"{kind} {number + 1}"
        xi = starts.start(kind, number)
        reporter.stage(f"EM from {shown}", rounds, "iterations")
        some = min(rounds, TRIED) if several else rounds
        one = expectation_maximization(cost, xi, some, options.tolerance, reporter)
        found.starts.append(_start_record(kind, one, begin))
        if best is None or one.cost < best.cost:
            best, name = one, shown
    assert best is not None
    if several:
        costs = ", ".join(f"{one['init']} {one['cost']:.6g}" for one in found.starts)
        reporter.message(f"cost after {TRIED} iterations: {costs}; continued from {name}")
        if best.posterior is not None and not has_settled(best.costs, options.tolerance):
            reporter.stage(f"EM from {name}", rounds, "iterations")
            best = expectation_maximization(
                cost, best.posterior, rounds, options.tolerance, reporter, best
            )
        found.facts["chosen"] = name
    if options.solver == "lbfgs":
        reporter.stage("L-BFGS", None, "iterations")
        best = finish(cost, best, reporter)
    found.solution = best
    return found


def _from_labeled(data: Observations, options: LatentOptions, reporter: Reporter) -> Fit:
    """Fit labeled and unlabeled documents; with "auto" only if they predict better."""
    if options.unlabeled == "use":
        return _with_unlabeled(data, options, reporter)
    scores = _cross_validated(data, options, reporter)
    use = scores["use"] > scores["ignore"]
    shown = ", ".join(f"{how} {value:.4f}" for how, value in scores.items())
    reporter.message(f"cross-validated accuracy by --unlabeled: {shown}")
    if use:
        found = _with_unlabeled(data, options, reporter)
    else:
        begin = time.monotonic()
        weights = labeled_classifier(data, options)
        found = Fit(_of_classifier(data, weights, options), l2=options.l2 or 0.0)
        found.starts.append(_start_record("labelled", found.solution, begin))
    found.facts |= {"cross_validated": scores, "unlabelled_used": use}
    return found


def _with_unlabeled(data: Observations, options: LatentOptions, reporter: Reporter) -> Fit:
    """Fit with one more label for each unlabeled document, and alpha fixed for the others.

    EM starts at the classifier of the labeled documents. xi of a labeled document is fixed at its
    label; xi of an unlabeled one starts at the classifier's probabilities.
    """
    begin, labeled = time.monotonic(), data.labels != OWN
    weights = labeled_classifier(data, options)
    xi = np.empty((data.count, data.classes))
    xi[labeled] = one_hot(data.labels[labeled].astype(np.int64), data.classes)
    xi[~labeled] = np.exp(_log_probabilities(weights, data.rows, options)[~labeled])
    cost = Cost(data, data.classes, options.l2 or 0.0, 0.0, options.threads or 1)
    counts = np.bincount(data.labels[labeled], minlength=data.classes) + 1.0
    reporter.stage("EM from the labeled documents", options.epochs, "iterations")
    solution = balanced(
        cost, xi, weights.get(), counts / counts.sum(), options.balance, options.epochs or EPOCHS,
        options.tolerance, reporter,
    )  # fmt: skip
    return Fit(solution, [_start_record("labelled", solution, begin)], cost.l2)


def labeled_classifier(data: Observations, options: LatentOptions) -> Weights:
    """Return the weights of maximum entropy on the labeled documents alone."""
    kept = np.flatnonzero(data.labels != OWN)
    wanted = ClassifyOptions(
        solver="lbfgs", l2=options.l2, bias=1.0, threads=options.threads, seed=options.seed
    )
    return solve(
        data.matrix, data.documents[kept], data.labels[kept], data.classes,
        resolved_classifier(wanted, data.classes),
    )  # fmt: skip


def _of_classifier(data: Observations, weights: Weights, options: LatentOptions) -> Solution:
    """Return a classifier as a model whose latent classes are the labels."""
    log_p = _log_probabilities(weights, data.rows, options)
    labeled = np.flatnonzero(data.labels != OWN)
    inner = weights.get()[:-1].astype(np.float64)
    loss = -float(log_p[labeled, data.labels[labeled]].mean())
    cost = loss + 0.5 * (options.l2 or 0.0) * float(np.square(inner).sum())
    return Solution(weights.get(), np.eye(data.classes), np.exp(log_p).sum(axis=0), [cost])


def _cross_validated(
    data: Observations, options: LatentOptions, reporter: Reporter
) -> dict[str, float]:
    """Return the accuracy on held-out labeled documents, without and with the unlabeled ones.

    Folds are stratified by label. Held-out documents are not among the unlabeled ones.
    """
    labeled = data.labels != OWN
    fold = np.full(data.count, -1)
    random = np.random.default_rng(options.seed)
    for label in range(data.classes):
        own = np.flatnonzero(data.labels == label)
        fold[own] = (random.permutation(len(own)) + random.integers(FOLDS)) % FOLDS
    right = {"ignore": 0, "use": 0}
    for number in range(FOLDS):
        out = np.flatnonzero(fold == number)
        kept = np.flatnonzero(fold != number)
        if not len(out) or len(np.unique(data.labels[kept])) < 3:  # two labels and OWN
            continue
        part = Observations(data.matrix, data.documents[kept], data.labels[kept], data.classes)
        reporter.stage(f"fold {number + 1} of {FOLDS}", None, "iterations")
        solution = _with_unlabeled(part, options, Quiet()).solution
        weights = Weights(data.matrix.shape[1], data.classes, 1.0)
        weights.set(solution.weights)
        for how, one in (("ignore", labeled_classifier(part, options)), ("use", weights)):
            rows = data.matrix[data.documents[out]]
            best = _log_probabilities(one, rows, options).argmax(axis=1)
            right[how] += int((best == data.labels[out]).sum())
    return {how: count / max(1, int(labeled.sum())) for how, count in right.items()}


def _log_probabilities(weights: Weights, rows: csr_matrix, options: LatentOptions) -> F64:
    scores = weights.scores(core_documents(rows), 0, rows.shape[0], options.threads or 1)
    return log_softmax(scores)


def _start_record(kind: str, solution: Solution, begin: float) -> dict[str, Any]:
    seconds = round(time.monotonic() - begin, 3)
    rounds = len(solution.costs)
    return {"init": kind, "cost": solution.cost, "iterations": rounds, "seconds": seconds}
