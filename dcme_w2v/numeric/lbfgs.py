"""L-BFGS: minimises a smooth function of a vector from its values and gradients.

The only use of scipy's L-BFGS in this package.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.numeric.parallel import one_blas_thread

HISTORY = 6  # correction pairs that L-BFGS stores; each has the size of the point, in float64
EVALUATIONS = 10  # maximum evaluations per iteration, on average

Function = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]
Evaluation = tuple[NDArray[np.float64], float, NDArray[np.float64]]  # point, value, gradient
Watch = Callable[[int, float, NDArray[np.float64]], bool | None]


def minimise(
    function: Function,
    start: NDArray[np.float64],
    *,
    iterations: int = 100,
    tolerance: float = 1e-6,
    watch: Watch | None = None,
    precision: float = 0.0,
) -> NDArray[np.float64]:
    """Return the minimum of a function, by scipy's L-BFGS-B with one BLAS thread.

    Parameters
    ----------
    function : callable
        Takes a point, an ndarray of float64 of the shape of `start`; returns the value and the
        gradient, of the same shape.
    start : ndarray of float64
        Starting point, of any shape.
    iterations : int
        Maximum number of iterations.
    tolerance : float
        Stop when an iteration reduces the value by less than this fraction.
    watch : callable, optional
        Takes the iteration (from 1), the last computed value and the point; returns whether to
        stop.
    precision : float
        Relative rounding error of the value, 1e-6 for sums of single precision. The change of the
        value over a step that is below it is computed from the gradients at both ends (the
        trapezoidal rule), whose errors are much smaller near the minimum; otherwise the line search
        would fail there.

    Returns
    -------
    ndarray of float64
        The best point; of the shape of `start`.
    """
    from scipy.optimize import minimize

    count, last = 0, 0.0
    base: Evaluation | None = None  # of the point where the current line search starts
    latest: Evaluation | None = None

    def flat(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal base, last, latest
        last, gradient = function(point.reshape(start.shape))
        gradient = gradient.ravel()
        if base is not None and abs(last - base[1]) <= precision * abs(base[1]):
            last = base[1] + 0.5 * float((base[2] + gradient) @ (point - base[0]))
        if precision:
            latest = point.copy(), last, gradient
            base = base or latest
        return last, gradient

    def iterated(point: NDArray[np.float64]) -> None:
        nonlocal base, count
        count += 1
        base = latest
        if watch and watch(count, last, point.reshape(start.shape)):
            raise StopIteration

    with one_blas_thread():
        found = minimize(
            flat,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=iterated,
            options={
                "maxiter": iterations,
                "maxfun": EVALUATIONS * iterations,
                "maxcor": HISTORY,
                "ftol": tolerance,
                "gtol": 0.0,
            },
        )
    point: NDArray[np.float64] = found.x.reshape(start.shape)
    return point
