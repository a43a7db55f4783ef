"""Train with the exact softmax loss and L-BFGS, as a reference for the other objectives."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dcme_w2v._core import models as core
from dcme_w2v.numeric.arrays import F32, F64, I32, I64
from dcme_w2v.numeric.lbfgs import Function, Watch, minimize
from dcme_w2v.numeric.sparse_rows import AnyRows, as_matrix, is_dense

from .options import ClassifyOptions
from .trainer import Weights, rows_at_once

# Assumed curvature of the loss: p (1 - p) for a class probability p of about 0.05 or 0.95.
# Assuming the maximum curvature, 0.25, would take more iterations.
CURVATURE = 0.05
ROUNDING = 1e-12
PRECISION = 1e-6  # relative error of the loss that is due to float32 scores


def solve(
    matrix: AnyRows,
    documents: I64,
    labels: I32,
    classes: int,
    options: ClassifyOptions,
    watch: Callable[[int, float], bool] | None = None,
    sample_weight: F32 | None = None,
    weights: Weights | None = None,
) -> Weights:
    """Minimize the mean log loss plus `l2 / 2` times the sum of squared weights, without biases.

    Parameters
    ----------
    matrix, documents, labels, classes
        See `dcme_w2v.classify.trainer.ClassifierTrainer`.
    options : ClassifyOptions
        Resolved options; `epochs` is the maximum number of iterations.
    watch : callable, optional
        Takes the iteration and the penalized loss; returns whether to stop.
    sample_weight : ndarray of float32, shape (instances,), optional
        Positive weights of the instances (default: 1).
    weights : Weights, optional
        Starting weights (default: zeros), which are overwritten with the result; while `watch` is
        called, they are the weights of the current iteration.
    """
    weights = weights or Weights(matrix.shape[1], classes, options.bias)
    evaluate = loss_and_gradient_at(weights, matrix, documents, labels, options, sample_weight)
    total = len(labels) if sample_weight is None else float(sample_weight.sum(dtype=np.float64))
    return minimized(evaluate, total, weights, options, watch, _columns(matrix, options))


def loss_and_gradient_at(
    weights: Weights,
    matrix: AnyRows,
    documents: I64,
    labels: I32,
    options: ClassifyOptions,
    sample_weight: F32 | None,
) -> Callable[[], tuple[float, F64]]:
    """Return a function that computes the total log loss and its gradient at `weights`."""
    rows, classes = core.SparseRows(as_matrix(matrix)), weights.classes
    instances = core.Instances(documents, labels, matrix.shape[0], classes, sample_weight)
    columns = core.Columns(rows, instances)

    def evaluate() -> tuple[float, F64]:
        gradient = np.empty((matrix.shape[1] + 1, classes))
        loss = weights.linear.gradient(rows, instances, columns, gradient, options.threads or 1)
        return loss, gradient

    return evaluate


def _columns(matrix: AnyRows, options: ClassifyOptions) -> tuple[F64, F64] | None:
    """Return the means and scales that standardize dense columns, or None for sparse rows.

    The weights of columns with mean 0 and variance 1 have similar curvatures, so that fewer
    iterations reach the same optimum. For text, the steps would change the weights of rare words
    too much.
    """
    (count, width), bias = matrix.shape, options.bias or 0.0
    if not is_dense(matrix):
        return None
    mean, squares, step = np.zeros(width), np.zeros(width), rows_at_once(width)
    for begin in range(0, count, step):
        block = as_matrix(matrix[begin : begin + step]).toarray().astype(np.float64)
        mean += block.sum(axis=0) / count
        squares += np.square(block).sum(axis=0) / count
    variance = squares - mean**2
    # For a constant column, the computed variance is only a rounding error.
    variance = np.where((bias > 0) & (variance > ROUNDING * squares), variance, squares)
    curvature = CURVATURE * np.append(variance, bias**2)
    curvature[:-1] += options.l2 or 0.0
    scale = np.sqrt(np.where(curvature > 0, curvature, 1.0))
    return (mean / bias if bias else 0 * mean)[:, None], scale[:, None]


def minimized(
    evaluate: Callable[[], tuple[float, F64]],
    total: float,
    weights: Weights,
    options: ClassifyOptions,
    watch: Callable[[int, float], bool] | None = None,
    columns: tuple[F64, F64] | None = None,
) -> Weights:
    """Minimize the mean log loss (the sum divided by `total`) plus the L2 penalty.

    Parameters
    ----------
    evaluate : callable
        Returns the sum and its gradient at `weights`, in a new array.
    total : float
        Number of instances, or the sum of their weights.
    weights : Weights
        Starting weights, which are overwritten with the result.
    options, watch
        See `solve`.
    columns : tuple, optional
        Means (times the bias) and scales; the search uses weights for the standardized columns,
        which have the same optimum.
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

    search = minimize if columns is None else partial(_minimize_scaled, *columns)
    weights.table[:, :classes] = search(
        loss_and_gradient,
        weights.table[:, :classes].astype(np.float64),
        iterations=options.epochs or 1,
        tolerance=options.tolerance,
        watch=iterated,
        precision=PRECISION,
    )
    return weights


def _minimize_scaled(
    shift: F64, scale: F64, function: Function, start: F64, *, watch: Watch, **options: Any
) -> F64:
    """Minimize a function of the weights by a search over scaled weights.

    The array `start` is overwritten.
    """

    def to_weights(point: F64) -> F64:
        found = point / scale
        found[-1] -= (shift * found[:-1]).sum(axis=0)
        return found

    def scaled(point: F64) -> tuple[float, F64]:
        value, gradient = function(to_weights(point))
        gradient[:-1] -= shift * gradient[-1]
        gradient /= scale
        return value, gradient

    start[-1] += (shift * start[:-1]).sum(axis=0)
    start *= scale
    options["watch"] = lambda number, value, point: watch(number, value, to_weights(point))
    return to_weights(minimize(scaled, start, **options))
