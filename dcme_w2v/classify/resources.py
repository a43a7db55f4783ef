"""Estimates the memory for training a classifier, and compares it with what is available."""

from collections.abc import Iterable, Sized
from typing import Any

from scipy.sparse import csr_matrix

from dcme_w2v.files.space import memory_limit, shortage
from dcme_w2v.numeric.lbfgs import HISTORY

from .label_tree import ROOT
from .options import TREES, ClassifyOptions

PAD = 16  # the number of columns in the weight table is padded to a multiple
PIECE = 16384  # documents scored at once for a gradient, as in csrc/classify/full_gradient.c


def resource_estimate(
    matrix: csr_matrix, labels: Iterable[Sized], classes: int, options: ClassifyOptions
) -> dict[str, Any]:
    """Return the required and available resources for training, in documents and bytes.

    Parameters
    ----------
    matrix : csr_matrix, shape (documents, features)
        The documents to train on.
    labels : iterable of sequences
        The labels of each document.
    classes : int
    options : ClassifyOptions
        Resolved.

    Returns
    -------
    dict
        With "refused", the error if there is not enough memory: better now than after hours.
    """
    features, count = matrix.shape[1], sum(map(len, labels))
    rows = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes + 16 * count
    width = -(-classes // PAD) * PAD
    table = 4 * (features + 1) * width
    if options.objective == "tree":
        memory = tree_bytes(features, rows, count, classes, TREES)
    elif (
        options.solver == "lbfgs"
    ):  # float64 vectors: points, gradients, direction, and correction pairs
        memory = table + 8 * (features + 1) * classes * (2 * HISTORY + 8)
        memory += 8 * matrix.nnz  # the documents, transposed
        memory += 4 * min(count, PIECE) * width  # scores
    else:
        memory = table * (2 if options.patience else 1)  # a second table for the best epoch
        if options.objective == "dcme":  # two columns per cluster
            columns = options.clusters if options.dcme_update == "robust" else 0
            memory += 8 * (features + 1) * -(-(columns or 0) // PAD) * PAD
    what = f"training {features:,} features and {classes:,} classes"
    remedy = "lower --features or --hashing, or give --objective tree for many classes"
    return {
        "documents": matrix.shape[0],
        "classes": classes,
        "features": features,
        "memory_bytes": rows + memory,
        "memory_available_bytes": memory_limit(),
        "refused": shortage(rows + memory, what, remedy),
    }


def tree_bytes(features: int, documents_bytes: int, labels: int, classes: int, trees: int) -> int:
    """Estimate the memory for training trees, besides the documents.

    A label of a document leaves about ten weights in a tree, and two rows of features (EURLEX57K).
    """
    weights = trees * (150 * labels + 64 * classes)
    root = 4 * features * min(ROOT, max(1, classes // 32))
    return documents_bytes + root + 1024 * (features + 2 * classes) + weights
