"""Bindings that convert rows, words and numbers to and from the bytes of files.

Each function works on one block of memory and releases the GIL, so that several threads can handle
blocks at once. `faults` is an int64 array of shape (FAULT_KINDS, 3): for each kind of fault, the
number of rows with this fault, the first such row, and its offset in the block.
"""

import os

import numpy as np

from dcme_w2v._core.csrc cimport *

FAULT_KINDS = DCME_FAULTS


cdef dcme_fault *faults_of(int64_t[:, ::1] faults) except NULL:
    if faults.shape[0] != DCME_FAULTS or faults.shape[1] != 3:
        raise ValueError("the shape of `faults` does not fit: it must be (FAULT_KINDS, 3)")
    return <dcme_fault *>&faults[0, 0]


def write_rows(bint binary, const float[:, ::1] matrix, const uint8_t[::1] text,
               const int64_t[::1] offsets, size_t first):
    """Return rows first .. first + len(matrix) - 1 as bytes; `matrix` has their numbers."""
    cdef int64_t count = matrix.shape[0], dim = matrix.shape[1], size
    check_starts(offsets[first : first + count + 1], count, text.shape[0])
    cdef int64_t number = sizeof(float) if binary else DCME_NUMBER_BYTES
    cdef char[::1] out = np.empty(
        offsets[first + count] - offsets[first] + count * (dim * number + 2), np.uint8)
    with nogil:
        size = dcme_write_rows(
            binary, &out[0], &matrix[0, 0], dim, chars(text), &offsets[0], first, first + count)
    return np.asarray(out)[:size]


def cut_rows(bint binary, const uint8_t[::1] data, int64_t dim, int64_t limit, bint final):
    """Return how many complete rows start `data` (at most `limit`), and their size in bytes."""
    cdef dcme_block block = dcme_block(chars(data), data.shape[0], dim)
    cdef int64_t end = 0, count
    with nogil:
        if binary:
            count = dcme_cut_binary(&block, limit, &end)
        else:
            count = dcme_cut_text(&block, limit, final, &end)
    return count, end


def read_rows(bint binary, const uint8_t[::1] data, int64_t dim, int64_t count, matrix,
              int64_t[:, ::1] faults, bint skip):
    """Read the `count` rows in `data`; return the concatenated words and their offsets.

    The numbers are written to `matrix`, which has room for all rows. With `skip`, faulty rows are
    skipped; otherwise reading stops at the first one. If `matrix` is None, all rows are checked,
    and faulty rows have empty words.
    """
    cdef dcme_block block = dcme_block(chars(data), data.shape[0], dim)
    cdef float[:, ::1] numbers = np.empty((1, dim), np.float32) if matrix is None else matrix
    cdef char[::1] text = np.empty(data.shape[0], np.uint8)
    cdef int64_t[::1] offsets = np.empty(count + 1, np.int64)
    cdef dcme_rows rows = dcme_rows(
        &numbers[0, 0], 0 if matrix is None else dim, skip, &text[0], &offsets[0], NULL,
        faults_of(faults), 0)
    with nogil:
        if binary:
            dcme_read_binary(&block, count, &rows)
        else:
            dcme_read_text(&block, count, &rows)
    return np.asarray(text)[: offsets[rows.count]].copy(), np.asarray(offsets)[: rows.count + 1]


def read_counts(const uint8_t[::1] data, int64_t limit, int64_t[:, ::1] faults):
    """Read lines "word" or "word count"; return the concatenated words, offsets and counts.

    A missing count is -1.
    """
    cdef dcme_block block = dcme_block(chars(data), data.shape[0], 1)
    cdef int64_t end = 0, count
    with nogil:
        count = dcme_cut_text(&block, limit, True, &end)
    cdef char[::1] text = np.empty(data.shape[0], np.uint8)
    cdef int64_t[::1] offsets = np.empty(count + 1, np.int64), counts = np.empty(count, np.int64)
    cdef dcme_rows rows = dcme_rows(
        NULL, 0, False, &text[0], &offsets[0], &counts[0], faults_of(faults), 0)
    with nogil:
        dcme_read_counts(&block, count, &rows)
    found = np.asarray(counts)
    return np.asarray(text)[: offsets[count]], np.asarray(offsets), found, int((found >= 0).sum())


