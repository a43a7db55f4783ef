"""The cost to second order about xi = 1/K: a quadratic function of xi, the basis of the starts.

    J(xi) = (K / 2) tr[xi xi^T (A - B)],   A - B = (I - H - P_Y) / N                      (3)

with the hat matrix H of a centered ridge regression, H = C (N lambda I + C^T C)^-1 C^T, C = X less
its mean, and the projection P_Y on the functions of the label, Y (Y^T Y)^-1 Y^T. Without labels
P_Y = I. The paper prints B - A, and A without the factor 1 / N; the derivation is in
docs/mathematics/latent-classes.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.latent.cost import OWN, Observations
from dcme_w2v.latent.reduction import svd_of_rows
from dcme_w2v.numeric.parallel import one_blas_thread

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Quadratic:
    """The matrix A - B in factors.

    Attributes
    ----------
    left : ndarray of float64, shape (n, r)
        Left singular vectors of the centered rows.
    squares : ndarray of float64, shape (r,)
        Their squared singular values, descending.
    ridge : float
        The paper's lambda.
    labels : ndarray of int32, shape (n,)
        `OWN` for all without labels.
    classes : int
    """

    left: Matrix
    squares: Matrix
    ridge: float
    labels: NDArray[np.int32]
    classes: int

    @classmethod
    def of(cls, data: Observations, rank: int, freedom: float, seed: int) -> Quadratic:
        """Return the quadratic of some observations.

        Parameters
        ----------
        data : Observations
            All with labels, or all without.
        rank : int
            Maximum number of singular vectors.
        freedom : float
            trace H as a share of the number of singular vectors; it determines lambda.
        seed : int
            Seed of the randomized SVD.
        """
        left, squares, _ = svd_of_rows(data.rows, rank, seed, centered=True)
        ridge = ridge_of(squares, data.count, freedom * len(squares))
        return cls(left, squares, ridge, data.labels, data.classes)

    @property
    def shrinkage(self) -> Matrix:
        """Eigenvalues of H, shape (r,)."""
        found: Matrix = self.squares / (self.squares + len(self.left) * self.ridge)
        return found

    def smoothed(self, xi: Matrix) -> Matrix:
        """Return H xi."""
        with one_blas_thread():
            found: Matrix = self.left @ (self.shrinkage[:, None] * (self.left.T @ xi))
        return found

    def product(self, xi: Matrix) -> Matrix:
        """Return (A - B) xi, shape of `xi`: (n, any)."""
        smooth = self.smoothed(xi)
        if self.classes:
            smooth += self.label_means(xi)
            smooth -= xi
        smooth /= -len(xi)
        return smooth

    def value(self, xi: Matrix) -> tuple[float, Matrix]:
        """Return J(xi) and its gradient, xi of shape (n, latent)."""
        product, latent = self.product(xi), xi.shape[1]
        return latent / 2 * float(np.vdot(xi, product)), latent * product

    def label_means(self, xi: Matrix) -> Matrix:
        """Return P_Y xi: each row becomes the mean of the rows of its label."""
        sums = self.memberships() @ xi
        counts = np.bincount(self.labels, minlength=self.classes)
        means: Matrix = (sums / np.maximum(counts, 1)[:, None])[self.labels]
        return means

    def memberships(self) -> csr_matrix:
        """Return Y^T, shape (classes, n)."""
        n = len(self.labels)
        assert not (self.labels == OWN).any()
        return csr_matrix((np.ones(n), (self.labels, np.arange(n))), shape=(self.classes, n))


def ridge_of(squares: Matrix, count: int, freedom: float) -> float:
    """Return the lambda at which trace H = sum of s / (s + N lambda) has a value; by bisection."""
    largest = max(float(squares[0]), 1e-30) / count
    low, high = np.log(largest * 1e-16), np.log(largest * 1e16)
    for _ in range(100):
        middle = (low + high) / 2
        if float((squares / (squares + count * np.exp(middle))).sum()) > freedom:
            low = middle
        else:
            high = middle
    return float(np.exp((low + high) / 2))
