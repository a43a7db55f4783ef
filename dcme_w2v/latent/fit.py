"""Fit a latent-class model by EM from several starts, and keep the best start."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.errors import DivergedError
from dcme_w2v.numeric.arrays import F32, F64
from dcme_w2v.numeric.components import singular_vectors
from dcme_w2v.numeric.parallel import one_blas_thread
from dcme_w2v.training.progress import QUIET, Reporter

from .cost import Cost, Observations
from .model import LatentClassifier, reduced
from .options import EPOCHS, LatentOptions, resolved
from .starts import Starts

INNER = 10  # number of L-BFGS iterations per M-step
# Number of E-steps per EM iteration without labels, because posteriors then converge slowly.
E_STEPS = 3
SMOOTHING = 0.1  # pseudocount that is added to the count of each label in each latent class
EMPTY = 0.5  # latent classes whose posteriors sum to less than this are reported as empty


@dataclass(frozen=True)
class Solution:
    """The parameters and the history of costs at the end of a fit.

    Attributes
    ----------
    weights : ndarray of float32, shape (features + 1, latent)
    alpha : ndarray of float64, shape (latent, classes)
    sizes : ndarray of float64, shape (latent,)
        Sum of the posterior over the observations.
    costs : list of float
        The cost after each iteration.
    posterior : ndarray of float32, shape (n, latent)
        xi, from which EM can continue.
    """

    weights: F32
    alpha: F64
    sizes: F64
    costs: list[float]
    posterior: F32

    @property
    def cost(self) -> float:
        """The cost after the last iteration."""
        return self.costs[-1]


def expectation_maximization(
    cost: Cost,
    start: NDArray[np.floating],
    rounds: int,
    tolerance: float,
    reporter: Reporter = QUIET,
    before: Solution | None = None,
) -> Solution:
    """Alternate between the two M-steps and the E-step; no step increases the cost.

    Without labels, each M-step for the weights is followed by several rounds of the other two
    steps.

    Parameters
    ----------
    cost : Cost
        Overwritten with the weights, alpha and posterior of the solution.
    start : ndarray, shape (n, latent)
        The initial xi, whose rows sum to 1. It must not be 1 / K everywhere, because every gradient
        is 0 there.
    rounds : int
        Maximum number of iterations.
    tolerance : float
        EM stops when an iteration reduces the cost by less than this share.
    reporter : Reporter, optional
        Takes the progress.
    before : Solution, optional
        An earlier part of the same run, whose `posterior` is `start`. By default, the first M-step
        starts from zero weights.

    Raises
    ------
    DivergedError
        The cost is not finite.
    """
    cost.table[:] = 0 if before is None else before.weights
    cost.posterior[:] = 0
    cost.xi[:] = start
    costs = [] if before is None else list(before.costs)
    for number in range(len(costs) + 1, rounds + 1):

        def watch(_: int, value: float, __: F64, done: int = number - 1) -> None:
            reporter.advance(done, loss=value)

        cost.fit_weights(INNER, watch)
        for _ in range(1 if cost.data.classes else E_STEPS):
            cost.fit_alpha()
            value = cost.fit_posterior()
        if not math.isfinite(value):
            raise DivergedError(
                f"the cost became {value} in iteration {number} with --l2={cost.l2:g}; use a "
                "higher --l2, or scale the rows to unit length"
            )
        costs.append(value)
        reporter.advance(number, loss=value)
        if len(costs) > 1 and costs[-2] - value <= tolerance * abs(value):
            break
    return Solution(cost.weights.get(), cost.alpha, cost.sizes.copy(), costs, cost.xi.copy())


def learn(
    matrix: csr_matrix,
    labels: Sequence[Sequence[int]] | None,
    classes: Sequence[str],
    options: LatentOptions,
    reporter: Reporter = QUIET,
    text: TextFeatures | None = None,
    multilabel: bool = False,
) -> LatentClassifier:
    """Resolve the options, reduce the rows to fewer dimensions if requested, and fit a model.

    Parameters
    ----------
    matrix : csr_matrix of float32, shape (documents, features)
    labels : sequence of sequence of int, or None
        The labels of each document; None means that documents are clustered.
    classes : sequence of str
        Names of the labels; without labels, names for the latent classes are generated.
    options : LatentOptions
    reporter : Reporter, optional
    text : TextFeatures, optional
        The features of the model.
    multilabel : bool
        Whether documents may have several labels.

    Raises
    ------
    UsageError
        The options are not valid for these documents.
    """
    options = resolved(options, len(classes), *matrix.shape)
    right = None
    with one_blas_thread():
        if options.lsa:
            reporter.stage("latent semantic analysis", None, "rows")
            found = singular_vectors(matrix, options.lsa, options.seed, centered=False)
            right = found[-1].astype(np.float32)
            matrix = reduced(matrix, right)
        solution, record = fit(Observations.of(matrix, labels, len(classes)), options, reporter)
    latent = solution.weights.shape[1]
    weights = Weights(len(solution.weights) - 1, latent, 1.0)
    weights.set(solution.weights)
    return LatentClassifier(
        list(classes) or [f"cluster-{k + 1}" for k in range(latent)],
        text, options, multilabel, record=record, weights=weights,
        shares=solution.sizes / max(float(solution.sizes.sum()), 1e-300),
        alpha=solution.alpha.astype(np.float32) if classes else None,
        right=right, clusters=not classes,
    )  # fmt: skip


def fit(
    data: Observations, options: LatentOptions, reporter: Reporter = QUIET
) -> tuple[Solution, dict[str, Any]]:
    """Fit the model from all starts; return the best solution and statistics of the fit.

    Parameters
    ----------
    data : Observations
    options : LatentOptions
        Options with all defaults filled in.
    reporter : Reporter, optional
        Takes each iteration.

    Raises
    ------
    DivergedError
        The cost is not finite.
    """
    latent, rounds = options.latent or 2, options.epochs or EPOCHS
    tolerance = options.tolerance * (1 if data.classes else E_STEPS)
    starts = Starts(data, latent, options, reporter)
    l2 = options.l2
    # The default penalty is the ridge-regression penalty divided by the number of latent
    # classes.
    if l2 is None:
        l2 = starts.quadratic.ridge / latent
    cost = Cost(data, latent, l2, SMOOTHING if data.classes else 0.0, options.threads or 1)
    tried = starts.tried()
    several = len(tried) > 1 and not data.classes
    found, solutions, lowest = list[dict[str, Any]](), list[Solution](), dict[str, float]()
    for kind, number in tried:
        xi, name = starts.start(kind, number), f"{kind} {number + 1}"
        reporter.stage(f"EM from {name}", rounds, "iterations")
        one = expectation_maximization(cost, xi, 1 if several else rounds, tolerance, reporter)
        found.append({"init": kind, "cost": one.cost, "iterations": len(one.costs)})
        lowest[kind] = min(one.cost, lowest.get(kind, math.inf))
        if not solutions or one.cost < solutions[0].cost:
            solutions, chosen = [one], name
    [best] = solutions
    if several:
        costs = ", ".join(f"{kind} {value:.6g}" for kind, value in lowest.items())
        reporter.message(
            f"lowest cost per starting method, after one iteration from {len(tried)} starting "
            f"points: {costs}; training continues from {chosen}"
        )
        reporter.stage(f"EM from {chosen}", rounds, "iterations")
        best = expectation_maximization(cost, best.posterior, rounds, tolerance, reporter, best)
    return best, {
        "cost": best.cost, "costs": best.costs, "active": int((best.sizes >= EMPTY).sum()),
        "l2": l2, "starts": found, "chosen": chosen,
    }  # fmt: skip
