"""The weights of levels: shared by all classes, and a bias a class, by maximum entropy.

Called by `dcme_w2v.few_labels.fit`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.numeric.lbfgs import minimise

L2, L2_BIAS = 1e-4, 0.01  # of weights of columns with unit mean square, and of biases
L2_COMMON = 1e-5  # of the weight that all levels have in common
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

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]

    def scores(self, parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores of all classes, shape (documents, classes)."""
        found: NDArray[np.float64] = parts @ self.weights + self.biases
        return found


def learn(parts: NDArray[np.float64], labels: NDArray[np.int64], shrinkage: float = 0.0) -> Tied:
    """Learn the weights of levels.

    Parameters
    ----------
    parts : ndarray of float64, shape (documents, classes, levels)
        h_k of each document and class.
    labels : ndarray of int64, shape (documents,)
        The class of each.
    shrinkage : float
        Above 0: w = s + d with a normal prior of this precision on d.
    """
    documents, classes, _ = parts.shape
    shares = (np.bincount(labels, minlength=classes) + 0.5) / (documents + 0.5 * classes)
    base = np.log(shares)
    if shrinkage > 0:
        total = parts.sum(axis=2, keepdims=True)
        scale = np.sqrt(np.mean(total**2)) + _TINY
        columns = np.concatenate([total, parts], axis=2) / scale
        penalty = np.append(L2_COMMON, np.full(parts.shape[2], shrinkage / documents))
        start = np.append(1.0, np.zeros(parts.shape[2]))
        w, biases = _maxent(columns, labels, base, penalty, start)
        return Tied((w[0] + w[1:]) / scale, biases + base)
    scales = np.sqrt(np.mean(parts**2, axis=(0, 1))) + _TINY
    start = np.zeros(parts.shape[2])
    w, biases = _maxent(parts / scales, labels, base, np.full(len(start), L2), start)
    return Tied(np.where(scales > _TINY, w / scales, 0.0), biases + base)


def _maxent(
    columns: NDArray[np.float64],
    labels: NDArray[np.int64],
    base: NDArray[np.float64],
    penalty: NDArray[np.float64],
    start: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Minimise the mean of -log p plus penalties; returns weights and biases beside `base`."""
    documents, count = len(labels), len(start)
    own = np.arange(documents)
    flat = columns.reshape(-1, count)

    def function(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w, biases = point[:count], point[count:]
        scores = (flat @ w).reshape(columns.shape[:2]) + biases + base
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

    point = minimise(
        function,
        np.append(start, np.zeros(len(base))),
        iterations=ITERATIONS,
        tolerance=TOLERANCE,
    )
    return point[:count], point[count:]
