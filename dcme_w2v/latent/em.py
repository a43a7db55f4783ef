"""EM for a latent-class model from a given xi, and L-BFGS on all parameters after it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import DivergedError
from dcme_w2v.numeric.arrays import F32, F64
from dcme_w2v.numeric.lbfgs import minimize
from dcme_w2v.training.progress import Quiet, Reporter

from .cost import Cost

INNER = 10  # iterations of L-BFGS in an iteration of EM, from the last weights
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
    reporter: Reporter | None = None,
    before: Solution | None = None,
) -> Solution:
    """Alternate the two M-steps and the E-step; the cost never rises.

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
    cost.weights.table[:, : cost.latent] = 0 if before is None else before.weights

    def step() -> float:
        cost.fit_alpha()
        return cost.fit_posterior()

    costs = [] if before is None else list(before.costs)
    _alternate(cost, start, step, costs, rounds, tolerance, reporter or Quiet())
    posterior = cost.posterior[:, : cost.latent].copy()
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
    cost.posterior[:, : cost.latent] = start
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
    reporter: Reporter | None = None,
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
    _alternate(cost, start, step, costs, rounds, tolerance, reporter or Quiet())
    return Solution(cost.weights.get(), np.eye(cost.latent), cost.sizes.copy(), costs)


def finish(cost: Cost, solution: Solution, reporter: Reporter | None = None) -> Solution:
    """Minimize (2) over weights, biases and the logits of alpha together, from a solution."""
    progress = reporter or Quiet()
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
        progress.advance(number, loss=value)

    start = np.concatenate([solution.weights.astype(np.float64).ravel(), logits.ravel()])
    point = minimize(function, start, iterations=FINISH, tolerance=1e-9, watch=watched)
    value, _ = function(point)
    _finite(value, len(costs), cost)
    sizes = cost.posterior[:, :latent].sum(axis=0, dtype=np.float64)
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
