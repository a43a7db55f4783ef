"""The most probable classes of documents, exactly, with few passes over all scores."""

from collections.abc import Iterator

import numpy as np

from dcme_w2v._core import classify as core
from dcme_w2v.numeric.arrays import F32, F64, I32
from dcme_w2v.numeric.core import kernels_named
from dcme_w2v.numeric.parallel import ordered_map

from .metrics import check_scores, log_softmax
from .trainer import Weights, documents_at_once

MIN_DOCUMENTS = 64  # of a batch: they share rows of weights in the cache

Top = tuple[I32, F64]


def most_probable(
    weights: Weights, documents: core.Documents, count: int, threads: int
) -> Iterator[Top]:
    """Yield the most probable classes and their log-probabilities for batches of documents.

    Parameters
    ----------
    weights : Weights
    documents : Documents
        Rows as the core reads them.
    count : int
        Number of classes for each document, at most all.
    threads : int

    Yields
    ------
    numbers : ndarray of int32, shape (documents, count)
        Classes, the most probable first, of equal scores the lowest number.
    log_p : ndarray of float64, shape (documents, count)

    Raises
    ------
    DivergedError
        A score is NaN or infinite.
    """

    def batch(rows: slice) -> Top:
        begin, end = rows.start, rows.stop
        if weights.offset.any():
            return sorted_top(log_softmax(weights.scores(documents, begin, end, 1)), count)
        return _selected(weights.raw_scores(documents, begin, end, 1), weights.classes, count)

    return ordered_map(batch, batches_of(len(documents), weights.classes, threads), threads)


def batches_of(documents: int, classes: int, threads: int) -> Iterator[slice]:
    """Yield slices that cover the documents, of a size that suits the scores and the threads."""
    step = max(MIN_DOCUMENTS, min(documents_at_once(classes), -(-documents // threads)))
    for begin in range(0, documents, step):
        yield slice(begin, min(begin + step, documents))


def sorted_top(log_p: F64, count: int) -> Top:
    """Return the classes of the highest log-probabilities, and these; of equal ones the first."""
    best = np.argsort(-log_p, axis=1, kind="stable")[:, :count].astype(np.int32)
    return best, np.take_along_axis(log_p, best, axis=1)


def _selected(scores: F32, classes: int, count: int) -> Top:
    """Return what `sorted_top` does, from scores in single precision, which are not sorted."""
    scores = np.ascontiguousarray(scores)
    best = np.empty((len(scores), count), dtype=np.int32)
    log_p = np.empty((len(scores), count))
    core.most_probable(scores, classes, best, log_p, np.empty(classes), kernels_named())
    if np.isnan(log_p[:, 0]).any():
        check_scores(scores[:, :classes])
    return best, log_p
