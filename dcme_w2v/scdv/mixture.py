"""Fit a Gaussian mixture to word vectors by expectation maximization.

All components share one covariance, so the quadratic term of the log-density is the same for every
component: it cancels in the posteriors, and its sum over the points is the trace of a product of
two d x d matrices. An iteration therefore takes only two matrix products (n x d by d x k) and no
whitening. Points are processed in blocks in single precision; sums are in double precision.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.numeric.arrays import F32, F64
from dcme_w2v.numeric.kmeans import ROUNDS, kmeans, memberships
from dcme_w2v.numeric.parallel import one_blas_thread, over_blocks

from .options import ScdvOptions

# Constant that is added to variances; it is multiplied by the mean variance if that exceeds 1.
_MIN_VARIANCE = 1e-6
# Maximum number of points times iterations in k-means; more iterations hardly improve the start.
_START_WORK = 3_000_000
_MIN_ROUNDS = 5
Report = Callable[[int, float], None]


@dataclass(frozen=True)
class Mixture:
    """The parameters of a mixture of k Gaussians in d dimensions.

    Attributes
    ----------
    weights : ndarray of float64, shape (k,)
        Weights of the components, which sum to 1.
    means : ndarray of float64, shape (k, d)
    covariance : ndarray of float64, shape (d, d)
        The covariance that all components share.
    """

    weights: F64
    means: F64
    covariance: F64

    def posteriors(self, points: NDArray[np.floating]) -> F64:
        """Return P(component | point), shape (n, k), in double precision."""
        with one_blas_thread():
            found = np.asarray(_Form.of(self).logits(np.asarray(points, dtype=np.float64)))
        _log_sum(found)  # this call replaces the logits in `found` with posteriors
        return found


@dataclass(frozen=True)
class Fitted:
    """A fitted mixture, and the history of its log-likelihood.

    Attributes
    ----------
    mixture : Mixture
    log_likelihoods : list of float
        Mean log-density of the points before each iteration and at the end.
    converged : bool
        Whether the last iteration gained less than the tolerance.
    """

    mixture: Mixture
    log_likelihoods: list[float]
    converged: bool


@dataclass(frozen=True)
class _Form:
    """The terms of ``log(weight * density)``: ``constants[k] + x.linear[:, k] - x.P.x / 2``."""

    constants: NDArray[np.floating]
    linear: NDArray[np.floating]
    precision: F64
    normalizer: float

    @classmethod
    def of(cls, mixture: Mixture, dtype: type = np.float64) -> _Form:
        means, dim = mixture.means, mixture.means.shape[1]
        with np.errstate(divide="ignore"):
            logs = np.log(mixture.weights)
        half_pi = -0.5 * dim * np.log(2 * np.pi)
        precision = np.asarray(np.linalg.inv(mixture.covariance), dtype=np.float64)
        log_volume = np.linalg.slogdet(mixture.covariance)[1]
        linear = precision @ means.T
        constants = logs - 0.5 * np.einsum("kd,dk->k", means, linear)
        shared = half_pi - 0.5 * float(log_volume)
        return cls(constants.astype(dtype), linear.astype(dtype), precision, shared)

    def logits(self, points: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return ``log(weight * density)``, shape (n, k), without the terms that all k share."""
        logits: NDArray[np.floating] = points @ self.linear
        logits += self.constants
        return logits


Sums = tuple[F64, F64, float]  # posterior sums, posterior-weighted sums of points, log-likelihood
# Type of a function that returns the posteriors and the log-likelihood for a slice of the points.
Shares = Callable[[slice], tuple[NDArray[np.floating], float]]


@dataclass
class _Points:
    """Points from which the mean is subtracted, to limit rounding errors in single precision."""

    centered: F32
    threads: int | None
    scatter: F64 = field(init=False)
    least: float = field(init=False)

    def __post_init__(self) -> None:
        dim = self.centered.shape[1]
        self.scatter = np.zeros((dim, dim))
        for part in over_blocks(self._scatter_of, len(self.centered), self.threads):
            self.scatter += part
        variance = float(np.trace(self.scatter)) / self.centered.size
        self.least = _MIN_VARIANCE * max(1.0, variance)

    def _scatter_of(self, rows: slice) -> F32:
        block = self.centered[rows]
        return block.T @ block

    def sums(self, shares_of: Shares) -> Sums:
        """Sum the posteriors, the points weighted by their posteriors, and the log-likelihood."""

        def sum_up(rows: slice) -> Sums:
            shares, likelihood = shares_of(rows)
            sums = (shares.T @ self.centered[rows]).astype(np.float64)
            return shares.sum(axis=0, dtype=np.float64), sums, likelihood

        parts = over_blocks(sum_up, len(self.centered), self.threads)
        return functools.reduce(lambda one, other: tuple(map(operator.add, one, other)), parts)


