"""EM for a latent-class model from a given xi, and L-BFGS on all parameters from where it ends.

Called by `dcme_w2v.latent.fit`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import DivergedError
from dcme_w2v.latent.cost import Cost
from dcme_w2v.numeric.lbfgs import minimise

INNER = 10  # iterations of L-BFGS in each one of EM, from the last weights
FINISH = 40  # iterations of L-BFGS on all parameters

Watch = Callable[[int, float], None]


@dataclass(frozen=True)
class Solution:
    """Where a start has led.

    Attributes
    ----------
    weights : ndarray of float32, shape (features + 1, latent)
    alpha : ndarray of float64, shape (latent, classes)
    sizes : ndarray of float64, shape (latent,)
        Sum of the posterior over the observations.
    costs : list of float
        The cost after each iteration.
    """

    weights: NDArray[np.float32]
    alpha: NDArray[np.float64]
    sizes: NDArray[np.float64]
    costs: list[float]

    @property
    def cost(self) -> float:
        """The last cost."""
        return self.costs[-1]


def expectation_maximisation(
    cost: Cost,
    start: NDArray[np.floating],
    rounds: int,
    tolerance: float,
    watch: Watch | None = None,
    weights: NDArray[np.float32] | None = None,
) -> Solution:
    """Alternate the two M-steps and the E-step; the cost never rises.

    Parameters
    ----------
    cost : Cost
        Its weights, alpha and posterior are those of the solution at the end.
    start : ndarray, shape (n, latent)
        The first xi; rows sum to 1. Not 1 / K, where every gradient is 0.
    rounds : int
        Iterations, at most.
    tolerance : float
        Stop when an iteration reduces the cost by less than this share of it.
    watch : callable, optional
        Gets the iteration, from 1, and its cost.
    weights : ndarray, shape (features + 1, latent), optional
        Where the first M-step begins; zeros by default.

    Raises
    ------
    DivergedError
        The cost is not finite.
    """
    cost.posterior[:] = 0
    cost.posterior[:, : cost.latent] = start
    cost.weights.table[:, : cost.latent] = 0 if weights is None else weights
    costs: list[float] = []
    for number in range(1, rounds + 1):
        cost.fit_weights(INNER)
        cost.fit_alpha()
        costs.append(_finite(cost.fit_posterior(), number, cost))
        if watch:
            watch(number, costs[-1])
        if number > 1 and costs[-2] - costs[-1] <= tolerance * abs(costs[-1]):
            break
    return Solution(cost.weights.get(), cost.alpha, cost.sizes.copy(), costs)


def balanced(
    cost: Cost,
    start: NDArray[np.floating],
    weights: NDArray[np.float32],
    shares: NDArray[np.float64],
    balance: float,
    rounds: int,
    tolerance: float,
    watch: Watch | None = None,
) -> Solution:
    """Fit labels of which most are not known; the cost, `Cost.balanced_cost`, never rises.

    Parameters
    ----------
    cost, start, rounds, tolerance, watch
        See `expectation_maximisation`; the classes of `cost` are its labels.
    weights : ndarray, shape (features + 1, latent)
        Where the first M-step begins.
    shares : ndarray, shape (latent,)
        Of the classes, above 0; their sum is 1.
    balance : float
        Weight of the divergence from them, at least 1.
    """
    cost.posterior[:] = 0
    cost.posterior[:, : cost.latent] = start
    cost.weights.set(weights)
    costs: list[float] = []
    for number in range(1, rounds + 1):
        cost.fit_weights(INNER)
        costs.append(_finite(cost.balanced_cost(shares, balance), number, cost))
        cost.balanced_posterior(shares, balance)
        if watch:
            watch(number, costs[-1])
        if number > 1 and costs[-2] - costs[-1] <= tolerance * abs(costs[-1]):
            break
    return Solution(cost.weights.get(), np.eye(cost.latent), cost.sizes.copy(), costs)


def finish(cost: Cost, solution: Solution, watch: Watch | None = None) -> Solution:
    """Minimise (2) over weights, biases and the logits of alpha together, from a solution."""
    features, latent, classes = cost.data.matrix.shape[1], cost.latent, cost.data.classes
    cut = (features + 1) * latent
    cost.weights.set(solution.weights)
    with np.errstate(divide="ignore"):
        logits = np.maximum(np.log(solution.alpha.T), -50)  # classes never chosen come back slowly

    def function(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        cost.log_alpha[:, :latent] = log_softmax_columns(flat[cut:].reshape(classes, latent))
        value, by_weights, by_alpha = cost.gradient(flat[:cut].reshape(features + 1, latent))
        return value, np.concatenate([by_weights.ravel(), by_alpha.ravel()])

    costs = list(solution.costs)

    def watched(number: int, value: float, point: NDArray[np.float64]) -> None:
        if watch:
            watch(len(costs) + number, value)

    start = np.concatenate([solution.weights.astype(np.float64).ravel(), logits.ravel()])
    point = minimise(function, start, iterations=FINISH, tolerance=1e-9, watch=watched)
    value, _ = function(point)
    _finite(value, len(costs), cost)
    sizes = cost.posterior[:, :latent].sum(axis=0, dtype=np.float64)
    return Solution(cost.weights.get(), cost.alpha, sizes, [*costs, value])


def log_softmax_columns(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log softmax of each column."""
    shifted = logits - logits.max(axis=0)
    found: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=0))
    return found


def _finite(value: float, number: int, cost: Cost) -> float:
    if not math.isfinite(value):
        raise DivergedError(
            f"the cost is {value} in iteration {number} (--l2={cost.l2:g}): give a higher --l2, or "
            "rows of unit length"
        )
    return value
