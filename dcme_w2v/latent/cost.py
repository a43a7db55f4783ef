"""The cost (2) of a discriminative latent-class model, with its E-step and its two M-steps.

Equation numbers are from Joulin, Bach and Ponce, "Efficient optimization for discriminative
latent class models", NIPS 2010. The model (1) is x -> z -> y: p(z = k | x) = softmax_k(w_k.x +
b_k), p(y = m | z = k) = alpha_km, and p(y | x) = sum_k p(k | x) alpha_ky. A row without a label is
its own label (3.3): no other row has this label, so that alpha_kn = xi_nk / sum_n xi_nk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v._core import classify as core
from dcme_w2v.classify.trainer import PAD, Weights, core_documents
from dcme_w2v.numeric.arrays import F32, F64, I32, I64
from dcme_w2v.numeric.lbfgs import HISTORY, Watch, minimize
from dcme_w2v.numeric.memory import require_memory

OWN = -1  # in place of a label: the row is its own label
NEVER = np.float32(-1e30)  # the logarithm of 0; finite, so that sums are finite
MIN_SIZE = 0.5  # sum of xi below which a class of own labels becomes and stays empty


@dataclass(frozen=True)
class Observations:
    """Documents and their labels.

    Attributes
    ----------
    matrix : csr_matrix of float32, shape (documents, features)
    documents : ndarray of int64, shape (n,)
        The document of each observation; a document with several labels has several.
    labels : ndarray of int32, shape (n,)
        The label of each observation, below `classes`, or `OWN`.
    classes : int
        Number of labels, M.
    """

    matrix: csr_matrix
    documents: I64
    labels: I32
    classes: int

    @classmethod
    def of(
        cls, matrix: csr_matrix, labels: Sequence[Sequence[int]] | None, classes: int
    ) -> Observations:
        """Return documents with their labels; a document without one is its own label.

        With labels=None, every document is its own label.
        """
        if labels is None:
            labels = [()] * matrix.shape[0]
        sizes = np.array([max(1, len(one)) for one in labels], dtype=np.int64)
        flat = [label for one in labels for label in (one or (OWN,))]
        documents = np.repeat(np.arange(len(sizes)), sizes)
        return cls(matrix, documents, np.array(flat, dtype=np.int32), classes)

    @property
    def count(self) -> int:
        """Number of observations, N."""
        return len(self.labels)

    @property
    def rows(self) -> csr_matrix:
        """The row of each observation, shape (n, features)."""
        if len(self.documents) == self.matrix.shape[0]:
            return self.matrix
        return self.matrix[self.documents]


class Cost:
    """A model's weights and alpha on some observations, with the posterior xi.

    Parameters
    ----------
    data : Observations
    latent : int
        Number of latent classes, K.
    l2 : float
        The paper's lambda / K.
    smoothing : float
        Dirichlet counts eta that are added to the counts of alpha: without them, a label that no
        active class has seen has a log-probability of minus infinity. Own labels have none.
    threads : int

    Attributes
    ----------
    weights : Weights
        W, and b as the weights of a constant 1.
    posterior : ndarray of float32, shape (n, stride)
        xi with padding; `xi` are the columns without, as `table` of the weights.
    log_alpha : ndarray of float32, shape (classes + own, stride)
        log alpha by label; the rows' own labels come after the others.
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
        self._documents = core_documents(data.matrix)
        count, total = data.count, data.matrix.shape[0]
        self.own = np.flatnonzero(data.labels == OWN)
        self._labeled = np.flatnonzero(data.labels != OWN)
        labels = data.labels.copy()
        labels[self.own] = data.classes + np.arange(len(self.own), dtype=np.int32)
        every = np.arange(count, dtype=np.int32)
        self._by_label = core.Instances(data.documents, labels, total, data.classes + len(self.own))
        self._by_row = core.Instances(data.documents, every, total, count)
        self._columns = core.Columns(self._documents, self._by_label)  # and of the rows
        stride = self.weights.table.shape[1]
        self.posterior = np.zeros((count, stride), dtype=np.float32)
        self.xi, self.table = self.posterior[:, :latent], self.weights.table[:, :latent]
        self.log_alpha = np.zeros((data.classes + len(self.own), stride), dtype=np.float32)
        self.sizes = np.zeros(latent)

    @property
    def alpha(self) -> F64:
        """p(label | class), shape (latent, classes); rows sum to 1 without own labels."""
        table = self.log_alpha[: self.data.classes, : self.latent].T.astype(np.float64)
        return np.exp(table)

    # ---- the M-steps ----

    def fit_weights(self, iterations: int, watch: Watch | None = None) -> None:
        """Minimize the cross-entropy of xi and softmax, with the penalty, from the last weights."""

        def function(point: F64) -> tuple[float, F64]:
            return self._with_penalty(point, self._by_row, self.posterior, None, latent=False)

        point = minimize(
            function, self._point(), iterations=iterations, tolerance=1e-9, watch=watch
        )
        self.table[:] = point

    def fit_alpha(self) -> None:
        """alpha_km ~ sum over the observations with label m of xi_nk, plus the smoothing."""
        counts = self.label_counts() + self.smoothing
        mass = self.xi[self.own].astype(np.float64)
        self.sizes = self.label_counts().sum(axis=0) + mass.sum(axis=0)
        totals = counts.sum(axis=0) + mass.sum(axis=0)
        if self.data.classes == 0:
            mass[:, totals < MIN_SIZE] = 0  # else so few rows come back at 1 / 0
        alpha = np.concatenate([counts, mass]) / np.maximum(totals, 1e-300)
        table = self.log_alpha[:, : self.latent]
        table[:] = NEVER
        np.log(alpha, out=table, where=alpha > 0, casting="same_kind")

    def label_counts(self) -> F64:
        """Return the sum of xi over the observations of each label, shape (classes, latent)."""
        counts = np.zeros((self.data.classes, self.latent))
        if len(self._labeled):
            labels, n = self.data.labels[self._labeled], len(self._labeled)
            of_label = csr_matrix(
                (np.ones(n), (labels, np.arange(n))), shape=(self.data.classes, n)
            )
            counts += of_label @ self.xi[self._labeled].astype(np.float64)
        return counts

    # ---- the E-step, and the cost ----

    def fit_posterior(self) -> float:
        """Set xi_nk ~ p_nk alpha_k,y_n; returns the cost."""
        loss = self._loss(self._by_label, self.log_alpha, None, self.posterior, latent=True)
        return loss / self.data.count + self._penalty(self._point()) + self._prior()

    def balanced_posterior(self, shares: F64, balance: float) -> None:
        """Move xi of own labels: xi_nk ~ xi_nk p_nk^(1 / balance) shares_k / N_k.

        This is a step of exponentiated gradient for `balanced_cost`, which does not raise it: the
        divergence of the shares is at most the divergence of xi. With equal shares and a balance of
        1 it is the E-step of (2).
        """
        weights, table = self.weights.table.copy(), self.log_alpha[:, : self.latent]
        before = self.posterior.copy()
        ratio = shares * len(before) / np.maximum(self.masses(), 1e-300)
        table[:] = NEVER
        alpha = self.xi[self.own] * ratio
        np.log(alpha, out=table[self.data.classes :], where=alpha > 0, casting="same_kind")
        table[: self.data.classes] = 0  # of labeled rows xi stays
        self.weights.table[:] = weights / np.float32(balance)
        self.fit_posterior()
        self.weights.table[:] = weights
        self.posterior[self._labeled] = before[self._labeled]
        self.sizes = self.masses()

    def balanced_cost(self, shares: F64, balance: float) -> float:
        """Return cross-entropy of xi and softmax + balance KL(shares of xi || shares) + penalty.

        At equal shares and a balance of 1 this is the bound F of (2) plus a constant.
        """
        loss = self._loss(self._by_row, self.posterior, None, None, latent=False)
        found = self.masses() / self.data.count
        ratio = np.where(found > 0, found, 1) / shares
        divergence = float((found * np.log(ratio)).sum())
        return loss / self.data.count + balance * divergence + self._penalty(self._point())

    def gradient(self, point: F64) -> tuple[float, F64, F64]:
        """Return the cost (2) at weights, its derivatives by them and by the logits of alpha.

        Parameters
        ----------
        point : ndarray of float64, shape (features + 1, latent)

        Returns
        -------
        cost : float
        by_weights : ndarray, shape (features + 1, latent)
        by_alpha : ndarray, shape (classes, latent)
            With C = sum of xi by label + smoothing: -(C_mk - alpha_km sum_m C_mk) / N.
        """
        cost, by_weights = self._with_penalty(
            point, self._by_label, self.log_alpha, self.posterior, latent=True
        )
        counts = self.label_counts() + self.smoothing
        by_alpha = -(counts - self.alpha.T * counts.sum(axis=0)) / self.data.count
        return cost + self._prior(), by_weights, by_alpha

    def _prior(self) -> float:
        if not (self.smoothing and self.data.classes):
            return 0.0
        table = self.log_alpha[: self.data.classes, : self.latent]
        return -self.smoothing / self.data.count * float(table.sum(dtype=np.float64))

    def masses(self) -> F64:
        """Return the sum of the posteriors of each class."""
        return self.xi.sum(axis=0, dtype=np.float64)

    def _penalty(self, point: F64) -> float:
        inner = point[:-1].ravel()
        return 0.5 * self.l2 * float(inner @ inner)

    def _point(self) -> F64:
        return self.table.astype(np.float64)

    def _loss(
        self,
        instances: core.Instances,
        rows: F32,
        gradient: F64 | None,
        posterior: F32 | None,
        *,
        latent: bool,
    ) -> float:
        """Return the sum of the losses at the weights; fills `gradient` and `posterior`."""
        return self.weights.linear.soft_gradient(
            self._documents, instances, self._columns, rows, gradient, posterior, latent,
            self.threads,
        )  # fmt: skip

    def _with_penalty(
        self,
        point: F64,
        instances: core.Instances,
        rows: F32,
        posterior: F32 | None,
        *,
        latent: bool,
    ) -> tuple[float, F64]:
        """Return the mean loss of soft targets with the penalty, and its gradient."""
        gradient = np.empty(point.shape)
        self.table[:] = point
        loss = self._loss(instances, rows, gradient, posterior, latent=latent)
        gradient /= self.data.count
        gradient[:-1] += self.l2 * point[:-1]
        return loss / self.data.count + self._penalty(point), gradient


def _require_memory(data: Observations, latent: int) -> None:
    """Raise where the weights with L-BFGS's history, or xi, are larger than the memory."""
    numbers = 2 * HISTORY + 5  # vectors of float64, as large as the weights
    weights = (data.matrix.shape[1] + 1) * latent * (8 * numbers + 4)
    rows = data.count * (latent + PAD) * 4 * 3  # xi, log alpha of own labels, and a copy
    rows += data.matrix.nnz * 8  # by feature
    require_memory(weights + rows, f"--latent={latent}: fitting", "give fewer classes, or --lsa")
