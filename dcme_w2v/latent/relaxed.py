"""Local minima of the quadratic (3) over N simplices, one by one and in the low-rank form (9).

(9) is  min sum_r f(V_r) / sum_r a_r^2  over V_r >= 0 whose rows all have the sum a_r, f the
quadratic. With V_r = a_r U_r it is the mean of f(U_r) with weights a_r^2: R descents that compete
for weight. Called by `dcme_w2v.latent.starts`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.latent.quadratic import Quadratic
from dcme_w2v.latent.simplex import descend, project_equal, project_rows

LEAST_COLUMN = 1e-6  # columns below this share of the largest one are dropped

Matrix = NDArray[np.float64]


def single_descent(
    quadratic: Quadratic, latent: int, random: np.random.Generator
) -> tuple[Matrix, float]:
    """Return a local minimum from a random point: xi of shape (n, latent), and its value."""
    count = len(quadratic.left)

    def function(xi: Matrix) -> tuple[float, Matrix]:
        product = quadratic.product(xi)
        return latent / 2 * float(np.vdot(xi, product)), latent * product

    return descend(function, project_rows, random_point(count, latent, random), count / latent)


def best_of(quadratic: Quadratic, latent: int, columns: int, random: np.random.Generator) -> Matrix:
    """Return the best of some local minima, shape (n, latent)."""
    found = [single_descent(quadratic, latent, random) for _ in range(columns)]
    return min(found, key=lambda one: one[1])[0]


def random_point(count: int, latent: int, random: np.random.Generator) -> Matrix:
    """Return rows of uniform random numbers, scaled to sum 1."""
    drawn = random.random((count, latent))
    found: Matrix = drawn / drawn.sum(axis=1, keepdims=True)
    return found


def low_rank(
    quadratic: Quadratic, latent: int, columns: int, random: np.random.Generator
) -> tuple[Matrix, NDArray[np.float64], float]:
    """Solve (9) from random columns.

    Returns
    -------
    columns : ndarray, shape (R, n, latent)
        V_r; those that have vanished are left out.
    sizes : ndarray, shape (R,)
        a_r.
    value : float
    """
    count = len(quadratic.left)
    start = np.stack([random_point(count, latent, random) for _ in range(columns)], axis=1)

    def function(v: Matrix) -> tuple[float, Matrix]:
        return ratio(quadratic, v)

    def project(v: Matrix) -> Matrix:
        return np.stack([project_equal(v[:, r])[0] for r in range(columns)], axis=1)

    v, value = descend(function, project, start, count / latent)
    sizes = v.sum(axis=2).mean(axis=0)
    kept = np.flatnonzero(sizes > LEAST_COLUMN * sizes.max())
    return np.moveaxis(v[:, kept], 1, 0), sizes[kept], value


def ratio(quadratic: Quadratic, v: Matrix) -> tuple[float, Matrix]:
    """Return (9) and its gradient at columns of shape (n, R, latent); a_r^2 is the rows' mean."""
    count, _, latent = v.shape
    product = quadratic.product(v.reshape(count, -1)).reshape(v.shape)
    sums = v.sum(axis=2, keepdims=True)
    square = float(np.square(sums).sum()) / count
    value = latent / 2 * float(np.vdot(v, product)) / square
    gradient: Matrix = (latent * product - (2 * value / count) * sums) / square
    return value, gradient


def rounded(quadratic: Quadratic, columns: Matrix, sizes: NDArray[np.float64], how: str) -> Matrix:
    """Return one xi from columns: "avg", their sum, or "min", the one with the least f."""
    if how == "avg":
        total: Matrix = columns.sum(axis=0)
        total /= total.sum(axis=1, keepdims=True)
        return total
    units = [v / size for v, size in zip(columns, sizes, strict=True)]
    return min(units, key=quadratic.value)
