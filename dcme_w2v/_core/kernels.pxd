"""csrc/kernels: the choice of an instruction set, for the bindings of what computes."""

from libc.stdint cimport int64_t


cdef extern from "kernels/kernels.h" nogil:
    ctypedef struct dcme_kernels:
        const char *name

    int64_t dcme_stride(int64_t dim)
    int64_t dcme_row_stride(int64_t items, int64_t dim)
    const dcme_kernels *dcme_kernels_choose(const char *name)


cdef inline const dcme_kernels *kernels_of(kernels) except NULL:
    """Return the kernels of a name, the fastest for None."""
    cdef bytes name = kernels.encode() if kernels else b""
    cdef const dcme_kernels *found = dcme_kernels_choose(<const char *>name if name else NULL)
    if found == NULL:
        raise ValueError("no kernels of that name here")
    return found
