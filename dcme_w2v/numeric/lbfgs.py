"""Minimize a smooth function by L-BFGS from its values and gradients.

No other module calls scipy's L-BFGS.
"""

from collections.abc import Callable

from .arrays import F64
from .parallel import one_blas_thread

# Number of stored correction pairs; each consists of two vectors of the parameters' size.
HISTORY = 6
EVALUATIONS = 10  # limit on function evaluations, as a multiple of the number of iterations

Function = Callable[[F64], tuple[float, F64]]
Evaluation = tuple[F64, float, F64]  # a point, and the function's value and gradient at this point
Watch = Callable[[int, float, F64], bool | None]


def minimize(
    function: Function,
    start: F64,
    *,
    iterations: int = 100,
    tolerance: float = 1e-6,
    watch: Watch | None = None,
    precision: float = 0.0,
) -> F64:
    """Minimize a function by scipy's L-BFGS-B, with one BLAS thread.

    Parameters
    ----------
    function : callable
        Takes a point, an ndarray of float64 with the shape of `start`; returns the value and the
        gradient, which has the same shape.
    start : ndarray of float64
        Starting point, of any shape.
    iterations : int
        Maximum number of iterations.
    tolerance : float
        Stop when an iteration reduces the value by less than this fraction.
    watch : callable, optional
        Takes the iteration (from 1), the latest value and the point; returns whether to stop.
    precision : float
        Relative rounding error of the value, such as 1e-6 for single-precision sums. Changes of the
        value that are smaller than this are computed from the gradients at both ends of a step (the
        trapezoidal rule), whose errors are much smaller near the minimum, where the line search
        would otherwise fail.

    Returns
    -------
    ndarray of float64
        The best point, with the shape of `start`.
    """
    from scipy.optimize import minimize as scipy_minimize

    values, count = _Values(function, start.shape, precision), 0

    def iterated(point: F64) -> None:
        nonlocal count
        count += 1
        values.base = values.latest
        if watch and watch(count, values.last, point.reshape(start.shape)):
            raise StopIteration

    with one_blas_thread():
        found = scipy_minimize(
            values,
            start.ravel(),
            jac=True,
            method="L-BFGS-B",
            callback=iterated,
            options={
                "maxiter": iterations, "maxfun": EVALUATIONS * iterations, "maxcor": HISTORY,
                "ftol": tolerance, "gtol": 0.0,
            },
        )  # fmt: skip
    return found.x.reshape(start.shape)


class _Values:
    """A function to minimize, which computes small changes in its value from gradients.

    `last` is the last value. `base` is the evaluation at the start of the current line search, and
    `latest` the last evaluation; both are kept only if the precision is above 0.
    """

    def __init__(self, function: Function, shape: tuple[int, ...], precision: float) -> None:
        self._function, self._shape, self._precision = function, shape, precision
        self.last = 0.0
        self.base: Evaluation | None = None
        self.latest: Evaluation | None = None

    def __call__(self, point: F64) -> tuple[float, F64]:
        """Return the function's value and gradient at a flattened point."""
        value, gradient = self._function(point.reshape(self._shape))
        gradient, base = gradient.ravel(), self.base
        if base is not None and abs(value - base[1]) <= self._precision * abs(base[1]):
            value = base[1] + 0.5 * float((base[2] + gradient) @ (point - base[0]))
        if self._precision:
            self.latest = point.copy(), value, gradient
            self.base = base or self.latest
        self.last = value
        return value, gradient
