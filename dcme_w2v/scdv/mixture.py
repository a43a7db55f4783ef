"""Gaussian mixture over word vectors, by expectation maximization.

With one covariance for all components the quadratic term of the log-density is the same for every
component: it cancels in the posteriors, and its sum over the points is the trace of a product of
two d x d matrices. An iteration therefore takes two products of n x d by d x k and no whitening.
Points are processed in blocks in single precision, sums are in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.numeric.arrays import F32, F64, I64
from dcme_w2v.numeric.kmeans import ROUNDS, kmeans, memberships
from dcme_w2v.numeric.parallel import blocks_of_rows, one_blas_thread, over_blocks

from .options import COVARIANCES

_MIN_VARIANCE = 1e-6  # added to every variance to keep it positive; relative if above 1
_EMPTY = 0.5  # components with less than half a point are reseeded
_STARTS, _TRIAL_ROUNDS = 3, 10
_START_WORK = 3_000_000  # points times iterations of k-means; further iterations gain little
_MIN_ROUNDS = 5
Report = Callable[[int, float], None]


@dataclass(frozen=True)
class Mixture:
    """The parameters of a mixture of k Gaussians in d dimensions.

    Attributes
    ----------
    kind : {"tied", "spherical"}
        One covariance matrix for all components, or one variance for all components and dimensions.
    weights : ndarray of float64, shape (k,)
        Their sum is 1.
    means : ndarray of float64, shape (k, d)
    covariance : ndarray of float64
        tied: shape (d, d); spherical: (1,).
    """

    kind: str
    weights: F64
    means: F64
    covariance: F64

    def posteriors(self, points: NDArray[np.floating]) -> F64:
        """Return P(component | point), shape (n, k), in double precision."""
        found = np.asarray(_Form.of(self).logits(np.asarray(points, dtype=np.float64)))
        _log_sum(found)  # replaces the logits by posteriors
        return found


@dataclass(frozen=True)
class Fitted:
    """A fitted mixture and the record of the fit.

    Attributes
    ----------
    mixture : Mixture
    log_likelihoods : list of float
        Mean log-density of the points before each iteration and at the end.
    converged : bool
        Whether the last iteration gained less than the tolerance.
    reseeded : int
        How often an empty component was reseeded.
    """

    mixture: Mixture
    log_likelihoods: list[float]
    converged: bool
    reseeded: int


@dataclass(frozen=True)
class _Form:
    """log(weight x density) of component k at x as constants[k] + x.linear[:, k] - x.P.x / 2."""

    constants: NDArray[np.floating]
    linear: NDArray[np.floating]
    precision: F64
    normalizer: float

    @classmethod
    def of(cls, mixture: Mixture) -> _Form:
        means, dim = mixture.means, mixture.means.shape[1]
        with np.errstate(divide="ignore"):
            logs = np.log(mixture.weights)
        half_pi = -0.5 * dim * np.log(2 * np.pi)
        if mixture.kind == "tied":
            precision = np.asarray(np.linalg.inv(mixture.covariance), dtype=np.float64)
            log_volume = np.linalg.slogdet(mixture.covariance)[1]
        else:
            precision = np.eye(dim) / mixture.covariance
            log_volume = dim * np.log(mixture.covariance[0])
        linear = precision @ means.T
        constants = logs - 0.5 * np.einsum("kd,dk->k", means, linear)
        return cls(constants, linear, precision, half_pi - 0.5 * float(log_volume))

    def single(self) -> _Form:
        """Return a copy in single precision."""
        constants, linear = self.constants.astype(np.float32), self.linear.astype(np.float32)
        return _Form(constants, linear, self.precision, self.normalizer)

    def logits(self, points: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return log(weight x density) less the shared terms, shape (n, k)."""
        logits: NDArray[np.floating] = points @ self.linear
        logits += self.constants
        return logits

    def shared_terms(self, scatter: F64, count: int) -> float:
        """Return the sum of the shared terms over points with the given sum of x.x^T."""
        return -0.5 * float((self.precision * scatter).sum()) + count * float(self.normalizer)


@dataclass
class _Sums:
    """Sufficient statistics of the points under their posteriors."""

    counts: F64
    sums: F64
    log_likelihood: float = 0.0

    @classmethod
    def of(cls, shares: NDArray[np.floating], block: F32) -> _Sums:
        """Sum up a block of points."""
        counts = shares.sum(axis=0, dtype=np.float64)
        return cls(counts, (shares.T @ block).astype(np.float64))

    def __iadd__(self, other: _Sums) -> _Sums:
        self.counts += other.counts
        self.sums += other.sums
        self.log_likelihood += other.log_likelihood
        return self


@dataclass
class _Points:
    """The points, centered to limit rounding errors in single precision."""

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

    def sums(self, sum_up: Callable[[slice], _Sums]) -> _Sums:
        """Return the sums over all blocks of points."""
        parts = over_blocks(sum_up, len(self.centered), self.threads)
        total = next(parts)
        for part in parts:
            total += part
        return total


