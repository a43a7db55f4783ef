"""What memory training a classifier takes, and whether it is there."""

from collections.abc import Iterable, Sized
from typing import Any

from scipy.sparse import csr_matrix

from dcme_w2v.files.space import memory_limit, shortage
from dcme_w2v.numeric.lbfgs import HISTORY

from .label_tree import ROOT
from .options import TREES, ClassifyOptions

PAD = 16  # columns of the table of weights are padded to a multiple
PIECE = 16384  # documents whose scores a gradient holds at once; csrc/classify/full_gradient.c


def resource_estimate(
    matrix: csr_matrix, labels: Iterable[Sized], classes: int, options: ClassifyOptions
) -> dict[str, Any]:
    """Return what training takes and what there is, in documents and bytes.

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
    elif options.solver == "lbfgs":  # in float64: points, gradients, direction, and pairs
        memory = table + 8 * (features + 1) * classes * (2 * HISTORY + 8)
        memory += 8 * matrix.nnz  # the documents by feature
        memory += 4 * min(count, PIECE) * width  # scores
    else:
        memory = table * (2 if options.patience else 1)  # the best epoch, too
        if options.objective == "dcme":  # of each cluster, two columns
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
    """Return about how much memory training takes beside the documents.

    A label of a document leaves about ten weights in a tree, and two rows of features (EURLEX57K).
    """
    weights = trees * (150 * labels + 64 * classes)
    root = 4 * features * min(ROOT, max(1, classes // 32))
    return documents_bytes + root + 1024 * (features + 2 * classes) + weights
