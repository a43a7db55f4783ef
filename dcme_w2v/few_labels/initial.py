"""Initial models: maximum entropy on few documents, L2 by cross-validation, and self-training.

Called by `dcme_w2v.few_labels.fit`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_matrix

from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.solver import solve
from dcme_w2v.classify.trainer import CHUNK, Weights, core_documents

GRID = (1e-4, 1e-5, 1e-6)
L2_OF_MANY = 1e-5  # where the unlabelled documents are learnt, too
ITERATIONS, TOLERANCE = 30, 1e-4
GOES = 3  # of self-training: the surest third of the documents, two thirds, all
NEVER = -1e9  # score of a class without documents


class Rows:
    """Documents as scipy and as the core have them.

    Parameters
    ----------
    matrix : csr_matrix of float32
    threads : int
        That score them.
    """

    def __init__(self, matrix: csr_matrix, threads: int) -> None:
        self.matrix, self.threads = matrix, threads
        self._core = core_documents(matrix)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def scores(self, weights: Weights) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of some documents at a time."""
        for begin in range(0, len(self), CHUNK):
            end = min(begin + CHUNK, len(self))
            yield weights.scores(self._core, begin, end, self.threads)

    def log_probabilities(self, weights: Weights) -> Iterator[NDArray[np.float64]]:
        """Yield the log-probabilities of some documents at a time."""
        return map(log_softmax, self.scores(weights))

    def decisions(self, weights: Weights) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the most probable class of each document, and its log-probability."""
        best, sure = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for piece in self.log_probabilities(weights):
            best.append(piece.argmax(axis=1))
            sure.append(piece.max(axis=1))
        return np.concatenate(best), np.concatenate(sure)


def train(
    matrix: csr_matrix, labels: NDArray[np.int64], classes: int, l2: float, threads: int
) -> Weights:
    """Return a maximum-entropy model; a class without documents is never predicted.

    Only columns that occur are learnt: the others' weights stay 0.
    """
    there, numbers = np.unique(labels, return_inverse=True)
    columns = np.unique(matrix.indices)
    weights = Weights(matrix.shape[1], classes, ClassifyOptions().bias)
    weights.offset[:] = NEVER
    weights.offset[there] = 0
    if len(there) < 2:
        return weights
    place = np.zeros(matrix.shape[1], dtype=np.int32)
    place[columns] = np.arange(len(columns), dtype=np.int32)
    cut = csr_matrix(
        (matrix.data, place[matrix.indices], matrix.indptr), shape=(len(labels), len(columns))
    )
    options = ClassifyOptions(
        solver="lbfgs", l2=l2, epochs=ITERATIONS, tolerance=TOLERANCE, threads=threads
    )
    options = resolved(options, len(there))
    found = solve(cut, np.arange(len(labels)), numbers.astype(np.int32), len(there), options).get()
    table = np.zeros((matrix.shape[1] + 1, classes), dtype=np.float32)
    table[np.ix_(np.append(columns, matrix.shape[1]), there)] = found
    weights.set(table)
    return weights


def folds_of(
    labels: NDArray[np.int64], folds: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Return a fold for each document, documents of a class spread evenly over them."""
    found = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        own = random.permutation(np.flatnonzero(labels == label))
        found[own] = (np.arange(len(own)) + random.integers(folds)) % folds
    return found


def chosen_l2(
    matrix: csr_matrix,
    labels: NDArray[np.int64],
    classes: int,
    folds: NDArray[np.int64],
    threads: int,
) -> float:
    """Return the L2 regularisation with the best accuracy on the folds."""
    best, right = GRID[0], -1
    for l2 in GRID:
        hits = 0
        for fold in np.unique(folds):
            out = folds == fold
            if out.all():
                continue
            weights = train(csr_matrix(matrix[~out]), labels[~out], classes, l2, threads)
            decided, _ = Rows(csr_matrix(matrix[out]), threads).decisions(weights)
            hits += int((decided == labels[out]).sum())
        if hits > right:
            best, right = l2, hits
    return best


def self_train(
    matrix: csr_matrix,
    labels: NDArray[np.int64],
    unlabelled: Rows,
    weights: Weights,
) -> Weights:
    """Return a model that has learnt from its own decisions about the unlabelled documents, too."""
    classes = weights.classes
    for go in range(1, GOES + 1):
        decided, sure = unlabelled.decisions(weights)
        count = len(unlabelled) * go // GOES
        taken = np.sort(np.argsort(-sure, kind="stable")[:count])
        rows = csr_matrix(sparse.vstack([matrix, unlabelled.matrix[taken]], format="csr"))
        numbers = np.concatenate([labels, decided[taken]])
        weights = train(rows, numbers, classes, L2_OF_MANY, unlabelled.threads)
    return weights
