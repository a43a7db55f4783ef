"""Weights of the levels, shared by all classes, and a bias a class, by maximum entropy."""

from dataclasses import dataclass

import numpy as np

from dcme_w2v.numeric.arrays import F64, I64
from dcme_w2v.numeric.lbfgs import minimize

L2, L2_BIAS = 1e-4, 0.01  # of weights of columns with unit mean square, and of biases
ITERATIONS, TOLERANCE = 100, 1e-9
_TINY = 1e-12


@dataclass(frozen=True)
class Tied:
    """Weights of levels.

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
        """Return the scores of all classes, shape (documents, classes)."""
        return parts @ self.weights + self.biases


def learn(parts: F64, labels: I64) -> Tied:
    """Learn the weights of levels.

    Parameters
    ----------
    parts : ndarray of float64, shape (documents, classes, levels)
        h_k of each document and class.
    labels : ndarray of int64, shape (documents,)
        The class of each document.
    """
    documents, classes, count = parts.shape
    shares = (np.bincount(labels, minlength=classes) + 0.5) / (documents + 0.5 * classes)
    base = np.log(shares)
    scales = np.sqrt(np.mean(parts**2, axis=(0, 1))) + _TINY
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
    return Tied(np.where(scales > _TINY, w / scales, 0.0), biases + base)