def fit_mixture(
    points: F32,
    components: int,
    *,
    covariance: str = "tied",
    seed: int = 1,
    tolerance: float = 1e-4,
    iterations: int = 100,
    threads: int | None = None,
    report: Report | None = None,
) -> Fitted:
    """Fit a Gaussian mixture by expectation maximization from the best of several k-means starts.

    Parameters
    ----------
    points : ndarray of float32, shape (n, d)
    components : int
        Number of components, at most n.
    covariance : {"tied", "spherical"}
        See `Mixture`.
    seed : int
        Seed of the initialization and of reseeding.
    tolerance : float
        Stop when an iteration raises the mean log-density by less.
    iterations : int
        Maximum number of iterations.
    threads : int, optional
        Default: the CPUs that this process may use. The result does not depend on it.
    report : callable, optional
        Called with the number of iterations and the mean log-density.

    Raises
    ------
    UsageError
        There are fewer points than components.
    FormatError
        A number is not finite.
    """
    if covariance not in COVARIANCES:
        raise UsageError(f"--covariance={covariance}: must be one of {', '.join(COVARIANCES)}")
    if not np.isfinite(points).all():
        row = int(np.argmin(np.isfinite(points).all(axis=1)))
        raise FormatError(f"vector {row + 1} is NaN or infinite; run dcme-w2v check on the vectors")
    with one_blas_thread():
        mean = points.mean(axis=0, dtype=np.float64)
        moved = _Points((points - mean).astype(np.float32), threads)
        start = _best_start(moved, components, covariance, seed)
        random = np.random.default_rng([seed, 1])
        found = _rounds(moved, start, tolerance, iterations, random, report)
    fitted = found.mixture
    final = replace(fitted, means=fitted.means + mean)
    return replace(found, mixture=final)


def _rounds(
    points: _Points,
    mixture: Mixture,
    tolerance: float,
    iterations: int,
    random: np.random.Generator,
    report: Report | None,
) -> Fitted:
    """Run expectation maximization until convergence."""
    history: list[float] = []
    reseeded = 0
    comparable = converged = False
    while True:
        sums = _expect(points, mixture)
        history.append(sums.log_likelihood)
        if report:
            report(len(history) - 1, sums.log_likelihood)
        converged = comparable and history[-1] - history[-2] < tolerance
        if converged or len(history) > iterations:
            return Fitted(mixture, history, converged, reseeded)
        empty = np.flatnonzero(sums.counts < _EMPTY)
        mixture = _maximize(points, sums, mixture.kind)
        comparable = not len(empty)
        if len(empty):
            mixture = _reseed(points, mixture, empty, random)
            reseeded += len(empty)


def _best_start(points: _Points, components: int, covariance: str, seed: int) -> Mixture:
    """Return the best of several starts after a few iterations."""
    starts = []
    for number in range(_STARTS):
        random = np.random.default_rng([seed, 0, number])
        start = _start(points, components, covariance, int(random.integers(2**31)))
        tried = _rounds(points, start, 0.0, _TRIAL_ROUNDS, random, None)
        starts.append((tried.log_likelihoods[-1], start))
    return max(starts, key=lambda scored: scored[0])[1]


def _start(points: _Points, components: int, covariance: str, seed: int) -> Mixture:
    """Return the mixture of hard clusters."""
    rounds = max(_MIN_ROUNDS, min(ROUNDS, _START_WORK // len(points.centered)))
    _, nearest = kmeans(points.centered, components, seed, points.threads, rounds)

    def sum_up(rows: slice) -> _Sums:
        chosen = memberships(nearest[rows], components)
        return _Sums.of(chosen, points.centered[rows])

    return _maximize(points, points.sums(sum_up), covariance)


def _expect(points: _Points, mixture: Mixture) -> _Sums:
    """Return the sufficient statistics under the posteriors (E step)."""
    form = _Form.of(mixture).single()

    def sum_up(rows: slice) -> _Sums:
        block = points.centered[rows]
        shares = form.logits(block)
        likelihood = _log_sum(shares)  # replaces the logits by posteriors
        sums = _Sums.of(shares, block)
        sums.log_likelihood = likelihood
        return sums

    total, count = points.sums(sum_up), len(points.centered)
    shared = form.shared_terms(points.scatter, count)
    total.log_likelihood = (total.log_likelihood + shared) / count
    return total


def _log_sum(logits: NDArray[np.floating]) -> float:
    """Return the sum over rows of log sum exp, and turn the logits into posteriors in place."""
    highest = logits.max(axis=1, keepdims=True)
    logits -= highest
    np.exp(logits, out=logits)
    totals = logits.sum(axis=1, keepdims=True)
    logits /= totals
    return float(highest.sum(dtype=np.float64) + np.log(totals, dtype=np.float64).sum())


def _maximize(points: _Points, sums: _Sums, covariance: str) -> Mixture:
    """Return the maximum-likelihood mixture for the sums (M step)."""
    counts = np.maximum(sums.counts, np.finfo(np.float32).tiny)
    means = sums.sums / counts[:, None]
    count, dim = points.centered.shape
    variances = (points.scatter - (means * counts[:, None]).T @ means) / count
    if covariance == "spherical":
        variances = np.array([max(np.trace(variances) / dim, 0.0) + points.least])
    else:
        variances[np.diag_indices(dim)] += points.least
    return Mixture(covariance, counts / counts.sum(), means, variances)


def _reseed(points: _Points, mixture: Mixture, empty: I64, random: np.random.Generator) -> Mixture:
    """Move empty components to points far from all means, with an average weight."""
    weights, means = mixture.weights.copy(), mixture.means.copy()
    filled = np.delete(means, empty, axis=0)
    gaps = np.empty(len(points.centered))
    for rows in blocks_of_rows(len(gaps)):
        block = points.centered[rows].astype(np.float64)
        distances = (block**2).sum(axis=1)[:, None] - 2 * block @ filled.T + (filled**2).sum(axis=1)
        gaps[rows] = np.maximum(distances.min(axis=1), 0)
    chances = gaps / gaps.sum() if gaps.sum() > 0 else None
    means[empty] = points.centered[random.choice(len(gaps), len(empty), p=chances)]
    weights[empty] = 1 / len(weights)
    return replace(mixture, weights=weights / weights.sum(), means=means)
