"""Declarations for the headers in csrc, and checks that all bindings share."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

include "headers.pxi"


cdef inline int check(dcme_status status, dcme_error *error) except -1 nogil:
    """Raise the exception for a failure; return DCME_OK, DCME_STOPPED or DCME_BAD_ENCODING."""
    if status == DCME_OK or status == DCME_STOPPED or status == DCME_BAD_ENCODING:
        return status
    with gil:
        from dcme_w2v import errors

        raised = {
            DCME_NO_MEMORY: errors.ResourceError,
            DCME_BAD_FORMAT: errors.FormatError,
            DCME_DIVERGED: errors.DivergedError,
        }
        raise raised.get(status, ValueError)(error.message.decode("utf-8", "replace"))


cdef inline const char *chars(const uint8_t[::1] text) except? NULL nogil:
    return <const char *>&text[0]


cdef inline int check_starts(const int64_t[::1] starts, int64_t count, int64_t end) except -1:
    """Raise unless `starts` divides an array of `end` items into `count` contiguous rows."""
    cdef int64_t i
    if count < 0 or starts.shape[0] != count + 1 or starts[0] < 0 or starts[count] > end:
        raise ValueError("the number of rows and their starts do not fit together")
    for i in range(count):
        if starts[i] > starts[i + 1]:
            raise ValueError("the starts of rows do not ascend")
    return 0


cdef inline int check_below(const int32_t[::1] numbers, int64_t limit) except -1:
    """Raise unless all numbers are at least 0 and below `limit`."""
    cdef int64_t i
    for i in range(numbers.shape[0]):
        if not 0 <= numbers[i] < limit:
            raise ValueError("a number is out of range")
    return 0
