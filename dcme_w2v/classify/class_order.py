"""An order of the classes in which similar classes are adjacent, for the clusters of DCME.

Classes are represented by the mean of some of their documents in a random projection, and split
recursively along the direction of largest variance.
"""

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.numeric.arrays import F64, I32, I64

DOCUMENTS_A_CLASS = 16
DIMENSIONS = 64
LINE = 16  # classes whose weights share a cache line: csrc/kernels/kernels.h, DCME_PAD


def similar_neighbours(
    matrix: csr_matrix,
    documents: I64,
    labels: I32,
    classes: int,
    seed: int,
) -> I64:
    """Return all classes in an order in which similar classes are adjacent.

    Parameters
    ----------
    matrix : csr_matrix, shape (documents, features)
        The documents.
    documents, labels : ndarray, shape (instances,)
        Pairs of a document and its label.
    """
    if classes <= LINE:
        return np.arange(classes)
    by_class = np.argsort(labels, kind="stable")
    ordered = labels[by_class]
    place = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    some = by_class[place < DOCUMENTS_A_CLASS]
    random = np.random.default_rng(seed)
    signs = random.integers(0, 2, (matrix.shape[1], DIMENSIONS), dtype=np.int8)
    projected = matrix[documents[some]] @ (signs * np.float32(2) - np.float32(1))
    points = np.zeros((classes, DIMENSIONS), dtype=np.float64)
    np.add.at(points, labels[some], projected)
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    points /= np.where(lengths > 0, lengths, 1)
    return _split(points, np.arange(classes))


def _split(points: F64, members: I64) -> I64:
    if len(members) <= LINE:
        return members
    centred = points[members] - points[members].mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    ordered = members[np.argsort(centred @ directions[:, -1], kind="stable")]
    half = max(LINE, len(members) // 2 // LINE * LINE)  # whole cache lines on the left
    left, right = _split(points, ordered[:half]), _split(points, ordered[half:])
    return np.concatenate([left, right])
