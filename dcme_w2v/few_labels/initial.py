"""Train maximum-entropy models on labels or predictions, and compute scores."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v._core.models import SparseRows
from dcme_w2v.classify.calibration import NEVER
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.solver import solve
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.numeric.arrays import F64, I64

L2 = 1e-5  # L2 penalty for models that are also trained on unlabeled documents
ITERATIONS, TOLERANCE = 30, 1e-4
# Self-training uses the most confident third of the documents, then two thirds, then all.
SELF_TRAINING_STEPS = 3


class ScoredRows:
    """Document rows, stored in two formats: for scipy and for the C core.

    Parameters
    ----------
    matrix : csr_matrix of float32, shape (documents, features)
    threads : int
        Number of threads for computing scores.
    """

    def __init__(self, matrix: csr_matrix, threads: int) -> None:
        self.matrix, self.threads = matrix, threads
        self._core = SparseRows(matrix)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def scores(self, weights: Weights) -> Iterator[F64]:
        """Yield the scores of all classes for one batch of rows at a time."""
        return weights.batches(self._core, self.threads)

    def all_scores(self, weights: Weights) -> F64:
        """Return each row's score for every class, shape (rows, classes)."""
        return np.concatenate(list(self.scores(weights)))

    def log_probabilities(self, weights: Weights) -> Iterator[F64]:
        """Yield the log-probabilities of all classes for one batch of rows at a time."""
        return map(log_softmax, self.scores(weights))

    def decisions(self, weights: Weights) -> tuple[I64, F64]:
        """Return each row's most probable class, and the class's log-probability."""
        best, confidence = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for piece in self.log_probabilities(weights):
            best.append(piece.argmax(axis=1))
            confidence.append(piece.max(axis=1))
        return np.concatenate(best), np.concatenate(confidence)


def train(matrix: csr_matrix, labels: I64, classes: int, l2: float, threads: int) -> Weights:
    """Train a maximum-entropy model that never predicts classes without documents."""
    there, numbers = np.unique(labels, return_inverse=True)
    weights = Weights(matrix.shape[1], classes, ClassifyOptions().bias)
    weights.offset[:] = NEVER
    weights.offset[there] = 0
    if len(there) < 2:
        return weights
    options = ClassifyOptions(
        solver="lbfgs", l2=l2, epochs=ITERATIONS, tolerance=TOLERANCE, threads=threads
    )
    options = resolved(options, len(there))
    found = solve(matrix, np.arange(len(labels)), numbers.astype(np.int32), len(there), options)
    table = np.zeros((matrix.shape[1] + 1, classes), dtype=np.float32)
    table[:, there] = found.get()
    weights.set(table)
    return weights
