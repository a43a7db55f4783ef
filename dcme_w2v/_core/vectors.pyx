# cython: language_level=3
"""Rows of word vectors to bytes and back: what words/vectors.py, reading.py and check.py call.

Each function works on one block of memory and releases the GIL, so that blocks can be handled by
several threads at once. `faults` is an int64 array of shape (FAULT_KINDS, 3): how many rows have a
kind of fault, the first such row, and where it starts in the block.
"""

import secrets

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint64_t

from dcme_w2v._core.status cimport check, dcme_error, dcme_status


cdef extern from "stdbool.h" nogil:
    ctypedef bint c_bool "bool"


cdef extern from "vectors/vectors.h" nogil:
    int DCME_FAULTS
    int DCME_NUMBER_BYTES

    ctypedef struct dcme_fault:
        pass

    ctypedef struct dcme_block:
        const char *bytes
        int64_t size
        int64_t dim

    ctypedef struct dcme_rows:
        float *matrix
        int64_t step
        c_bool skips
        char *text
        int64_t *offsets
        int64_t *counts
        dcme_fault *faults
        int64_t count

    int64_t dcme_write_rows(
        c_bool binary, char *out, const float *matrix, int64_t dim, const char *text,
        const int64_t *offsets, int64_t first, int64_t last
    )
    int64_t dcme_cut_text(const dcme_block *block, int64_t limit, c_bool final, int64_t *end)
    int64_t dcme_cut_binary(const dcme_block *block, int64_t limit, int64_t *end)
    void dcme_read_text(const dcme_block *block, int64_t limit, dcme_rows *rows)
    void dcme_read_binary(const dcme_block *block, int64_t limit, dcme_rows *rows)
    void dcme_read_counts(const dcme_block *block, int64_t limit, dcme_rows *rows)
    void dcme_check_words(const char *text, const int64_t *offsets, int64_t count,
                          dcme_fault *faults)
    dcme_status dcme_find_duplicates(const char *text, const int64_t *offsets, int64_t count,
                                     uint64_t seed, dcme_fault *faults, dcme_error *error)


FAULT_KINDS = DCME_FAULTS


def write_rows(
    bint binary,
    const float[:, ::1] matrix,
    const uint8_t[::1] text,
    const int64_t[::1] offsets,
    int64_t first,
):
    """Return the bytes of rows first .. first + len(matrix) - 1, whose numbers `matrix` holds."""
    cdef int64_t last = first + matrix.shape[0], dim = matrix.shape[1], size
    cdef int64_t number_bytes = sizeof(float) if binary else DCME_NUMBER_BYTES
    room = offsets[last] - offsets[first] + matrix.shape[0] * (dim * number_bytes + 2)
    result = np.empty(room, dtype=np.uint8)
    cdef uint8_t[::1] out = result
    with nogil:
        size = dcme_write_rows(binary, <char *>&out[0], &matrix[0, 0], dim, <const char *>&text[0],
                               &offsets[0], first, last)
    return result[:size]


def cut_rows(bint binary, const uint8_t[::1] data, int64_t dim, int64_t limit, bint final):
    """Return how many whole rows (at most `limit`) `data` starts with, and their bytes."""
    cdef dcme_block block = dcme_block(<const char *>&data[0], data.shape[0], dim)
    cdef int64_t end = 0, count
    with nogil:
        if binary:
            count = dcme_cut_binary(&block, limit, &end)
        else:
            count = dcme_cut_text(&block, limit, final, &end)
    return count, end


def read_rows(
    bint binary,
    const uint8_t[::1] data,
    int64_t dim,
    int64_t count,
    matrix,
    int64_t[:, ::1] faults,
    bint skip,
):
    """Read the `count` rows of `data`: return the words' bytes and their offsets.

    The numbers go to `matrix`, as many rows of it as there can be. Faulty rows are left out with
    `skip`, otherwise reading stops at the first. If `matrix` is None, all rows are checked, and
    faulty ones leave empty words.
    """
    cdef dcme_block block = dcme_block(<const char *>&data[0], data.shape[0], dim)
    text = np.empty(data.shape[0], dtype=np.uint8)
    offsets = np.empty(count + 1, dtype=np.int64)
    cdef float[:, ::1] matrix_view = np.empty((1, dim), np.float32) if matrix is None else matrix
    cdef uint8_t[::1] text_view = text
    cdef int64_t[::1] offsets_view = offsets
    cdef dcme_rows rows = dcme_rows(
        &matrix_view[0, 0], 0 if matrix is None else dim, skip, <char *>&text_view[0],
        &offsets_view[0], NULL, <dcme_fault *>&faults[0, 0], 0,
    )
    with nogil:
        if binary:
            dcme_read_binary(&block, count, &rows)
        else:
            dcme_read_text(&block, count, &rows)
    return text[: offsets[rows.count]].copy(), offsets[: rows.count + 1]


def read_counts(const uint8_t[::1] data, int64_t limit, int64_t[:, ::1] faults):
    """Read lines of "word" or "word count" as the words' bytes, their offsets and their counts.

    A missing count is -1.
    """
    cdef dcme_block block = dcme_block(<const char *>&data[0], data.shape[0], 1)
    cdef int64_t end = 0, count
    with nogil:
        count = dcme_cut_text(&block, limit, True, &end)
    text = np.empty(data.shape[0], dtype=np.uint8)
    offsets, counts = np.empty(count + 1, dtype=np.int64), np.empty(count, dtype=np.int64)
    cdef uint8_t[::1] text_view = text
    cdef int64_t[::1] offsets_view = offsets, counts_view = counts
    cdef dcme_rows rows = dcme_rows(
        NULL, 0, False, <char *>&text_view[0], &offsets_view[0], &counts_view[0],
        <dcme_fault *>&faults[0, 0], 0,
    )
    with nogil:
        dcme_read_counts(&block, count, &rows)
    return text[: offsets[count]], offsets, counts, int((counts >= 0).sum())


def check_words(const uint8_t[::1] text, const int64_t[::1] offsets, int64_t[:, ::1] faults):
    """Record the faults of words, except duplicates."""
    with nogil:
        dcme_check_words(<const char *>&text[0], &offsets[0], offsets.shape[0] - 1,
                         <dcme_fault *>&faults[0, 0])


def find_duplicates(const uint8_t[::1] text, const int64_t[::1] offsets, int64_t[:, ::1] faults):
    """Note the words that an earlier word equals."""
    cdef uint64_t seed = secrets.randbits(64)
    cdef dcme_error error
    with nogil:
        check(dcme_find_duplicates(<const char *>&text[0], &offsets[0], offsets.shape[0] - 1, seed,
                                   <dcme_fault *>&faults[0, 0], &error), &error)