def check_words(const uint8_t[::1] text, const int64_t[::1] offsets, int64_t[:, ::1] faults):
    """Record every fault of the words, except duplicates, in `faults`."""
    cdef int64_t count = offsets.shape[0] - 1
    cdef dcme_fault *found = faults_of(faults)
    check_starts(offsets, count, text.shape[0])
    with nogil:
        dcme_check_words(chars(text), &offsets[0], count, found)


def find_duplicates(const uint8_t[::1] text, const int64_t[::1] offsets, int64_t[:, ::1] faults):
    """Record in `faults` the words that are equal to an earlier word."""
    cdef int64_t count = offsets.shape[0] - 1
    cdef uint64_t seed = int.from_bytes(os.urandom(8), "little")
    cdef dcme_fault *found = faults_of(faults)
    check_starts(offsets, count, text.shape[0])
    with nogil:
        dcme_find_duplicates(chars(text), &offsets[0], count, seed, found)


def unpack_words(const uint8_t[::1] packed, int64_t count, int64_t length):
    """Unpack `count` words; return the concatenated words and their offsets."""
    if not 0 <= count <= packed.shape[0] or not 0 <= length <= count * packed.shape[0]:
        raise ValueError("count, length and the packed words do not fit together")
    cdef char[::1] text = np.empty(length, np.uint8)
    cdef int64_t[::1] offsets = np.empty(count + 1, np.int64)
    cdef const char *rests = chars(packed) + count
    with nogil:
        dcme_unpack_words(&packed[0], rests, packed.shape[0] - count, count, &text[0], length,
                          &offsets[0])
    return np.asarray(text), np.asarray(offsets)


def byte_order(const uint8_t[::1] text, const int64_t[::1] offsets):
    """Return the indices of distinct words in the order of their bytes."""
    cdef int64_t n = offsets.shape[0] - 1
    check_starts(offsets, n, text.shape[0])
    cdef int64_t[::1] order = np.empty(n, np.int64)
    with nogil:
        dcme_byte_order(chars(text), &offsets[0], n, &order[0])
    return np.asarray(order)


cdef int64_t entries_of(const int64_t[::1] rows, const int64_t[::1] starts) except? -1:
    """Return the number of entries in the listed rows, which must exist."""
    cdef int64_t k, total = 0
    for k in range(rows.shape[0]):
        if not 0 <= rows[k] < starts.shape[0] - 1:
            raise ValueError("a row is out of range")
        total += starts[rows[k] + 1] - starts[rows[k]]
    return total


def weight_counts(float[::1] values, const int32_t[::1] columns, const int64_t[::1] starts,
                  bint is_log, const float[::1] factors, is_second):
    """Multiply counts, or 1 plus their logarithms, by their columns' factors, in place.

    Unless `is_second` is None, two blocks of columns, which this array of uint8 distinguishes, are
    scaled to unit length within every row.
    """
    cdef int64_t n = starts.shape[0] - 1, width = factors.shape[0]
    cdef const uint8_t[::1] flags = is_second if is_second is not None else np.zeros(width, np.uint8)
    cdef const uint8_t *blocks = &flags[0] if is_second is not None else NULL
    check_starts(starts, n, min(values.shape[0], columns.shape[0]))
    check_below(columns, min(width, flags.shape[0]))
    with nogil:
        dcme_weight_counts(&values[0], &columns[0], &starts[0], n, is_log, &factors[0], blocks)


def add_products(const int32_t[::1] columns, const float[::1] values, const int64_t[::1] starts,
                 const int64_t[::1] rows, float[:, ::1] products):
    """Add the inner products of all pairs of columns, in the listed rows, to the lower triangle."""
    cdef int64_t n = rows.shape[0], width = products.shape[0]
    check_starts(starts, starts.shape[0] - 1, min(values.shape[0], columns.shape[0]))
    check_below(columns, min(width, products.shape[1]))
    entries_of(rows, starts)
    with nogil:
        dcme_add_products(&columns[0], &values[0], &starts[0], &rows[0], n, width, &products[0, 0])


