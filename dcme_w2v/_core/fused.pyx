"""Binding of csrc/fused: levels of numbers, and statistics of documents."""

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t

from dcme_w2v._core.kernels cimport dcme_kernels, kernels_of
from dcme_w2v._core.rows cimport check_starts, dcme_sparse_rows
from dcme_w2v._core.status cimport check, dcme_error, dcme_status



cdef extern from "fused/fused.h" nogil:
    ctypedef struct dcme_statistics:
        int64_t features, classes
        int64_t *joint
        int64_t *counts
        int64_t *prior
        const dcme_kernels *kernels

    dcme_status dcme_cluster_numbers(
        const double *numbers, const double *weights, int64_t n, int32_t count, int64_t *ends,
        double *cost, dcme_error *error
    )
    void dcme_bin_numbers(
        const double *numbers, const double *weights, int64_t n, double low, double scale,
        int64_t bins, double *sums, double *moments, double *squares
    )
    double dcme_assign_levels(
        const double *numbers, const double *weights, int64_t n, const double *borders,
        int32_t count, const int8_t *named, const double *values, int8_t *levels
    )
    int64_t dcme_check_statistics(
        const dcme_sparse_rows *documents, int64_t features, float largest, int32_t threads
    )
    dcme_status dcme_add_statistics(
        dcme_statistics *statistics, const dcme_sparse_rows *documents,
        const double *log_probabilities, double cut, int32_t threads, dcme_error *error
    )
    ctypedef struct dcme_level_rows:
        int64_t rows, classes, entries
        int64_t *starts
        int32_t *columns
        int8_t *levels
        const uint8_t *kinds

    dcme_status dcme_code_levels(
        int decoding, uint8_t *bytes, int64_t room, int64_t *size, const dcme_level_rows *levels,
        dcme_error *error
    )
    dcme_status dcme_code_numbers(
        int decoding, uint8_t *bytes, int64_t room, int64_t *size, uint32_t *numbers, int64_t n,
        int32_t bits, dcme_error *error
    )
    dcme_status dcme_code_words(
        int decoding, uint8_t *bytes, int64_t room, int64_t *size, uint8_t *text,
        int64_t *offsets, int64_t n, int64_t length, dcme_error *error
    )


cdef float LARGEST_VALUE = 32768  # of a feature; in units it is below 2^31
LARGEST = LARGEST_VALUE


def cluster_numbers(const double[::1] numbers, const double[::1] weights, int32_t count):
    """Return the ends of the clusters of ascending numbers, first the cluster at 0, and the cost."""
    cdef dcme_error error
    cdef int64_t n = numbers.shape[0]
    cdef int64_t[::1] ends = np.zeros(count + 1, dtype=np.int64)
    cdef double cost = 0
    if weights.shape[0] != n or count < 1:
        raise ValueError("numbers and weights do not fit together")
    if n:
        with nogil:
            check(dcme_cluster_numbers(
                &numbers[0], &weights[0], n, count, &ends[0], &cost, &error), &error)
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


def assign_levels(const double[::1] numbers, const double[::1] weights,
                  const double[::1] borders, const int8_t[::1] named, const double[::1] values):
    """Return named[how many of the ascending borders it reaches] of each number, and the loss."""
    cdef int8_t[::1] levels = np.empty(numbers.shape[0], dtype=np.int8)
    cdef int32_t count = <int32_t>borders.shape[0]
    cdef double loss = 0
    if borders.shape[0] > 127:
        raise ValueError("too many borders")
    if named.shape[0] != count + 1 or values.shape[0] != count + 1:
        raise ValueError("borders and values do not fit together")
    if weights.shape[0] != numbers.shape[0]:
        raise ValueError("numbers and weights do not fit together")
    if numbers.shape[0]:
        with nogil:
            loss = dcme_assign_levels(
                &numbers[0], &weights[0], numbers.shape[0], &borders[0] if count else NULL, count,
                &named[0], &values[0], &levels[0])
    return np.asarray(levels), loss


def add_statistics(const int64_t[::1] starts, const int32_t[::1] features,
                   const float[::1] values, const double[:, ::1] log_probabilities, double cut,
                   int64_t[:, ::1] joint, int64_t[::1] counts, int64_t[::1] prior,
                   int32_t threads, kernels=None):
    """Add documents (CSR, features ascending in each row) to sums; see csrc/fused/fused.h."""
    cdef dcme_error error
    cdef dcme_statistics statistics
    cdef dcme_sparse_rows documents
    cdef int64_t n = starts.shape[0] - 1, width = counts.shape[0], classes = prior.shape[0], found
    check_starts(starts, values.shape[0])
    if features.shape[0] != values.shape[0]:
        raise ValueError("features and values do not fit together")
    if joint.shape[0] != width or joint.shape[1] != classes:
        raise ValueError("sums do not fit together")
    if log_probabilities.shape[0] != n or log_probabilities.shape[1] != classes:
        raise ValueError("documents and probabilities do not fit together")
    documents.starts, documents.count = &starts[0], n
    documents.features, documents.values = &features[0], &values[0]
    with nogil:
        found = dcme_check_statistics(&documents, width, LARGEST_VALUE, threads)
    if found == -2:
        raise ValueError("a value is negative or too large")
    if found >= 0:
        raise ValueError(f"features of row {found} do not ascend below {width}")
    if n == 0 or width == 0 or classes == 0:
        return
    statistics.features, statistics.classes = width, classes
    statistics.kernels = kernels_of(kernels)
    statistics.joint, statistics.counts, statistics.prior = &joint[0, 0], &counts[0], &prior[0]
    with nogil:
        check(dcme_add_statistics(
            &statistics, &documents, &log_probabilities[0, 0], cut, threads, &error), &error)


