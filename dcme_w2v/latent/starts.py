"""The start of EM: the first posterior xi, by one of several methods.

All starts but the random one are 0.9 times the result of a method plus 0.1 / K: without labels a
zero in xi would remain zero, and at xi = 1 / K every gradient is 0.
"""

import functools
from collections.abc import Callable

import numpy as np

from dcme_w2v.numeric.arrays import F64, I64, unit_vectors
from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.training.progress import Reporter

from .cost import Observations
from .options import START_NUMBERS, LatentOptions
from .quadratic import Quadratic, best_descent, random_point

KEPT = 0.9  # share of the method's result in xi


class Starts:
    """Starts of a fit; the quadratic is computed once.

    Parameters
    ----------
    data : Observations
        All with labels, or all without.
    latent : int
    options : LatentOptions
        Resolved.
    reporter : Reporter
    """

    def __init__(
        self, data: Observations, latent: int, options: LatentOptions, reporter: Reporter
    ) -> None:
        self.data, self.latent, self.options = data, latent, options
        self._reporter = reporter

    @functools.cached_property
    def quadratic(self) -> Quadratic:
        """The cost to second order."""
        o = self.options
        self._reporter.stage("singular vectors", None, "rows")
        return Quadratic.of(self.data, o.rank, o.freedom, o.seed)

    def kinds(self) -> list[str]:
        """Return the methods of the option `init`."""
        if self.options.init != "auto":
            return [self.options.init]
        return ["labels"] if self.data.classes else ["kmeans", "quadratic"]

    def start(self, kind: str, number: int) -> F64:
        """Return a start, shape (n, latent); its random numbers depend on seed, kind and number."""
        random = np.random.default_rng([self.options.seed, START_NUMBERS[kind], number])
        if kind == "random":
            return random_point(self.data.count, self.latent, random)
        methods: dict[str, Callable[[np.random.Generator], F64]] = {
            "labels": self._labels,
            "kmeans": self._kmeans,
            "quadratic": lambda random: best_descent(self.quadratic, self.latent, random),
        }
        return KEPT * methods[kind](random) + (1 - KEPT) / self.latent

    def _labels(self, random: np.random.Generator) -> F64:
        """K <= M: labels in K random groups; K > M: label m has the classes k = m mod M."""
        m, k = self.data.classes, self.latent
        if k <= m:
            group = np.empty(m, dtype=np.int64)
            group[random.permutation(m)] = np.arange(m) % k
            return one_hot(group[self.data.labels], k)
        mine = np.arange(k)[None, :] % m == self.data.labels[:, None]
        shares = np.where(mine, random.random(mine.shape), 0)
        return shares / shares.sum(axis=1, keepdims=True)

    def _kmeans(self, random: np.random.Generator) -> F64:
        """k-means of the documents' principal components, scaled to unit length."""
        points = unit_vectors(self.quadratic.left * np.sqrt(self.quadratic.squares))
        seed = int(random.integers(2**31))
        _, nearest = kmeans(points.astype(np.float32), self.latent, seed, self.options.threads)
        return one_hot(nearest, self.latent)


def one_hot(numbers: I64, width: int) -> F64:
    """Return rows with a 1 at each number."""
    found = np.zeros((len(numbers), width))
    found[np.arange(len(numbers)), numbers] = 1
    return found
