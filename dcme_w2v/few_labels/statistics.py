"""Statistics (8): all that fused features need of the unlabelled documents, as exact integers.

Sums over documents of feature, probability, and their product. Each is rounded to 1 / 65,536 before
it is added, so that sums have the same bits in whatever order documents come and parts are joined.
Called by `dcme_w2v.few_labels.fit` and `dcme_w2v.few_labels.jobs`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v._core import fused as core
from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.core import kernels_named
from dcme_w2v.numeric.memory import require_memory

UNIT = 65536
CUT = 0.001  # probabilities below this count as 0
LINE = 8  # integers of a cache line
PROBABILITIES = 1 << 20  # added at once, at least
LARGEST_COUNT = 1 << 46  # of a feature, in units: products with a probability stay below 2^63


@dataclass
class Statistics:
    """Sums over documents, in units of 1 / 65,536 (`joint`: of its square).

    Attributes
    ----------
    joint : ndarray of int64, shape (features, classes)
        Q: feature times probability.
    counts : ndarray of int64, shape (features,)
        s: feature.
    prior : ndarray of int64, shape (classes,)
        Probability.
    documents, empty : int
        How many documents were added, and how many of them have no feature.
    rows : ndarray of int32, shape (all features,), or None
        Where only some features have sums: the row of each, -1 for the others.
    every : ndarray of int64, shape (all features,), or None
        Then: the counts of all features.
    """

    joint: NDArray[np.int64]
    counts: NDArray[np.int64]
    prior: NDArray[np.int64]
    documents: int = 0
    empty: int = 0
    rows: NDArray[np.int32] | None = field(default=None, repr=False)
    every: NDArray[np.int64] | None = field(default=None, repr=False)

    @classmethod
    def zeros(cls, features: int, classes: int) -> Statistics:
        """Return sums over no document."""
        require_memory(
            8 * features * classes,
            f"statistics of {features:,} features and {classes:,} classes",
            "keep fewer --features",
        )
        return cls(
            _aligned_zeros(features, classes),
            np.zeros(features, dtype=np.int64),
            np.zeros(classes, dtype=np.int64),
        )

    def add(
        self, matrix: csr_matrix, log_probabilities: NDArray[np.float64], threads: int = 1
    ) -> None:
        """Add documents.

        Parameters
        ----------
        matrix : csr_matrix of float32, shape (documents, features)
            Not negative; sorted indices.
        log_probabilities : ndarray of float64, shape (documents, classes)
            Of the classes, by the initial model.
        """
        core.add_statistics(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32, copy=False),
            matrix.data.astype(np.float32, copy=False),
            len(self.counts) if self.rows is None else len(self.rows),
            np.ascontiguousarray(log_probabilities),
            CUT,
            self.joint,
            self.counts,
            self.prior,
            self.rows,
            threads,
            kernels_named(),
        )
        self.documents += matrix.shape[0]
        self.empty += int((np.diff(matrix.indptr) == 0).sum())
        self._check_size()

    def _check_size(self) -> None:
        if int(self.counts.max(initial=0)) > LARGEST_COUNT:
            raise UsageError(
                "the unlabelled documents are too many for the sums; use smaller values"
            )

    def __iadd__(self, other: Statistics) -> Statistics:
        """Add the sums over other documents: the reduce step."""
        if self.joint.shape != other.joint.shape:
            raise UsageError(
                f"statistics of {other.joint.shape[0]} features and {other.joint.shape[1]} classes "
                f"cannot be added to those of {self.joint.shape[0]} and {self.joint.shape[1]}"
            )
        self.joint += other.joint
        self.counts += other.counts
        self.prior += other.prior
        self.documents += other.documents
        self.empty += other.empty
        self._check_size()
        return self

    def is_possible(self) -> bool:
        """Return whether documents can have such sums: none is negative or too large."""
        return (
            0 <= self.empty <= self.documents
            and int(self.prior.min(initial=0)) >= 0
            and int(self.prior.max(initial=0)) <= self.documents * UNIT
            and int(self.counts.max(initial=0)) <= LARGEST_COUNT
            and int(self.joint.min(initial=0)) >= 0
            and bool((self.joint <= (self.counts * UNIT)[:, None]).all())
        )

    def copy(self) -> Statistics:
        """Return sums of their own."""
        arrays = {name: getattr(self, name).copy() for name in ("joint", "counts", "prior")}
        return dataclasses.replace(self, **arrays)


def check_values(matrix: csr_matrix, what: str = "") -> None:
    """Raise unless no value is negative or too large for the sums.

    Parameters
    ----------
    matrix : csr_matrix
    what : str, optional
        Kind of its rows, for the message.

    Raises
    ------
    UsageError
        The message has row and column.
    """
    wrong = np.flatnonzero(~((matrix.data >= 0) & (matrix.data < core.LARGEST)))
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        value, place = matrix.data[wrong[0]], f"row {row}, column {matrix.indices[wrong[0]]}"
        raise UsageError(
            f"{what} {place}: is {value:g}; ".lstrip()
            + f"fused features need values from 0 to {core.LARGEST:g}"
        )


def sum_over(
    matrix: csr_matrix,
    log_probabilities: Iterable[NDArray[np.float64]],
    classes: int,
    threads: int,
) -> Statistics:
    """Return the statistics of rows, given their log-probabilities piece by piece."""
    found = Statistics.zeros(matrix.shape[1], classes)
    _add_pieces(found, matrix, log_probabilities, threads)
    return found


def sum_screened(
    matrix: csr_matrix,
    log_probabilities: Callable[[], Iterable[NDArray[np.float64]]],
    classes: int,
    threads: int,
    keep: int,
    shrunk: float,
) -> Statistics:
    """Return the statistics of the features that can be among the strongest pairs only.

    As ``|log(r / pi)|`` is at most max(log 1 / pi_min, log(1 + s / a)), a feature whose s times
    this
    bound is below the rank of the pair number `keep` of the most frequent features has no pair
    that is kept: the result is that of all features.

    Parameters
    ----------
    matrix : csr_matrix
    log_probabilities : callable
        Returns the log-probabilities of its rows, piece by piece, each time again.
    classes, threads : int
    keep : int
        How many pairs are kept.
    shrunk : float
        a, as a share of the mean of s.
    """
    width = matrix.shape[1]
    units = np.floor(matrix.data * np.float32(UNIT) + np.float32(0.5)).astype(np.int64)
    every = np.zeros(width, dtype=np.int64)
    np.add.at(every, matrix.indices, units)
    order = np.argsort(-every, kind="stable")
    order = order[every[order] > 0]
    count = min(len(order), max(1, -(-2 * keep // classes)))
    found = _of_some(matrix, log_probabilities(), classes, threads, order[:count], every)
    if count == len(order):
        return found
    prior = found.prior / max(int(found.prior.sum()), 1)
    s, a = every / UNIT, shrunk * float(every[order].mean()) / UNIT
    lowest = float(prior[prior > 0].min())
    bound = s * np.maximum(np.log(1 / lowest), np.log1p(s / a))
    ranks = _ranks(found, a)
    least = np.partition(ranks, len(ranks) - keep)[len(ranks) - keep]
    possible = order[bound[order] >= least * (1 - 1e-9)]
    if len(possible) <= count:
        return found
    return _of_some(matrix, log_probabilities(), classes, threads, possible, every)


def _of_some(
    matrix: csr_matrix,
    log_probabilities: Iterable[NDArray[np.float64]],
    classes: int,
    threads: int,
    features: NDArray[np.int64],
    every: NDArray[np.int64],
) -> Statistics:
    """Return the statistics of some features."""
    found = Statistics.zeros(len(features), classes)
    found.rows = np.full(matrix.shape[1], -1, dtype=np.int32)
    found.rows[np.sort(features)] = np.arange(len(features), dtype=np.int32)
    found.every = every
    _add_pieces(found, matrix, log_probabilities, threads)
    return found


def _add_pieces(
    found: Statistics,
    matrix: csr_matrix,
    log_probabilities: Iterable[NDArray[np.float64]],
    threads: int,
) -> None:
    """Add rows, many at once: what each call costs is for all of the sums."""
    at = 0
    for piece in _gathered(log_probabilities):
        found.add(piece_of(matrix, at, at + len(piece)), piece, threads)
        at += len(piece)


def _gathered(pieces: Iterable[NDArray[np.float64]]) -> Iterator[NDArray[np.float64]]:
    """Yield larger pieces."""
    held: list[NDArray[np.float64]] = []
    for piece in pieces:
        held.append(piece)
        if sum(one.size for one in held) >= PROBABILITIES:
            yield np.concatenate(held)
            held.clear()
    if held:
        yield np.concatenate(held)


def _aligned_zeros(rows: int, columns: int) -> NDArray[np.int64]:
    """Return a table that begins with a cache line: vectors of a row then seldom cross one."""
    memory = np.zeros(rows * columns + LINE, dtype=np.int64)
    begin = -(memory.ctypes.data // memory.itemsize) % LINE
    return memory[begin : begin + rows * columns].reshape(rows, columns)


def _ranks(sums: Statistics, drawn: float) -> NDArray[np.float64]:
    """Return s ``|log(r / pi)|`` of all pairs."""
    counts, share = sums.counts[:, None] / UNIT, sums.prior / max(int(sums.prior.sum()), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = (sums.joint / UNIT**2 + drawn * share + 1e-9) / (counts + drawn + 1e-9)
        ranks = np.abs(np.log(rate / share)) * counts
    ranks[:, share <= 0] = 0
    found: NDArray[np.float64] = ranks.ravel()
    return found


def piece_of(matrix: csr_matrix, begin: int, end: int) -> csr_matrix:
    """Return some rows, without copying them."""
    first, last = matrix.indptr[begin], matrix.indptr[end]
    return csr_matrix(
        (
            matrix.data[first:last],
            matrix.indices[first:last],
            matrix.indptr[begin : end + 1] - first,
        ),
        shape=(end - begin, matrix.shape[1]),
    )
