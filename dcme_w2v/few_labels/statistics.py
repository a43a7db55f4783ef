"""Compute the sums of feature values, probabilities and their products in equation (8).

The levels depend on the unlabeled documents only through these sums. Every number is rounded to a
multiple of 1 / 65,536 before it is added, so that the sums are exact integers: they do not depend
on the order of the documents or the number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.errors import UsageError
from dcme_w2v.files.space import require_memory
from dcme_w2v.numeric.arrays import F64, I64
from dcme_w2v.training.progress import QUIET, Reporter

UNIT = 65536
LARGEST = 32768  # feature values must be below this limit
CUT = 0.001  # probabilities below this limit count as 0
EXACT = 1 << 53  # integers below this limit are exact in double precision
PROBABILITIES = 1 << 20  # probabilities are added in batches of at least this size
MAX_COUNT = 1 << 46  # with larger counts, the product of a count and a probability could reach 2^63


@dataclass
class Statistics:
    """Exact integer sums over documents, in units of 1/65,536 (or for `joint`, 1/65,536 squared).

    Attributes
    ----------
    joint : ndarray of int64, shape (features, classes)
        Q: the sums of feature value times probability.
    counts : ndarray of int64, shape (features,)
        s: the sums of the feature values.
    prior : ndarray of int64, shape (classes,)
        Sums of the probabilities.
    documents, empty : int
        Number of documents that were added, and of those without a feature.
    """

    joint: I64
    counts: I64
    prior: I64
    documents: int = 0
    empty: int = 0

    @classmethod
    def zeros(cls, features: int, classes: int) -> Statistics:
        """Create statistics in which all sums are zero."""
        require_memory(
            8 * features * classes,
            f"statistics of {features:,} features and {classes:,} classes",
            "keep fewer --features",
        )
        return cls(
            np.zeros((features, classes), dtype=np.int64),
            np.zeros(features, dtype=np.int64),
            np.zeros(classes, dtype=np.int64),
        )

    def add(self, matrix: csr_matrix, log_probabilities: F64) -> None:
        """Add documents to the sums.

        Parameters
        ----------
        matrix : csr_matrix of float32, shape (documents, features)
            Not negative.
        log_probabilities : ndarray of float64, shape (documents, classes)
            Log-probabilities of the classes by the initial model.
        """
        check_values(matrix)
        values = np.floor(matrix.data.astype(np.float32) * np.float32(UNIT) + np.float32(0.5))
        values = values.astype(np.float64)
        probabilities = np.where(log_probabilities >= np.log(CUT), np.exp(log_probabilities), 0.0)
        probabilities = np.floor(np.minimum(probabilities, 1.0) * UNIT + 0.5)
        # Process so few rows at a time that no sum reaches EXACT, which keeps all sums exact.
        rows = max(1, int(EXACT / UNIT / values.max(initial=1.0)))
        for first in range(0, matrix.shape[0], rows):
            piece = slice(first, first + rows)
            units = csr_matrix((values, matrix.indices, matrix.indptr), matrix.shape)[piece]
            self.joint += (units.T @ probabilities[piece]).astype(np.int64)
        self.counts += np.bincount(matrix.indices, values, matrix.shape[1]).astype(np.int64)
        self.prior += probabilities.sum(axis=0).astype(np.int64)
        self.documents += matrix.shape[0]
        self.empty += int((np.diff(matrix.indptr) == 0).sum())
        self._check_size()

    def _check_size(self) -> None:
        if int(self.counts.max(initial=0)) > MAX_COUNT:
            raise UsageError(
                "the sums of the unlabeled documents' feature values overflow; scale the values "
                "down"
            )


def check_values(matrix: csr_matrix, what: str = "") -> None:
    """Raise an error if a feature value is negative or too large for exact sums.

    Parameters
    ----------
    matrix : csr_matrix
    what : str, optional
        What the rows are, for the message.

    Raises
    ------
    UsageError
        A value is out of range; the message names its row and column.
    """
    wrong = np.flatnonzero(~((matrix.data >= 0) & (matrix.data < LARGEST)))
    if len(wrong):
        row = int(np.searchsorted(matrix.indptr, wrong[0], side="right")) - 1
        value, place = matrix.data[wrong[0]], f"row {row}, column {matrix.indices[wrong[0]]}"
        raise UsageError(
            f"{what} {place} is {value:g}; ".lstrip() + f"use feature values from 0 to {LARGEST:g}"
        )


def sum_over(
    matrix: csr_matrix,
    log_probabilities: Iterable[F64],
    classes: int,
    reporter: Reporter = QUIET,
) -> Statistics:
    """Compute the statistics of all documents from log-probabilities that arrive in batches."""
    found, held, end = Statistics.zeros(matrix.shape[1], classes), list[F64](), 0
    for batch in log_probabilities:
        held.append(batch)
        end += len(batch)
        # Use large batches, because each addition has a fixed cost.
        if sum(one.size for one in held) >= PROBABILITIES or end == matrix.shape[0]:
            found.add(matrix[found.documents : end], np.concatenate(held))
            held.clear()
            reporter.advance(end)
    return found
