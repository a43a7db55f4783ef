"""The C core's status codes, and the one place where they become Python exceptions."""

from libc.stdint cimport int64_t


cdef extern from "dcme.h" nogil:
    ctypedef enum dcme_status:
        DCME_OK
        DCME_NO_MEMORY
        DCME_BAD_ENCODING
        DCME_BAD_FORMAT
        DCME_BAD_ARGUMENT
        DCME_DIVERGED
        DCME_STOPPED

    ctypedef struct dcme_error:
        dcme_status code
        int64_t where
        char message[200]

    void dcme_release_freed()


cdef inline int check(dcme_status status, dcme_error *error) except -1 nogil:
    """Raise the exception that belongs to a status; return 0 for DCME_OK."""
    if status != DCME_OK:
        with gil:
            from dcme_w2v import errors

            message = error.message.decode("utf-8", "replace")
            if status == DCME_NO_MEMORY:
                raise errors.ResourceError(message)
            if status == DCME_BAD_ENCODING:
                raise errors.CorpusError(message)
            if status == DCME_BAD_FORMAT:
                raise errors.FormatError(message)
            if status == DCME_DIVERGED:
                raise errors.DivergedError(message)
            raise ValueError(message)
    return 0
