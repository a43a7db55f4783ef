"""csrc/engine: epochs, progress and state of a run, for the bindings of what is trained."""

from libc.stdint cimport int64_t

from dcme_w2v._core.status cimport dcme_error, dcme_status


cdef extern from "engine/engine.h" nogil:
    ctypedef struct dcme_progress:
        int64_t trained
        int64_t subsampled
        int64_t without_context
        double loss
        int64_t losses
        double rate

    ctypedef struct dcme_piece:
        const char *name
        void *bytes
        int64_t size

    ctypedef struct dcme_state:
        dcme_piece *pieces
        int64_t room
        int64_t count

    ctypedef struct dcme_engine:
        pass

    dcme_status dcme_engine_epoch(dcme_engine *engine, int64_t epoch, dcme_error *error)
    void dcme_engine_progress(const dcme_engine *engine, dcme_progress *progress)
    void dcme_engine_stop(dcme_engine *engine)
    int64_t dcme_engine_unfinished(const dcme_engine *engine)
    void dcme_engine_state(dcme_engine *engine, dcme_state *state)
    dcme_status dcme_engine_restored(dcme_engine *engine, dcme_error *error)
    bint dcme_engine_is_finite(const dcme_engine *engine, int64_t start, int64_t end)


cdef class Run:
    cdef dcme_engine *engine  # set by the class that derives from this one
    cdef dcme_engine *opened(self) except NULL
