"""Quantize each feature's impact on each class to a few levels.

Each pair of a feature and a class gets an impact, which is computed from the statistics, and the
impacts are clustered into levels. The fused feature h_k of a document and a class (Definition 4 of
Suzuki and Nagata, AAAI 2014) is v_k times the sum of +-x_j over the features j whose pair with this
class has level k.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.classify.levels import Evidence
from dcme_w2v.errors import CorpusError
from dcme_w2v.numeric.arrays import F64, I8, I64
from dcme_w2v.numeric.lbfgs import minimize
from dcme_w2v.numeric.levels import Levels, fit_by_admm, fit_levels

from .options import FusedOptions
from .statistics import UNIT, Statistics

# L2 penalties for weights (after scaling columns to unit mean square) and for biases.
L2, L2_BIAS = 1e-4, 0.01
ITERATIONS, TOLERANCE = 100, 1e-9
_MIN_SCALE = 1e-12


@dataclass(frozen=True)
class Tied:
    """Class biases and level weights; all feature-class pairs at a level share its weight.

    Attributes
    ----------
    weights : ndarray of float64, shape (levels,)
        w.
    biases : ndarray of float64, shape (classes,)
        b.
    """

    weights: F64
    biases: F64

    def scores(self, parts: F64) -> F64:
        """Return each document's score for every class, shape (documents, classes)."""
        return parts @ self.weights + self.biases


def learn(parts: F64, labels: I64) -> Tied:
    """Learn the class biases and level weights by maximum entropy.

    Parameters
    ----------
    parts : ndarray of float64, shape (documents, classes, levels)
        The fused feature h_k of each document and class.
    labels : ndarray of int64, shape (documents,)
        The class of each document.
    """
    documents, classes, count = parts.shape
    shares = (np.bincount(labels, minlength=classes) + 0.5) / (documents + 0.5 * classes)
    base = np.log(shares)
    scales = np.sqrt(np.mean(parts**2, axis=(0, 1))) + _MIN_SCALE
    penalty = np.full(count, L2)
    own = np.arange(documents)
    flat = (parts / scales).reshape(-1, count)

    def function(point: F64) -> tuple[float, F64]:
        w, biases = point[:count], point[count:]
        scores = (flat @ w).reshape(documents, classes) + biases + base
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        sums = p.sum(axis=1)
        loss = -float(np.mean(scores[own, labels] - np.log(sums)))
        loss += 0.5 * float(penalty @ w**2) + 0.5 * L2_BIAS * float(biases @ biases)
        p /= sums[:, None]
        p[own, labels] -= 1
        gradient = np.concatenate(
            [flat.T @ p.ravel() / documents + penalty * w, p.mean(axis=0) + L2_BIAS * biases]
        )
        return loss, gradient

    start = np.zeros(count + classes)
    point = minimize(function, start, iterations=ITERATIONS, tolerance=TOLERANCE)
    w, biases = point[:count], point[count:]
    return Tied(np.where(scales > _MIN_SCALE, w / scales, 0.0), biases + base)


# Weight of the class prior when smoothing class rates, as a multiple of the mean feature count.
SHRUNK = 0.2
LAMBDA_2 = 1.0  # lambda_2 in equation (1) of the paper; the paper does not state its value
PAPER_KEPT = 0.1  # fraction of feature-class pairs that the paper's method keeps
_TINY = 1e-9


@dataclass(frozen=True)
class Pairs:
    """Feature-class pairs, with the sign and the size of each pair's impact.

    Attributes
    ----------
    place : ndarray of int32 or int64, shape (pairs,)
        feature x classes + class, ascending.
    sign : ndarray of int8, shape (pairs,)
        +1 or -1.
    number, weight : ndarray of float64, shape (pairs,)
        The number that is clustered, and its weight. A negative number gets level 0.
    """

    place: NDArray[np.integer]
    sign: I8
    number: F64
    weight: F64


def evidence_of(statistics: Statistics, options: FusedOptions) -> Evidence:
    """Assign a level to each feature-class pair.

    Raises
    ------
    CorpusError
        No feature has an impact above 0.
    """
    pairs = pairs_of(statistics, str(options.impact))
    if options.is_paper:
        levels, _ = fit_by_admm(pairs.number, pairs.weight, options.levels)
    else:
        levels = fit_levels(pairs.number, pairs.weight, options.levels)
    return assembled(pairs.place, pairs.sign, levels, statistics.joint.shape)


def assembled(
    place: NDArray[np.integer], sign: I8, levels: Levels, shape: tuple[int, ...]
) -> Evidence:
    """Convert the levels of pairs to a sparse matrix that omits pairs at level 0."""
    used = levels.numbers > 0
    place = place[used]
    starts = np.searchsorted(place, np.arange(shape[0] + 1, dtype=place.dtype) * shape[1])
    column = np.remainder(place, shape[1], out=place).astype(np.int32, copy=False)
    data = levels.numbers[used] * sign[used]
    matrix = csr_matrix((data, column, starts), shape=shape)
    return Evidence(matrix, levels.values, levels.loss)


def pairs_of(statistics: Statistics, impact: str) -> Pairs:
    """Return the feature-class pairs and their impacts, computed by the chosen measure."""
    joint = statistics.joint / UNIT**2
    counts, prior = statistics.counts / UNIT, statistics.prior / UNIT
    share = prior / max(float(prior.sum()), _TINY)
    weight = counts[:, None]
    # The paper keeps the feature-class pairs with the largest |R|, where R is the sum of
    # (2 r - 1) x over documents.
    # Here, r is the probability of the class, and x is the value of the feature.
    if impact == "paper":
        found = 2 * joint - weight
        size = np.abs(found)
        place = highest(size.ravel(), max(1, int(PAPER_KEPT * size.size)))
        # lambda_1 is the largest |R| among the pairs that are not kept (Property 3)
        lambda_1 = float(np.delete(size, place).max(initial=0.0))
        weight = weight + LAMBDA_2
        size = (size - lambda_1) / weight
    else:
        occurring = counts > 0
        drawn = SHRUNK * float(counts[occurring].mean()) if occurring.any() else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = (joint + drawn * share + _TINY) / (weight + drawn + _TINY)
            found = np.log(rate / share) if impact == "log" else rate - share
        found[~occurring] = 0
        found[:, share <= 0] = 0
        size = np.abs(found)
        place = highest((size * weight).ravel())
    signs = np.where(found.ravel()[place] < 0, -1, 1).astype(np.int8)
    return Pairs(place, signs, size.ravel()[place], weight[place // len(share), 0])


def highest(rank: F64, count: int | None = None) -> I64:
    """Return the positions of the `count` largest positive numbers, in ascending order.

    Raises
    ------
    CorpusError
        No number is above 0.
    """
    above = np.flatnonzero(rank > 0)
    if not len(above):
        raise CorpusError("no feature distinguishes the classes; add unlabeled documents")
    if count is None or len(above) <= count:
        return above
    order = np.argsort(-rank[above], kind="stable")[:count]
    return np.sort(above[order])
