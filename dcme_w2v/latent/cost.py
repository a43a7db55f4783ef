"""The cost of a latent-class model (Joulin et al. 2010, equation 2), its E-step and its M-steps.

Equation numbers are from Joulin, Bach and Ponce, "Efficient optimization for discriminative
latent class models", NIPS 2010. The model (1) is x -> z -> y: p(z = k | x) = softmax_k(w_k.x +
b_k), p(y = m | z = k) = alpha_km, and p(y | x) = sum_k p(k | x) alpha_ky. Without
labels each row is its own label (3.3), so that alpha_kn = xi_nk / sum_n xi_nk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v._core import models as core
from dcme_w2v.classify.labeled import instances_of
from dcme_w2v.classify.trainer import PAD, Weights
from dcme_w2v.files.space import require_memory
from dcme_w2v.numeric.arrays import F32, F64, I32, I64
from dcme_w2v.numeric.lbfgs import HISTORY, Watch, minimize

OWN = -1  # label of all document rows if the documents have no labels
NEVER = np.float32(-1e30)  # replaces log 0, because sums with -inf can be NaN
# Without labels, a latent class is emptied if its posteriors sum to less than this.
MIN_CLASS_SIZE = 0.5


@dataclass(frozen=True)
class Observations:
    """Documents with their labels; each document-label pair is one observation.

    Attributes
    ----------
    matrix : csr_matrix of float32, shape (documents, features)
    documents : ndarray of int64, shape (n,)
        The document of each observation; a document with several labels has one observation per
        label.
    labels : ndarray of int32, shape (n,)
        The label of each observation, below `classes`; without labels `OWN`.
    classes : int
        Number of labels, M; 0 means that each observation is its own label.
    """

    matrix: csr_matrix
    documents: I64
    labels: I32
    classes: int

    @classmethod
    def of(
        cls, matrix: csr_matrix, labels: Sequence[Sequence[int]] | None, classes: int
    ) -> Observations:
        """Combine documents with their labels; without labels, each document is its own label."""
        if labels is None:
            labels, classes = [(OWN,)] * matrix.shape[0], 0
        return cls(matrix, *instances_of(labels), classes)

    @property
    def count(self) -> int:
        """Number of observations, N."""
        return len(self.labels)

    @property
    def rows(self) -> csr_matrix:
        """The document features of each observation, shape (n, features)."""
        if len(self.documents) == self.matrix.shape[0]:
            return self.matrix
        return self.matrix[self.documents]


class Cost:
    """The parameters of a latent-class model, and its cost for given observations.

    Parameters
    ----------
    data : Observations
    latent : int
        Number of latent classes, K.
    l2 : float
        The paper's lambda / K.
    smoothing : float
        Dirichlet counts eta, added to the counts for alpha. Without them, a label that no active
        class has seen would have a log-probability of minus infinity. Rows that are their own
        labels need no smoothing.
    threads : int

    Attributes
    ----------
    weights : Weights
        W, and b as the weights of a constant feature 1.
    posterior : ndarray of float32, shape (n, stride)
        xi with padding columns, as in the `table` of the weights; `xi` is the view without padding.
    log_alpha : ndarray of float32, shape (classes, stride)
        log alpha for each label, or for each observation if there are no labels.
    sizes : ndarray of float64, shape (latent,)
        Sum of xi over the observations.
    """

    def __init__(
        self, data: Observations, latent: int, l2: float, smoothing: float, threads: int
    ) -> None:
        self.data, self.latent, self.l2, self.threads = data, latent, l2, threads
        self.smoothing = smoothing
        _require_memory(data, latent)
        self.weights = Weights(data.matrix.shape[1], latent, 1.0)
        self._documents = core.SparseRows(data.matrix)
        count, total = data.count, data.matrix.shape[0]
        every = np.arange(count, dtype=np.int32)
        labels = data.labels if data.classes else every
        self._of_label = csr_matrix(
            (np.ones(count), (labels, every)), shape=(data.classes or count, count)
        )
        self._by_label = core.Instances(data.documents, labels, total, data.classes or count)
        self._by_row = core.Instances(data.documents, every, total, count)
        # The constructor of `Columns` also transposes the document matrix.
        self._columns = core.Columns(self._documents, self._by_label)
        stride = self.weights.table.shape[1]
        self.posterior = np.zeros((count, stride), dtype=np.float32)
        self.xi, self.table = self.posterior[:, :latent], self.weights.table[:, :latent]
        self.log_alpha = np.zeros((data.classes or count, stride), dtype=np.float32)
        self.sizes = np.zeros(latent)

    @property
    def alpha(self) -> F64:
        """The probabilities `p(label | latent class)`, shape (latent, classes); rows sum to 1."""
        return np.exp(self.log_alpha[: self.data.classes, : self.latent].T.astype(np.float64, "C"))

    # ---- the M-steps ----

    def fit_weights(self, iterations: int, watch: Watch | None) -> None:
        """Fit the weights: minimize the penalized cross-entropy between posterior and softmax."""

        def function(point: F64) -> tuple[float, F64]:
            gradient = np.empty(point.shape)
            self.table[:] = point
            loss = self._loss(self._by_row, self.posterior, gradient, None, False)
            gradient /= self.data.count
            gradient[:-1] += self.l2 * point[:-1]
            return loss / self.data.count + self._penalty(point), gradient

        start = self.table.astype(np.float64)
        found = minimize(function, start, iterations=iterations, tolerance=1e-9, watch=watch)
        self.table[:] = found

    def fit_alpha(self) -> None:
        """Set `p(label | latent class)` in proportion to the posteriors summed per label."""
        xi, own = self.xi.astype(np.float64), self.data.classes == 0
        counts = xi if own else self._of_label @ xi
        self.sizes = counts.sum(axis=0)
        totals = self.sizes + self.smoothing * self.data.classes
        if own:
            # Keep empty classes empty: dividing by a tiny total would let a few rows refill an
            # empty class.
            counts[:, totals < MIN_CLASS_SIZE] = 0
        alpha = (counts + self.smoothing) / np.maximum(totals, 1e-300)
        table = self.log_alpha[:, : self.latent]
        table[:] = NEVER
        np.log(alpha, out=table, where=alpha > 0, casting="same_kind")

    # ---- the E-step and the cost ----

    def fit_posterior(self) -> float:
        """Run the E-step: set `xi_nk` in proportion to `p(k | n) p(label | k)`; return the cost."""
        loss = self._loss(self._by_label, self.log_alpha, None, self.posterior, True)
        cost = loss / self.data.count + self._penalty(self.table.astype(np.float64))
        if self.smoothing and self.data.classes:
            logs = self.log_alpha[: self.data.classes, : self.latent]
            cost -= self.smoothing / self.data.count * float(logs.sum(dtype=np.float64))
        return cost

    def _penalty(self, point: F64) -> float:
        inner = point[:-1].ravel()
        return 0.5 * self.l2 * float(inner @ inner)

    def _loss(
        self,
        instances: core.Instances,
        rows: F32,
        gradient: F64 | None,
        posterior: F32 | None,
        latent: bool,
    ) -> float:
        """Return the summed loss for the current weights; fill in `gradient` and `posterior`."""
        return self.weights.linear.gradient(
            self._documents, instances, self._columns, gradient, self.threads, rows, posterior,
            latent,
        )  # fmt: skip


def _require_memory(data: Observations, latent: int) -> None:
    """Raise an error if the arrays of L-BFGS and the posterior would not fit in memory."""
    # Number of float64 arrays, each as large as the weights, that L-BFGS keeps.
    numbers = 2 * HISTORY + 5
    weights = (data.matrix.shape[1] + 1) * latent * (8 * numbers + 4)
    rows = data.count * (latent + PAD) * 4 * 3  # bytes for xi, a copy of xi, and log alpha
    rows += data.matrix.nnz * 8  # bytes for a transposed copy of the document matrix
    require_memory(weights + rows, f"--latent={latent}: fitting", "use fewer classes, or --lsa")