def pack_levels(int64_t[::1] starts, int32_t[::1] columns, int8_t[::1] levels,
                const uint8_t[::1] kinds, int64_t classes):
    """Return signed levels (CSR, sorted, none 0) in few bytes; `kinds` are contexts of the rows."""
    cdef dcme_level_rows rows
    cdef int64_t i
    if starts.shape[0] != kinds.shape[0] + 1 or columns.shape[0] != levels.shape[0]:
        raise ValueError("levels do not fit together")
    check_starts(starts, levels.shape[0])
    for i in range(levels.shape[0]):
        if not (0 <= columns[i] < classes) or levels[i] == 0 or levels[i] == -128:
            raise ValueError("a level is out of range")
    rows.rows, rows.classes, rows.entries = kinds.shape[0], classes, levels.shape[0]
    rows.starts = &starts[0]
    rows.columns = &columns[0]
    rows.levels = &levels[0]
    rows.kinds = &kinds[0]
    return _coded_levels(rows, np.zeros(_coded_levels(rows, np.zeros(0, np.uint8)), np.uint8), True)


cdef _coded_levels(dcme_level_rows rows, uint8_t[::1] out, bint whole=False):
    cdef dcme_error error
    cdef int64_t size = 0
    cdef uint8_t *data = &out[0]
    with nogil:
        check(dcme_code_levels(0, data, out.shape[0], &size, &rows, &error), &error)
    return np.asarray(out) if whole else size


def unpack_levels(const uint8_t[::1] data, const uint8_t[::1] kinds, int64_t classes,
                  int64_t entries):
    """Return what `pack_levels` was given: starts, columns and levels."""
    cdef dcme_error error
    cdef int64_t size = 0
    cdef dcme_level_rows rows
    if entries < 0 or classes < 1 or entries > kinds.shape[0] * classes:
        raise ValueError("the coded levels are damaged")
    cdef int64_t[::1] starts = np.zeros(kinds.shape[0] + 1, dtype=np.int64)
    cdef int32_t[::1] columns = np.zeros(entries + 1, dtype=np.int32)
    cdef int8_t[::1] levels = np.zeros(entries + 1, dtype=np.int8)
    rows.rows, rows.classes, rows.entries = kinds.shape[0], classes, entries
    rows.starts, rows.columns, rows.levels = &starts[0], &columns[0], &levels[0]
    rows.kinds = &kinds[0]
    cdef uint8_t *given = <uint8_t *>&data[0]
    with nogil:
        check(dcme_code_levels(1, given, data.shape[0], &size, &rows, &error), &error)
    return np.asarray(starts), np.asarray(columns)[:entries], np.asarray(levels)[:entries]


def pack_numbers(uint32_t[::1] numbers, int32_t bits):
    """Return numbers in few bytes: each below 2^bits of at most 8, or any where bits is 0."""
    cdef dcme_error error
    cdef int64_t size = 0, i
    cdef uint32_t *given = &numbers[0]
    if not 0 <= bits <= 8:
        raise ValueError("numbers have up to 8 bits")
    for i in range(numbers.shape[0] if bits else 0):
        if numbers[i] >> bits:
            raise ValueError("a number is out of range")
    dcme_code_numbers(0, NULL, 0, &size, given, numbers.shape[0], bits, &error)
    cdef uint8_t[::1] out = np.zeros(size, dtype=np.uint8)
    check(dcme_code_numbers(0, &out[0], size, &size, given, numbers.shape[0], bits, &error), &error)
    return np.asarray(out)


def unpack_numbers(const uint8_t[::1] data, int64_t count, int32_t bits):
    """Return what `pack_numbers` was given."""
    cdef dcme_error error
    cdef int64_t size = 0
    cdef uint32_t[::1] numbers = np.zeros(count + 1, dtype=np.uint32)
    cdef uint8_t *given = <uint8_t *>&data[0]
    check(dcme_code_numbers(1, given, data.shape[0], &size, &numbers[0], count, bits, &error),
          &error)
    return np.asarray(numbers)[:count]


def pack_words(const uint8_t[::1] text, const int64_t[::1] offsets):
    """Return sorted words without NUL in few bytes."""
    cdef dcme_error error
    cdef int64_t size = 0, count = offsets.shape[0] - 1
    check_starts(offsets, text.shape[0])
    cdef uint8_t *given = <uint8_t *>&text[0]
    cdef int64_t *places = <int64_t *>&offsets[0]
    check(dcme_code_words(0, NULL, 0, &size, given, places, count, text.shape[0], &error), &error)
    cdef uint8_t[::1] out = np.zeros(size, dtype=np.uint8)
    check(dcme_code_words(0, &out[0], size, &size, given, places, count, text.shape[0], &error),
          &error)
    return np.asarray(out)


def unpack_words(const uint8_t[::1] data, int64_t count, int64_t length):
    """Return what `pack_words` was given: the text, of `length` bytes, and the offsets."""
    cdef dcme_error error
    cdef int64_t size = 0
    cdef uint8_t[::1] text = np.zeros(length + 1, dtype=np.uint8)
    cdef int64_t[::1] offsets = np.zeros(count + 1, dtype=np.int64)
    cdef uint8_t *given = <uint8_t *>&data[0]
    with nogil:
        check(dcme_code_words(
            1, given, data.shape[0], &size, &text[0], &offsets[0], count, length, &error), &error)
    return np.asarray(text)[:length], np.asarray(offsets)
