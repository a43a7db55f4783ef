"""What bindings check of rows that lie behind one another in an array."""

from libc.stdint cimport int32_t, int64_t


cdef extern from "classify/classify.h" nogil:
    ctypedef struct dcme_sparse_rows:
        const int64_t *starts
        const int32_t *features
        const float *values
        int64_t count


cdef inline int check_starts(const int64_t[::1] starts, int64_t end) except -1:
    """Raise unless rows start at 0, one after the other, and the last one ends at `end`."""
    cdef int64_t i, count = starts.shape[0] - 1
    if count < 0 or starts[0] != 0 or starts[count] != end:
        raise ValueError("starts and values do not fit together")
    for i in range(count):
        if starts[i] > starts[i + 1]:
            raise ValueError("starts do not ascend")
    return 0