def fit_mixture(
    points: F32, options: ScdvOptions, threads: int | None = None, report: Report | None = None
) -> Fitted:
    """Fit a Gaussian mixture by expectation maximization, initialized by k-means.

    Parameters
    ----------
    points : ndarray of float32, shape (n, d)
        Finite.
    options : ScdvOptions
        `clusters`, at most n, `covariance`, `seed`, `tolerance` and `iterations`.
    threads : int, optional
        Number of threads (default: the CPUs that this process may use). The result does not depend
        on it.
    report : callable, optional
        Called with the number of iterations and the mean log-density.

    Raises
    ------
    UsageError
        There are fewer points than components.
    """
    with one_blas_thread():
        mean = points.mean(axis=0, dtype=np.float64)
        moved = _Points((points - mean).astype(np.float32), threads)
        found = _rounds(moved, _start(moved, options), options, report)
    return replace(found, mixture=replace(found.mixture, means=found.mixture.means + mean))


def _start(points: _Points, options: ScdvOptions) -> Mixture:
    """Compute the initial mixture from k-means clusters."""
    components = options.clusters
    rounds = max(_MIN_ROUNDS, min(ROUNDS, _START_WORK // len(points.centered)))
    _, nearest = kmeans(points.centered, components, options.seed, points.threads, rounds)
    counts, sums, _ = points.sums(lambda rows: (memberships(nearest[rows], components), 0.0))
    return _maximize(points, counts, sums, options.covariance)


def _rounds(
    points: _Points, mixture: Mixture, options: ScdvOptions, report: Report | None
) -> Fitted:
    """Run expectation maximization until it converges or reaches the iteration limit."""
    history: list[float] = []
    while True:
        counts, sums, likelihood = _expect(points, mixture)
        history.append(likelihood)
        if report:
            report(len(history) - 1, likelihood)
        converged = len(history) > 1 and history[-1] - history[-2] < options.tolerance
        if converged or len(history) > options.iterations:
            return Fitted(mixture, history, converged)
        mixture = _maximize(points, counts, sums, options.covariance)


def _expect(points: _Points, mixture: Mixture) -> Sums:
    """Run the E-step.

    Return each component's sum of posteriors, each component's posterior-weighted sum of points,
    and the mean log-likelihood per point.
    """
    form = _Form.of(mixture, np.float32)

    def shares_of(rows: slice) -> tuple[NDArray[np.floating], float]:
        shares = form.logits(points.centered[rows])
        return shares, _log_sum(shares)  # this call replaces the logits in `shares` with posteriors

    counts, sums, likelihood = points.sums(shares_of)
    count = len(points.centered)
    # Add the terms that all components share; `scatter` is the sum of x.x^T over all points x.
    shared = -0.5 * float((form.precision * points.scatter).sum()) + count * float(form.normalizer)
    return counts, sums, (likelihood + shared) / count


def _log_sum(logits: NDArray[np.floating]) -> float:
    """Return the sum of all rows' log-sum-exp; overwrite the logits with the posteriors."""
    highest = logits.max(axis=1, keepdims=True)
    logits -= highest
    np.exp(logits, out=logits)
    totals = logits.sum(axis=1, keepdims=True)
    logits /= totals
    return float(highest.sum(dtype=np.float64) + np.log(totals, dtype=np.float64).sum())


def _maximize(points: _Points, counts: F64, sums: F64, covariance: str) -> Mixture:
    """Run the M-step: fit the mixture to the posterior counts and the posterior-weighted sums."""
    counts = np.maximum(counts, np.finfo(np.float32).tiny)
    means = sums / counts[:, None]
    count, dim = points.centered.shape
    variances = (points.scatter - (means * counts[:, None]).T @ means) / count
    if covariance == "spherical":
        variances = np.eye(dim) * max(np.trace(variances) / dim, 0.0)
    variances[np.diag_indices(dim)] += points.least
    return Mixture(counts / counts.sum(), means, variances)
