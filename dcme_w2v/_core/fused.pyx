"""Binding of csrc/fused: levels of numbers, and statistics of documents."""

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t

from dcme_w2v._core.status cimport check, dcme_error, dcme_status


cdef extern from "classify/classify.h" nogil:
    ctypedef struct dcme_sparse_rows:
        const int64_t *starts
        const int32_t *features
        const float *values
        int64_t count


cdef extern from "fused/fused.h" nogil:
    ctypedef struct dcme_statistics:
        int64_t features
        int64_t classes
        const int32_t *rows
        int64_t *joint
        int64_t *counts
        int64_t *prior

    dcme_status dcme_cluster_numbers(
        const double *numbers, const double *weights, int64_t n, int32_t count, int32_t pinned,
        int64_t *ends, double *cost, dcme_error *error
    )
    void dcme_bin_numbers(
        const double *numbers, const double *weights, int64_t n, double low, double scale,
        int64_t bins, double *sums, double *moments, double *squares
    )
    void dcme_assign_levels(
        const double *numbers, int64_t n, const double *borders, int32_t count, int8_t *levels
    )
    dcme_status dcme_add_statistics(
        dcme_statistics *statistics, const dcme_sparse_rows *documents, int64_t begin,
        int64_t count, const double *log_probabilities, double cut, int32_t threads,
        dcme_error *error
    )


LARGEST = 32768.0  # value of a feature; in units it is below 2^31


def cluster_numbers(const double[::1] numbers, const double[::1] weights, int32_t count,
                    bint pinned):
    """Return where the clusters of ascending numbers end, the pinned one's first, and the cost."""
    cdef dcme_error error
    cdef dcme_status status
    cdef int64_t n = numbers.shape[0]
    cdef int64_t[::1] ends = np.zeros(count + 1, dtype=np.int64)
    cdef double cost = 0
    if weights.shape[0] != n or count < 1:
        raise ValueError("numbers and weights do not fit together")
    if n:
        with nogil:
            status = dcme_cluster_numbers(&numbers[0], &weights[0], n, count, pinned, &ends[0],
                                          &cost, &error)
        check(status, &error)
    return np.asarray(ends), cost


def bin_numbers(const double[::1] numbers, const double[::1] weights, double low, double scale,
                int64_t bins):
    """Return the weights in each bin, and the sums of weight x number and weight x number^2."""
    cdef double[:, ::1] out = np.zeros((3, bins))
    if weights.shape[0] != numbers.shape[0] or bins < 1:
        raise ValueError("numbers and weights do not fit together")
    if numbers.shape[0]:
        with nogil:
            dcme_bin_numbers(&numbers[0], &weights[0], numbers.shape[0], low, scale, bins,
                             &out[0, 0], &out[1, 0], &out[2, 0])
    return np.asarray(out)


def assign_levels(const double[::1] numbers, const double[::1] borders):
    """Return for each number how many of the ascending borders it reaches, int8."""
    cdef int8_t[::1] levels = np.zeros(numbers.shape[0], dtype=np.int8)
    if borders.shape[0] > 127:
        raise ValueError("too many borders")
    if numbers.shape[0] and borders.shape[0]:
        with nogil:
            dcme_assign_levels(&numbers[0], numbers.shape[0], &borders[0],
                               <int32_t>borders.shape[0], &levels[0])
    return np.asarray(levels)


def add_statistics(const int64_t[::1] starts, const int32_t[::1] features,
                   const float[::1] values, int64_t width, log_probabilities, double cut,
                   joint, int64_t[::1] counts, int64_t[::1] prior, rows, int32_t threads):
    """Add documents (CSR, features ascending in each row) to sums; see csrc/fused/fused.h.

    `joint` is an ndarray of int64, shape (rows, classes), or None: then only `counts` are added to.
    """
    cdef dcme_error error
    cdef dcme_status status
    cdef dcme_statistics statistics
    cdef dcme_sparse_rows documents
    cdef int64_t n = starts.shape[0] - 1, classes = prior.shape[0], i
    cdef const double[:, ::1] log_p
    cdef int64_t[:, ::1] sums
    cdef const int32_t[::1] row_of
    _check_rows(starts, features, values, width)
    statistics.features = width
    statistics.classes = classes
    statistics.rows = NULL
    statistics.joint = NULL
    statistics.counts = &counts[0] if counts.shape[0] else NULL
    statistics.prior = &prior[0] if classes else NULL
    if rows is None:
        if counts.shape[0] != width:
            raise ValueError("counts and features do not fit together")
    else:
        row_of = rows
        if row_of.shape[0] != width:
            raise ValueError("rows and features do not fit together")
        for i in range(width):
            if row_of[i] >= counts.shape[0]:
                raise ValueError("a row is out of range")
        statistics.rows = &row_of[0] if width else NULL
    documents.starts = &starts[0]
    documents.features = &features[0] if features.shape[0] else NULL
    documents.values = &values[0] if values.shape[0] else NULL
    documents.count = n
    cdef const double *given = NULL
    if joint is not None:
        sums, log_p = joint, log_probabilities
        if sums.shape[0] != counts.shape[0] or sums.shape[1] != classes:
            raise ValueError("sums do not fit together")
        if log_p.shape[0] != n or log_p.shape[1] != classes:
            raise ValueError("documents and probabilities do not fit together")
        statistics.joint = &sums[0, 0] if sums.shape[0] and classes else NULL
        given = &log_p[0, 0] if n and classes else NULL
    if n == 0 or width == 0:
        return
    with nogil:
        status = dcme_add_statistics(&statistics, &documents, 0, n, given, cut, threads, &error)
    check(status, &error)


cdef _check_rows(const int64_t[::1] starts, const int32_t[::1] features, const float[::1] values,
                 int64_t width):
    cdef int64_t i, row
    if starts.shape[0] < 1 or starts[0] != 0 or starts[starts.shape[0] - 1] != values.shape[0]:
        raise ValueError("starts and values do not fit together")
    if features.shape[0] != values.shape[0]:
        raise ValueError("features and values do not fit together")
    for row in range(starts.shape[0] - 1):
        if starts[row] > starts[row + 1]:
            raise ValueError("starts do not ascend")
        for i in range(starts[row], starts[row + 1]):
            if features[i] < 0 or features[i] >= width:
                raise ValueError("a feature is out of range")
            if i > starts[row] and features[i] <= features[i - 1]:
                raise ValueError("features of a row do not ascend")
            if not (0 <= values[i] < 32768):
                raise ValueError("a value is negative or too large")
