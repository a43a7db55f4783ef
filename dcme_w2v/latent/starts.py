"""Where EM starts: the first posterior xi, by one of several methods.

All but the random start are 0.9 times what the method finds plus 0.1 / K: a zero in xi stays one
without labels, and at xi = 1 / K every gradient is 0. Called by `dcme_w2v.latent.fit`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.latent.cost import Observations
from dcme_w2v.latent.options import INITS, LatentOptions
from dcme_w2v.latent.quadratic import Quadratic
from dcme_w2v.latent.relaxed import best_of, low_rank, random_point, rounded
from dcme_w2v.numeric.kmeans import kmeans

KEPT = 0.9  # of a start, the rest is uniform
SDP_CLASSES = 5  # up to so many latent classes `auto` tries the semidefinite relaxation
SDP_WIDTH, SDP_ROUNDS = 60, 100

Matrix = NDArray[np.float64]


class Starts:
    """Starts of a fit; what several of them share is computed once.

    Parameters
    ----------
    data : Observations
        All with labels, or all without.
    latent : int
    options : LatentOptions
        Resolved.
    """

    def __init__(self, data: Observations, latent: int, options: LatentOptions) -> None:
        self.data, self.latent, self.options = data, latent, options

    @functools.cached_property
    def quadratic(self) -> Quadratic:
        """The cost to second order."""
        o = self.options
        return Quadratic.of(self.data, o.rank, o.freedom, o.seed)

    def kinds(self) -> list[str]:
        """Return which methods the option `init` means."""
        if self.options.init != "auto":
            return [self.options.init]
        if self.data.classes:
            return ["labels"]
        few = self.latent <= SDP_CLASSES
        return ["kmeans", "quadratic", *["sdp"] * few]

    def start(self, kind: str, number: int) -> Matrix:
        """Return a start, shape (n, latent); its random numbers depend on seed, kind and number."""
        random = np.random.default_rng([self.options.seed, INITS.index(kind), number])
        methods: dict[str, Callable[[np.random.Generator], Matrix]] = {
            "labels": self._labels,
            "scores": self._scores,
            "kmeans": self._kmeans,
            "sdp": self._sdp,
            "quadratic": self._quadratic,
            "relaxed": self._relaxed,
        }
        if kind == "random":
            return random_point(self.data.count, self.latent, random)
        return KEPT * methods[kind](random) + (1 - KEPT) / self.latent

    def _labels(self, random: np.random.Generator) -> Matrix:
        """K <= M: labels in K random groups; K > M: label m has the classes k = m mod M."""
        m, k = self.data.classes, self.latent
        if k <= m:
            group = np.empty(m, dtype=np.int64)
            group[random.permutation(m)] = np.arange(m) % k
            return one_hot(group[self.data.labels], k)
        mine = np.arange(k)[None, :] % m == self.data.labels[:, None]
        shares = np.where(mine, random.random(mine.shape), 0)
        found: Matrix = shares / shares.sum(axis=1, keepdims=True)
        return found

    def _scores(self, random: np.random.Generator) -> Matrix:
        """k-means of the scores of a ridge regression, H Y (Y^T Y)^-1/2."""
        counts = np.maximum(np.bincount(self.data.labels, minlength=self.data.classes), 1)
        scaled = self.quadratic.memberships().T.toarray() / np.sqrt(counts)
        return self._clusters(self.quadratic.smoothed(scaled), random)

    def _kmeans(self, random: np.random.Generator) -> Matrix:
        """k-means of the documents' principal components, of unit length."""
        components = self.quadratic.left * np.sqrt(self.quadratic.squares)
        return self._clusters(_unit(components), random)

    def _sdp(self, random: np.random.Generator) -> Matrix:
        """k-means of the rows of V, which has tr(V V^T H) maximal for rows of unit length.

        The relaxation of T = xi xi^T to T >= 0 with a diagonal of ones, as in DIFFRAC (Bach and
        Harchaoui 2007), by Burer's and Monteiro's V: each row becomes that of H V, scaled.
        """
        width = min(len(self.quadratic.squares) + 1, SDP_WIDTH)
        v = _unit(random.standard_normal((self.data.count, width)))
        for _ in range(SDP_ROUNDS):
            v = _unit(self.quadratic.smoothed(v))
        return self._clusters(v, random)

    def _quadratic(self, random: np.random.Generator) -> Matrix:
        return best_of(self.quadratic, self.latent, self.options.columns, random)

    def _relaxed(self, random: np.random.Generator) -> Matrix:
        columns, sizes, _ = low_rank(self.quadratic, self.latent, self.options.columns, random)
        return rounded(self.quadratic, columns, sizes, self.options.rounding)

    def _clusters(self, points: Matrix, random: np.random.Generator) -> Matrix:
        seed = int(random.integers(2**31))
        _, nearest = kmeans(points.astype(np.float32), self.latent, seed, self.options.threads)
        return one_hot(nearest, self.latent)


def one_hot(numbers: NDArray[np.int64], width: int) -> Matrix:
    """Return rows with a 1 at each number."""
    found = np.zeros((len(numbers), width))
    found[np.arange(len(numbers)), numbers] = 1
    return found


def _unit(rows: Matrix) -> Matrix:
    """Return rows of unit length; rows of zeros stay."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    found: Matrix = rows / np.where(lengths > 0, lengths, 1)
    return found
