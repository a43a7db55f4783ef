"""Binding of csrc/engine: what the trainers of words and of classes have in common."""

import numpy as np

from libc.stdint cimport int64_t, uintptr_t
from libc.stdlib cimport calloc, free

from dcme_w2v._core.status cimport DCME_STOPPED, check, dcme_error, dcme_status


class _Piece:
    """Memory of a run as an array of bytes, which keeps the run alive."""

    def __init__(self, run, uintptr_t address, int64_t size):
        self.run = run
        self.__array_interface__ = {
            "version": 3, "data": (address, False), "shape": (size,), "typestr": "|u1"
        }


cdef class Run:
    """Epochs, progress and state of a training run; see csrc/engine/engine.h."""

    def __init__(self):
        raise TypeError("open a run of words or of classes")

    cdef dcme_engine *opened(self) except NULL:
        if self.engine == NULL:
            raise ValueError("the run has not been opened")
        return self.engine

    def epoch(self, int64_t number):
        """Train one epoch or the rest of it; returns False if it was stopped."""
        cdef dcme_error error
        cdef dcme_status status
        cdef dcme_engine *engine = self.opened()
        with nogil:
            status = dcme_engine_epoch(engine, number, &error)
        if status == DCME_STOPPED:
            return False
        check(status, &error)
        return True

    def progress(self):
        """Return what has been done so far, by name."""
        cdef dcme_progress progress
        dcme_engine_progress(self.opened(), &progress)
        return progress

    def stop(self):
        """Ask the threads to stop after their batch."""
        dcme_engine_stop(self.opened())

    def unfinished(self):
        """Return the epoch that was stopped, or -1."""
        return dcme_engine_unfinished(self.opened())

    def state(self):
        """Return the memory that the rest of the run depends on, as pairs of a name and bytes.

        The bytes are views, to be read or written between epochs, which keep the run open. The tables that
        are learned belong to the caller and are not among them.
        """
        cdef dcme_state state = dcme_state(NULL, 0, 0)
        cdef int64_t i
        dcme_engine_state(self.opened(), &state)
        state.pieces = <dcme_piece *>calloc(state.count, sizeof(dcme_piece))
        if state.pieces == NULL:
            raise MemoryError
        try:
            state.room, state.count = state.count, 0
            dcme_engine_state(self.opened(), &state)
            return [
                (
                    state.pieces[i].name.decode(),
                    np.asarray(_Piece(self, <uintptr_t>state.pieces[i].bytes, state.pieces[i].size)),
                )
                for i in range(state.count)
            ]
        finally:
            free(state.pieces)

    def restored(self):
        """Check the state that was put back, and let `progress` follow it."""
        cdef dcme_error error
        check(dcme_engine_restored(self.opened(), &error), &error)

    def is_finite(self, int64_t start, int64_t end):
        """Return whether the rows start .. end - 1 of the tables are finite.

        The rows of one table are numbered on from those before: word vectors, then context vectors;
        or the weights by feature.
        """
        cdef bint finite
        cdef dcme_engine *engine = self.opened()
        with nogil:
            finite = dcme_engine_is_finite(engine, start, end)
        return finite