def copy_rows(values, const int64_t[::1] starts, const int64_t[::1] rows):
    """Return the entries of the listed rows, one row after the other."""
    cdef int64_t n = rows.shape[0], size = values.itemsize, total = entries_of(rows, starts)
    check_starts(starts, starts.shape[0] - 1, values.shape[0])
    found = np.empty(total, values.dtype)
    cdef const uint8_t[::1] own = values.view(np.uint8)
    cdef uint8_t[::1] to = found.view(np.uint8)
    with nogil:
        dcme_copy_rows(chars(own), size, &starts[0], &rows[0], n, <char *>&to[0])
    return found


def squared_lengths(const float[::1] values, const int64_t[::1] starts):
    """Return the squared length of each row."""
    cdef int64_t n = starts.shape[0] - 1
    cdef double[::1] squares = np.empty(n)
    check_starts(starts, n, values.shape[0])
    with nogil:
        dcme_squared_lengths(&values[0], &starts[0], n, &squares[0])
    return np.asarray(squares)


def transpose(const int32_t[::1] columns, const float[::1] values, const int64_t[::1] starts,
              const int64_t[::1] rows, int64_t width, int32_t[::1] to_columns,
              float[::1] to_values):
    """Write the transposed rows, whose columns ascend, and return their starts.

    Row rows[k] becomes column k.
    """
    cdef int64_t n = rows.shape[0], total = entries_of(rows, starts)
    check_starts(starts, starts.shape[0] - 1, min(values.shape[0], columns.shape[0]))
    check_below(columns, width)
    if min(to_columns.shape[0], to_values.shape[0]) < total:
        raise ValueError("the transposed rows do not fit into the arrays")
    cdef int64_t[::1] to_starts = np.zeros(width + 1, np.int64)
    with nogil:
        dcme_transpose(&columns[0], &values[0], &starts[0], &rows[0], n, width, &to_starts[0],
                       &to_columns[0], &to_values[0])
    return np.asarray(to_starts)


def count_parts(const int64_t[::1] texts, const uint32_t[::1] words, const int64_t[::1] starts,
                const int32_t[::1] parts, int64_t width, int64_t lead):
    """Count the parts of the words in each text; return columns, counts and row starts.

    The words of text i are at texts[i] .. texts[i + 1] - 1 of `words`, and the parts of word w at
    starts[w] .. starts[w + 1] - 1 of `parts`, all below `width`. The first `lead` words of each text
    count twice.
    """
    cdef int64_t i, n = texts.shape[0] - 1, room = 1
    cdef int64_t[::1] row_starts = np.empty(n + 1, np.int64)
    cdef int32_t[::1] place = np.full(width, -1, np.int32)
    check_starts(texts, n, words.shape[0])
    check_starts(starts, starts.shape[0] - 1, parts.shape[0])
    check_below(parts, width)
    for i in range(words.shape[0]):
        if words[i] >= starts.shape[0] - 1:
            raise ValueError("a word is out of range")
        room += starts[words[i] + 1] - starts[words[i]]
    cdef dcme_documents documents = dcme_documents(n, &texts[0], &words[0])
    cdef int32_t[::1] columns = np.empty(room, np.int32)
    cdef float[::1] counts = np.empty(room, np.float32)
    with nogil:
        dcme_count_parts(&documents, &starts[0], &parts[0], lead, &place[0], &row_starts[0],
                         &columns[0], &counts[0])
    room = row_starts[n]
    return np.asarray(columns)[:room], np.asarray(counts)[:room], np.asarray(row_starts)


def write_entries(const int32_t[::1] columns, const float[::1] values):
    """Return the entries in the form " column:value" as bytes, with columns numbered from 1."""
    cdef int64_t n = columns.shape[0], length
    if values.shape[0] != n:
        raise ValueError("columns and values do not fit together")
    cdef char[::1] text = np.empty(n * DCME_ENTRY_BYTES, np.uint8)
    with nogil:
        length = dcme_write_entries(&text[0], &columns[0], &values[0], n)
    return bytes(text[:length])
