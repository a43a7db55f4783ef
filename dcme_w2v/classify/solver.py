"""Exact softmax by L-BFGS, the reference for the other objectives."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v._core import classify as core
from dcme_w2v.numeric.arrays import F32, F64, I32, I64
from dcme_w2v.numeric.lbfgs import minimize

from .options import ClassifyOptions
from .trainer import Weights, core_documents

PRECISION = 1e-6  # relative error of the loss: scores are of single precision


def solve(
    matrix: csr_matrix,
    documents: I64,
    labels: I32,
    classes: int,
    options: ClassifyOptions,
    watch: Callable[[int, float], bool] | None = None,
    sample_weight: F32 | None = None,
    weights: Weights | None = None,
) -> Weights:
    """Minimise the mean of -log p plus l2 / 2 times the squared weights without the biases.

    Parameters
    ----------
    matrix, documents, labels, classes
        See `dcme_w2v.classify.trainer.ClassifierTrainer`.
    options : ClassifyOptions
        Resolved options; `epochs` is the maximum number of iterations.
    watch : callable, optional
        Gets the iteration and the loss with its penalty; returns whether to stop.
    sample_weight : ndarray of float32, shape (instances,), optional
        Positive weights of the instances (default: 1).
    weights : Weights, optional
        Where to start, by default zeros; the result goes there, and the weights of each iteration
        while `watch` is called.
    """
    weights = weights or Weights(matrix.shape[1], classes, options.bias)
    rows, instances = (
        core_documents(matrix),
        core.Instances(documents, labels, matrix.shape[0], classes, sample_weight),
    )
    columns = core.Columns(rows, instances)
    total = len(labels) if sample_weight is None else float(sample_weight.sum(dtype=np.float64))

    def evaluate() -> tuple[float, F64]:
        gradient = np.empty((matrix.shape[1] + 1, classes))
        loss = weights.linear.gradient(rows, instances, columns, gradient, options.threads or 1)
        return loss, gradient

    return minimized(evaluate, total, weights, options, watch)


def minimized(
    evaluate: Callable[[], tuple[float, F64]],
    total: float,
    weights: Weights,
    options: ClassifyOptions,
    watch: Callable[[int, float], bool] | None = None,
) -> Weights:
    """Minimise a sum of -log p over `total`, with the penalty; see `solve`.

    Parameters
    ----------
    evaluate : callable
        Returns the sum and its gradient at `weights`, in an array of its own.
    total : float
        Instances, or the sum of their weights.
    weights : Weights
        Where to start, and where the result goes.
    options, watch
        See `solve`.
    """
    classes, l2 = weights.classes, options.l2 or 0.0

    def loss_and_gradient(point: F64) -> tuple[float, F64]:
        weights.table[:, :classes] = point
        loss, gradient = evaluate()
        gradient /= total
        gradient[:-1] += l2 * point[:-1]
        inner = point[:-1].ravel()
        return loss / total + 0.5 * l2 * float(inner @ inner), gradient

    def iterated(iteration: int, loss: float, point: F64) -> bool:
        if watch is None:
            return False
        weights.table[:, :classes] = point
        return watch(iteration, loss)

    weights.table[:, :classes] = minimize(
        loss_and_gradient,
        weights.table[:, :classes].astype(np.float64),
        iterations=options.epochs or 1,
        tolerance=options.tolerance,
        watch=iterated,
        precision=PRECISION,
    )
    return weights
