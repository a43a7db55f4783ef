"""Compute the initial posterior for EM with one of several initialization methods.

All starts except the random one are 0.9 times the result of a method plus 0.1 / K, because without
labels a zero in xi would remain zero, and at xi = 1 / K every gradient is 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.numeric.arrays import F64, I32, unit_vectors
from dcme_w2v.numeric.components import singular_vectors
from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.training.progress import Reporter

from .cost import OWN, Observations
from .options import DIMENSIONS, FEW_LATENT, OF_QUADRATIC, START_NUMBERS, LatentOptions

# Run FIRST iterations of DESCENTS random descents, then continue only the best descent.
DESCENTS, FIRST = 3, 10
ITERATIONS, TOLERANCE = 500, 1e-8
# Minimum decrease in cost per step, as a fraction of the decrease that the gradient predicts.
SUFFICIENT = 1e-4
_MIN_STEP = 1e-12


@dataclass(frozen=True)
class Quadratic:
    """The matrix A - B, in factored form, which defines a quadratic approximation to the cost.

    Attributes
    ----------
    left : ndarray of float64, shape (n, r)
        Left singular vectors of the centered rows.
    squares : ndarray of float64, shape (r,)
        Their squared singular values, descending.
    ridge : float
        The paper's lambda.
    labels : ndarray of int32, shape (n,)
        The label of each row; `OWN` for all rows if there are no labels.
    classes : int
    """

    left: F64
    squares: F64
    ridge: float
    labels: I32
    classes: int

    @classmethod
    def of(cls, data: Observations, rank: int, seed: int) -> Quadratic:
        """Compute the approximation; choose lambda so that the median eigenvalue of H is 1/2.

        Parameters
        ----------
        data : Observations
            Observations that all have labels, or all have none.
        rank : int
            Maximum number of singular vectors.
        seed : int
            Seed of the singular vectors.
        """
        left, values, _ = singular_vectors(data.rows, rank, seed, centered=True)
        squares = np.square(values)
        ridge = max(float(np.median(squares)), 1e-30) / data.count
        return cls(left, squares, ridge, data.labels, data.classes)

    @property
    def shrinkage(self) -> F64:
        """The eigenvalues of the smoothing matrix H, shape (r,)."""
        return self.squares / (self.squares + len(self.left) * self.ridge)

    def smoothed(self, xi: F64) -> F64:
        """Return `H xi`, the values that ridge regression predicts for the posterior xi."""
        found: F64 = self.left @ (self.shrinkage[:, None] * (self.left.T @ xi))
        return found

    def product(self, xi: F64) -> F64:
        """Return the matrix product `(A - B) xi` for a posterior xi, shape (n, latent)."""
        smooth = self.smoothed(xi)
        if self.classes:
            smooth += self.label_means(xi)
            smooth -= xi
        smooth /= -len(xi)
        return smooth

    def value(self, xi: F64) -> tuple[float, F64]:
        """Return the quadratic cost of a posterior xi with shape (n, latent), and its gradient."""
        product, latent = self.product(xi), xi.shape[1]
        return latent / 2 * float(np.vdot(xi, product)), latent * product

    def label_means(self, xi: F64) -> F64:
        """Replace each row of xi with the mean of all rows that have the same label."""
        sums = self.memberships() @ xi
        counts = np.bincount(self.labels, minlength=self.classes)
        return (sums / np.maximum(counts, 1)[:, None])[self.labels]

    def memberships(self) -> csr_matrix:
        """Return a 0/1 matrix that marks the documents with each label, shape (classes, n)."""
        n = len(self.labels)
        assert not (self.labels == OWN).any()
        return csr_matrix((np.ones(n), (self.labels, np.arange(n))), shape=(self.classes, n))


# ---- local minima over the product of N probability simplices ----


def random_point(count: int, latent: int, random: np.random.Generator) -> F64:
    """Return a random posterior: uniform random rows, each scaled to sum to 1."""
    drawn = random.random((count, latent))
    return drawn / drawn.sum(axis=1, keepdims=True)


def best_descent(quadratic: Quadratic, latent: int, random: np.random.Generator) -> F64:
    """Return the best minimum of the quadratic cost found in several random descents."""
    count, found = len(quadratic.left), []
    for _ in range(DESCENTS):
        start = random_point(count, latent, random)
        found.append(descend(quadratic.value, start, count / latent, FIRST))
    lowest, _ = min(found, key=lambda one: one[1])
    return descend(quadratic.value, lowest, count / latent)[0]


def project_rows(points: F64) -> F64:
    """Project each row onto the probability simplex."""
    falling = -np.sort(-points, axis=1)
    excess = np.cumsum(falling, axis=1) - 1.0
    counts = np.arange(1, falling.shape[1] + 1)
    positive = np.maximum((falling * counts > excess).sum(axis=1), 1)
    subtracted = np.take_along_axis(excess, positive[:, None] - 1, axis=1)[:, 0] / positive
    return np.maximum(points - subtracted[:, None], 0)


def descend(
    function: Callable[[F64], tuple[float, F64]],
    start: F64,
    step: float,
    iterations: int = ITERATIONS,
) -> tuple[F64, float]:
    """Minimize a function of N points in a simplex by projected gradient descent.

    A step t is accepted if f(P(V - t G)) <= f(V) + 1e-4 <G, P(V - t G) - V>, and halved until it
    is; each search begins at twice the last step.

    Parameters
    ----------
    function : callable
        Returns value and gradient.
    start : ndarray, shape (n, latent)
        Rows are at least 0 and sum to 1.
    step : float
        The search for the first step begins at twice this size.
    iterations : int, optional
        Maximum number of iterations.

    Returns
    -------
    point, value
    """
    point, (value, gradient) = start, function(start)
    for _ in range(iterations):
        step *= 2
        while True:
            tried = project_rows(point - step * gradient)
            next_value, next_gradient = function(tried)
            decrease = float(np.vdot(gradient, tried - point))
            if next_value <= value + SUFFICIENT * decrease:
                break
            if step < _MIN_STEP:
                return point, value
            step /= 2
        change = value - next_value
        point, value, gradient = tried, next_value, next_gradient
        if change <= TOLERANCE * max(abs(value), 1e-12):
            break
    return point, value


# Weight of the start method's posterior; the remaining weight is uniform over the latent classes.
KEPT = 0.9


class Starts:
    """The starting points of a fit; the quadratic approximation is computed only once.

    Parameters
    ----------
    data : Observations
        Observations that all have labels, or all have none.
    latent : int
    options : LatentOptions
        Options with all defaults filled in.
    reporter : Reporter
    """

    def __init__(
        self, data: Observations, latent: int, options: LatentOptions, reporter: Reporter
    ) -> None:
        self.data, self.latent, self.options = data, latent, options
        self._reporter = reporter

    @functools.cached_property
    def quadratic(self) -> Quadratic:
        """The quadratic approximation of the cost."""
        self._reporter.stage("singular vectors", None, "rows")
        return Quadratic.of(self.data, DIMENSIONS, self.options.seed)

    def tried(self) -> list[tuple[str, int]]:
        """Return the starts that the options select, each as a method and an index.

        If there are no labels and few classes, most starts use the quadratic.
        """
        kind, count = self.options.init_method, self.options.starts or 1
        found = {kind: count}
        if kind == "auto":
            found = {"labels" if self.data.classes else "kmeans": count}
            if not self.data.classes and self.latent < FEW_LATENT:
                found["quadratic"] = OF_QUADRATIC * count
        return [(kind, number) for kind, most in found.items() for number in range(most)]

    def start(self, kind: str, number: int) -> F64:
        """Compute EM's first posterior from a start method and the seed, shape (n, latent)."""
        random = np.random.default_rng([self.options.seed, START_NUMBERS[kind], number])
        if kind == "random":
            return random_point(self.data.count, self.latent, random)
        if kind == "quadratic":
            found = best_descent(self.quadratic, self.latent, random)
        else:
            found = self._labels(random) if kind == "labels" else self._kmeans(random)
        return KEPT * found + (1 - KEPT) / self.latent

    def _labels(self, random: np.random.Generator) -> F64:
        """Assign each label to one of K random groups; if there are fewer labels, split some."""
        m, k = self.data.classes, self.latent
        if k <= m:
            group = np.empty(m, dtype=np.int64)
            group[random.permutation(m)] = np.arange(m) % k
            return np.eye(k)[group[self.data.labels]]
        mine = np.arange(k)[None, :] % m == self.data.labels[:, None]
        shares = np.where(mine, random.random(mine.shape), 0)
        return shares / shares.sum(axis=1, keepdims=True)

    def _kmeans(self, random: np.random.Generator) -> F64:
        """Cluster the documents by k-means on their principal components, scaled to unit length."""
        points = unit_vectors(self.quadratic.left * np.sqrt(self.quadratic.squares))
        seed = int(random.integers(2**31))
        _, nearest = kmeans(points.astype(np.float32), self.latent, seed, self.options.threads)
        return np.eye(self.latent)[nearest]
