"""Binding of csrc/fused: entropy coding of levels and numbers."""

import numpy as np

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t

from dcme_w2v._core.rows cimport check_starts
from dcme_w2v._core.status cimport check, dcme_error, dcme_status



cdef extern from "fused/fused.h" nogil:
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
