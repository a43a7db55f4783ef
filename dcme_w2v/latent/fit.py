"""Fit a latent-class model: EM from several starts, and the solution of the lowest cost."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.options import resolved as resolved_classifier
from dcme_w2v.classify.solver import solve
from dcme_w2v.classify.trainer import Weights, core_documents
from dcme_w2v.errors import DivergedError
from dcme_w2v.numeric.arrays import F32, F64
from dcme_w2v.numeric.lbfgs import minimize
from dcme_w2v.training.progress import QUIET, Reporter

from .cost import OWN, Cost, Observations
from .model import LatentClassifier
from .options import EPOCHS, LatentOptions, resolved
from .reduction import directions, reduced
from .starts import Starts, one_hot

INNER = 10  # iterations of L-BFGS in an iteration of EM, from the last weights
# Without labels, E-steps in an iteration of EM: they take a tenth of its time, and it takes many of
# them until xi is nearly 0 or 1.
E_STEPS = 3
FINISH = 40  # iterations of L-BFGS on all parameters


@dataclass(frozen=True)
class Solution:
    """The parameters at the end of a fit.

    Attributes
    ----------
    weights : ndarray of float32, shape (features + 1, latent)
    alpha : ndarray of float64, shape (latent, classes)
    sizes : ndarray of float64, shape (latent,)
        Sum of the posterior over the observations.
    costs : list of float
        The cost after each iteration.
    posterior : ndarray of float32, shape (n, latent), or None
        xi, from which EM can continue.
    """

    weights: F32
    alpha: F64
    sizes: F64
    costs: list[float]
    posterior: F32 | None = None

    @property
    def cost(self) -> float:
        """The last cost."""
        return self.costs[-1]


def expectation_maximization(
    cost: Cost,
    start: NDArray[np.floating],
    rounds: int,
    tolerance: float,
    reporter: Reporter = QUIET,
    before: Solution | None = None,
) -> Solution:
    """Alternate the two M-steps and the E-step; the cost never rises.

    Without labels, each M-step of the weights is followed by several of the other two steps.

    Parameters
    ----------
    cost : Cost
        At the end, it has the weights, alpha and posterior of the solution.
    start : ndarray, shape (n, latent)
        The first xi; rows sum to 1. At xi = 1 / K every gradient is 0, and EM would stop there.
    rounds : int
        Iterations, at most.
    tolerance : float
        EM stops when an iteration reduces the cost by less than this share.
    reporter : Reporter, optional
        Takes the progress.
    before : Solution, optional
        An earlier part of the same run, whose `posterior` is `start`. By default, the first M-step
        begins at weights of 0.

    Raises
    ------
    DivergedError
        The cost is not finite.
    """
    cost.table[:] = 0 if before is None else before.weights

    def step() -> float:
        for _ in range(1 if cost.data.classes else E_STEPS):
            cost.fit_alpha()
            value = cost.fit_posterior()
        return value

    costs = [] if before is None else list(before.costs)
    _alternate(cost, start, step, costs, rounds, tolerance, reporter)
    posterior = cost.xi.copy()
    return Solution(cost.weights.get(), cost.alpha, cost.sizes.copy(), costs, posterior)


def has_settled(costs: list[float], tolerance: float) -> bool:
    """Return whether the last iteration reduced the cost by at most the share `tolerance`."""
    return len(costs) > 1 and costs[-2] - costs[-1] <= tolerance * abs(costs[-1])


def _alternate(
    cost: Cost,
    start: NDArray[np.floating],
    step: Callable[[], float],
    costs: list[float],
    rounds: int,
    tolerance: float,
    reporter: Reporter,
) -> None:
    """Alternate the M-step of the weights and `step`, which returns the cost, from xi `start`.

    The costs are appended to `costs`. An M-step may take long, so that each of its iterations is
    reported.
    """
    cost.posterior[:] = 0
    cost.xi[:] = start
    for number in range(len(costs) + 1, rounds + 1):

        def watch(_: int, value: float, __: F64, done: int = number - 1) -> None:
            reporter.advance(done, loss=value)

        cost.fit_weights(INNER, watch)
        costs.append(_finite(step(), number, cost))
        reporter.advance(number, loss=costs[-1])
        if has_settled(costs, tolerance):
            break


def balanced(
    cost: Cost,
    start: NDArray[np.floating],
    weights: F32,
    shares: F64,
    balance: float,
    rounds: int,
    tolerance: float,
    reporter: Reporter = QUIET,
) -> Solution:
    """Fit labels, most of which are unknown; the cost, `Cost.balanced_cost`, never rises.

    Parameters
    ----------
    cost, start, rounds, tolerance, reporter
        See `expectation_maximization`; the latent classes of `cost` are the labels.
    weights : ndarray, shape (features + 1, latent)
        Where the first M-step begins.
    shares : ndarray, shape (latent,)
        Shares of the classes, above 0; their sum is 1.
    balance : float
        Weight of the divergence from these shares, at least 1.
    """
    cost.weights.set(weights)

    def step() -> float:
        value = cost.balanced_cost(shares, balance)
        cost.balanced_posterior(shares, balance)
        return value

    costs: list[float] = []
    _alternate(cost, start, step, costs, rounds, tolerance, reporter)
    return Solution(cost.weights.get(), np.eye(cost.latent), cost.sizes.copy(), costs)


def finish(cost: Cost, solution: Solution, reporter: Reporter = QUIET) -> Solution:
    """Minimize (2) over weights, biases and the logits of alpha together, from a solution."""
    features, latent, classes = cost.data.matrix.shape[1], cost.latent, cost.data.classes
    cut = (features + 1) * latent
    cost.weights.set(solution.weights)
    with np.errstate(divide="ignore"):
        logits = np.maximum(np.log(solution.alpha.T), -50)  # classes never chosen come back slowly

    def function(flat: F64) -> tuple[float, F64]:
        cost.log_alpha[:, :latent] = log_softmax_columns(flat[cut:].reshape(classes, latent))
        value, by_weights, by_alpha = cost.gradient(flat[:cut].reshape(features + 1, latent))
        return value, np.concatenate([by_weights.ravel(), by_alpha.ravel()])

    costs = list(solution.costs)

    def watched(number: int, value: float, point: F64) -> None:
        reporter.advance(number, loss=value)

    start = np.concatenate([solution.weights.astype(np.float64).ravel(), logits.ravel()])
    point = minimize(function, start, iterations=FINISH, tolerance=1e-9, watch=watched)
    value, _ = function(point)
    _finite(value, len(costs), cost)
    sizes = cost.masses()
    return Solution(cost.weights.get(), cost.alpha, sizes, [*costs, value])


def log_softmax_columns(logits: F64) -> F64:
    """Return log softmax of each column."""
    shifted = logits - logits.max(axis=0)
    return shifted - np.log(np.exp(shifted).sum(axis=0))


def _finite(value: float, number: int, cost: Cost) -> float:
    if not math.isfinite(value):
        raise DivergedError(
            f"the cost is {value} in iteration {number} (--l2={cost.l2:g}): give a higher --l2, or "
            "rows of unit length"
        )
    return value


EMPTY = 0.5  # sum of xi below which a class is reported as empty
FOLDS = 5  # folds of the labeled documents for `unlabeled="auto"`
TRIED = 2  # iterations from each of several starts; only the best start is continued


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


def learn(
    matrix: csr_matrix,
    labels: Sequence[Sequence[int]] | None,
    classes: Sequence[str],
    options: LatentOptions,
    reporter: Reporter = QUIET,
    text: TextFeatures | None = None,
    multilabel: bool = False,
) -> LatentClassifier:
    """Resolve the options, reduce the rows and fit a model.

    Parameters
    ----------
    matrix : csr_matrix of float32, shape (documents, features)
    labels : sequence of sequence of int, or None
        The labels of each document, possibly none; None clusters the documents.
    classes : sequence of str
        Names of the labels; without labels, the latent classes get names.
    options : LatentOptions
    reporter : Reporter, optional
    text : TextFeatures, optional
        The features of the model.
    multilabel : bool
        Whether documents may have several labels.

    Raises
    ------
    UsageError
        The options do not fit the documents.
    """
    options = resolved(options, len(classes), *matrix.shape)
    right = None
    if options.lsa:
        reporter.stage("latent semantic analysis", None, "rows")
        right = directions(matrix, options.lsa, options.seed)
        matrix = reduced(matrix, right)
    found = fit(Observations.of(matrix, labels, len(classes)), options, reporter)
    solution = found.solution
    latent = solution.weights.shape[1]
    weights = Weights(len(solution.weights) - 1, latent, 1.0)
    weights.set(solution.weights)
    is_direct = not classes or options.unlabeled != "ignore"
    record = {
        "cost": solution.cost,
        "costs": solution.costs,
        "active": int((solution.sizes >= EMPTY).sum()),
        "l2": found.l2,
        "starts": found.starts,
        **found.facts,
    }
    return LatentClassifier(
        list(classes) or [f"cluster-{k + 1}" for k in range(latent)],
        text, options, multilabel, record=record, weights=weights,
        shares=solution.sizes / max(float(solution.sizes.sum()), 1e-300),
        alpha=None if is_direct else solution.alpha.astype(np.float32),
        right=right, clusters=not classes,
    )  # fmt: skip


def fit(data: Observations, options: LatentOptions, reporter: Reporter = QUIET) -> Fit:
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
    if data.classes and options.unlabeled != "ignore":
        return _from_labeled(data, options, reporter)
    latent, rounds = options.latent or 2, options.epochs or EPOCHS
    tolerance = options.tolerance * (1 if data.classes else E_STEPS)
    starts = Starts(data, latent, options, reporter)
    l2 = options.l2
    if l2 is None:  # lambda / K, with the lambda of the ridge regression
        l2 = starts.quadratic.ridge / latent
    cost = Cost(data, latent, l2, options.smoothing if data.classes else 0.0, options.threads or 1)
    tried = starts.tried()
    several = len(tried) > 1 and not data.classes
    best, name, found = None, "", Fit(Solution(cost.weights.get(), cost.alpha, cost.sizes, []))
    found.l2 = l2
    for kind, number in tried:
        begin, shown = time.monotonic(), f"{kind} {number + 1}"
        xi = starts.start(kind, number)
        reporter.stage(f"EM from {shown}", rounds, "iterations")
        some = min(rounds, TRIED) if several else rounds
        one = expectation_maximization(cost, xi, some, tolerance, reporter)
        found.starts.append(_start_record(kind, one, begin))
        if best is None or one.cost < best.cost:
            best, name = one, shown
    assert best is not None
    if several:
        costs = ", ".join(f"{one['init']} {one['cost']:.6g}" for one in found.starts)
        reporter.message(f"cost after {TRIED} iterations: {costs}; continued from {name}")
        if best.posterior is not None and not has_settled(best.costs, tolerance):
            reporter.stage(f"EM from {name}", rounds, "iterations")
            best = expectation_maximization(cost, best.posterior, rounds, tolerance, reporter, best)
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
        solution = _with_unlabeled(part, options, QUIET).solution
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
