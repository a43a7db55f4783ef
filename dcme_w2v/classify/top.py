"""The most probable classes of documents, exactly, with few passes over all scores."""

import functools
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v._core import classify as core
from dcme_w2v.numeric.arrays import F32, F64, I32, U8
from dcme_w2v.numeric.core import kernels_named
from dcme_w2v.numeric.parallel import ordered_map

from .metrics import Calibration, calibrated, check_scores
from .trainer import Weights, core_documents, documents_at_once

MIN_DOCUMENTS = 64  # of a batch: they share rows of weights in the cache

Top = tuple[I32, F64]


def most_probable(
    weights: Weights,
    documents: core.Documents,
    count: int,
    threads: int,
    by: Calibration | None = None,
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
    by : tuple of two floats, optional
        See `dcme_w2v.classify.metrics.calibrated`; documents have one label.

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
            scores = weights.scores(documents, begin, end, 1)
            return sorted_top(calibrated(scores, by, one_label=True), count)
        raw = weights.raw_scores(documents, begin, end, 1)
        best, log_p = _selected(raw, weights.classes, count)
        if by is not None:
            scores = raw[:, : weights.classes].astype(np.float64)
            log_p = np.take_along_axis(calibrated(scores, by, one_label=True), best, axis=1)
        return best, log_p

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


MIN_CLASSES = 2048
MAX_SHARE = 1 / 64  # of the classes that are wanted; with more, few bounds are below the best
MIN_USES = 8  # of a feature on average; to code its row takes as long as some documents' scores
ROWS_AT_ONCE = 64  # of weights to code


class TopKSearch:
    """Searches the most probable classes of documents by bounds of the scores, or by all scores.

    Parameters
    ----------
    weights : Weights
        For a linear model of one table there are bounds. Their codes take an eighth of its memory,
        for features that occur.
    """

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        is_linear = weights.tables.keys() == {"weights"}  # no factors, no vote
        self._has_bounds = is_linear and not weights.offset.any()
        self._is_coded = np.zeros(weights.features + 1, dtype=np.uint8)
        self._codes: core.ClassCodes | None = None
        self._uses = 0  # of features in all documents so far
        self.scored = 0  # scores that were computed by `_by_bounds`

    def top_k(self, matrix: csr_matrix, count: int, threads: int) -> I32:
        """Return the numbers of the most probable classes, shape (documents, count).

        The most probable comes first; of equal scores, the lowest number.

        Raises
        ------
        DivergedError
            A score that was computed is NaN or infinite.
        """
        if self._may_pay(count):
            self._uses += matrix.nnz
            new = self._new_features(matrix)
            if self._uses >= MIN_USES * len(new) and self._code(new, matrix, threads):
                return self._by_bounds(matrix, count, threads)
        found = most_probable(self._weights, core_documents(matrix), count, threads)
        none = np.empty((0, count), dtype=np.int32)
        return np.concatenate([none, *(best for best, _ in found)])

    def _may_pay(self, count: int) -> bool:
        classes = self._weights.classes
        return self._has_bounds and classes >= MIN_CLASSES and count <= classes * MAX_SHARE

    def _new_features(self, matrix: csr_matrix) -> I32:
        """Return the features of documents, and the bias, that have no codes yet."""
        needed = np.zeros(len(self._is_coded), dtype=bool)
        needed[matrix.indices[: matrix.nnz]] = needed[-1] = True
        return np.flatnonzero(needed & (self._is_coded == 0)).astype(np.int32)

    def _code(self, features: I32, matrix: csr_matrix, threads: int) -> bool:
        """Code the weights of features of these documents; return whether all are finite."""
        if self._codes is None:
            try:
                self._codes = new_codes(self._weights, self._is_coded)
            except MemoryError:
                self._has_bounds = False
                return False
        is_signed = bool((matrix.data < 0).any())
        parts = (features[i : i + ROWS_AT_ONCE] for i in range(0, len(features), ROWS_AT_ONCE))
        add = functools.partial(self._codes.add, is_signed=is_signed)
        self._has_bounds = all(list(ordered_map(add, parts, threads)))
        self._is_coded[features] = self._has_bounds
        return self._has_bounds

    def _by_bounds(self, matrix: csr_matrix, count: int, threads: int) -> I32:
        documents, codes = core_documents(matrix), self._codes
        assert codes is not None
        best = np.empty((matrix.shape[0], count), dtype=np.int32)

        def batch(rows: slice) -> int:
            return codes.best(documents, rows.start, rows.stop, best[rows])

        batches = batches_of(matrix.shape[0], self._weights.classes, threads)
        self.scored += sum(ordered_map(batch, batches, threads))
        return best


def new_codes(weights: Weights, is_coded: U8) -> core.ClassCodes:
    """Return codes of which no row is filled; pages of memory are taken when rows are."""
    rows, bytes_a_row = len(weights.table), core.code_stride(weights.classes)
    return core.ClassCodes(
        weights.linear,
        weights.order.astype(np.int32),
        np.empty((rows, bytes_a_row), dtype=np.uint8),
        np.empty((rows, core.CODE_EDGES), dtype=np.float32),
        is_coded,
    )
