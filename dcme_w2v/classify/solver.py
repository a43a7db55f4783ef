"""The optimum of the exact problem by L-BFGS: what the other objectives are measured against.

Called by `dcme_w2v.classify.fit`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from dcme_w2v._core import classify as core
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.trainer import Weights, core_documents
from dcme_w2v.parallel import one_blas_thread

HISTORY = 6  # pairs of vectors that L-BFGS keeps; each is as large as the weights in float64


def solve(
    matrix: csr_matrix,
    documents: NDArray[np.int64],
    labels: NDArray[np.int32],
    classes: int,
    options: ClassifyOptions,
    watch: Callable[[int, float, Weights], bool] | None = None,
    sample_weight: NDArray[np.float32] | None = None,
) -> Weights:
    """Minimise the mean of -log p plus l2 / 2 times the squared weights, the biases left out.

    Parameters
    ----------
    matrix, documents, labels, classes
        See `dcme_w2v.classify.trainer.ClassifierTrainer`.
    options : ClassifyOptions
        Resolved; `epochs` bounds the iterations.
    sample_weight : ndarray of float32, shape (instances,), optional
        How much each instance counts, above 0; 1 by default.
    watch : callable, optional
        Told the iteration, the loss with its penalty, and the weights; returns whether to stop.
    """
    weights = Weights(matrix.shape[1], classes, options.bias)
    rows, instances = (
        core_documents(matrix),
        core.Instances(documents, labels, matrix.shape[0], classes, sample_weight),
    )
    total = len(labels) if sample_weight is None else float(sample_weight.sum(dtype=np.float64))
    shape, l2, threads = (matrix.shape[1] + 1, classes), options.l2 or 0.0, options.threads or 1
    last = [0.0]

    def loss_and_gradient(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        point, gradient = flat.reshape(shape), np.empty(shape)
        weights.table[:, :classes] = point
        loss = weights.linear.gradient(rows, instances, gradient, threads) / total
        gradient /= total
        gradient[:-1] += l2 * point[:-1]
        inner = point[:-1].ravel()
        last[0] = loss + 0.5 * l2 * float(inner @ inner)
        return last[0], gradient.ravel()

    iterations = 0

    def iterated(flat: NDArray[np.float64]) -> None:
        nonlocal iterations
        iterations += 1
        if watch:
            weights.table[:, :classes] = flat.reshape(shape)
            if watch(iterations, last[0], weights):
                raise StopIteration

    with one_blas_thread():
        found = minimize(
            loss_and_gradient,
            np.zeros(shape).ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=iterated,
            options={
                "maxiter": options.epochs,
                "maxfun": 10 * (options.epochs or 1),
                "maxcor": HISTORY,
                "ftol": options.tolerance,
                "gtol": 0.0,
            },
        )
    weights.table[:, :classes] = found.x.reshape(shape)
    return weights
