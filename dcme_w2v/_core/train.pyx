"""Binding of csrc/train: options and arrays in, an epoch without the GIL, counters out."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free

from dcme_w2v._core.status cimport DCME_STOPPED, check, dcme_error, dcme_status


cdef extern from "model/options.h" nogil:
    ctypedef struct dcme_train_options:
        int32_t model
        int32_t objective
        int32_t dim
        int32_t window
        int32_t window_mode
        int32_t negative
        double noise_power
        double prior
        int32_t clusters
        int32_t top_items
        double beta
        int32_t dcme_update
        int32_t epochs
        double sample
        double lr
        double min_lr
        double input_rate
        int32_t gradient
        int32_t threads
        int64_t seed
        int32_t deterministic


cdef extern from "train/train.h" nogil:
    ctypedef struct dcme_corpus:
        const uint32_t *ids
        int64_t length
        const int64_t *counts
        int64_t items

    ctypedef struct dcme_progress:
        int64_t trained
        int64_t subsampled
        int64_t without_context
        double loss
        int64_t losses
        double rate

    ctypedef struct dcme_piece:
        void *bytes
        int64_t size

    ctypedef struct dcme_state:
        dcme_piece *pieces
        int64_t room
        int64_t count

    ctypedef struct dcme_trainer:
        pass

    dcme_status dcme_table_initialise(float *table, int64_t items, int64_t dim, int64_t seed)
    dcme_status dcme_trainer_open(
        dcme_trainer **trainer, const dcme_train_options *options, const dcme_corpus *corpus,
        float *input, float *output, const char *kernels, dcme_error *error
    )
    dcme_status dcme_trainer_epoch(dcme_trainer *trainer, int64_t epoch, dcme_error *error)
    void dcme_trainer_progress(dcme_trainer *trainer, dcme_progress *progress)
    void dcme_trainer_stop(dcme_trainer *trainer)
    int64_t dcme_trainer_unfinished(const dcme_trainer *trainer)
    void dcme_trainer_state(dcme_trainer *trainer, dcme_state *state)
    dcme_status dcme_trainer_restored(dcme_trainer *trainer, dcme_error *error)
    bint dcme_trainer_is_finite(const dcme_trainer *trainer, int64_t from_row, int64_t to_row)
    int64_t dcme_trainer_clusters(const dcme_trainer *trainer)
    void dcme_trainer_centre(const dcme_trainer *trainer, int64_t k, float *alpha)
    const char *dcme_trainer_kernels(const dcme_trainer *trainer)
    void dcme_trainer_close(dcme_trainer *trainer)


cdef extern from "kernels/kernels.h" nogil:
    ctypedef struct dcme_kernels:
        const char *name

    int64_t dcme_row_stride(int64_t items, int64_t dim)
    const dcme_kernels *dcme_kernels_choose(const char *name)


def row_stride(int64_t rows, int64_t dim):
    """Return the numbers from one row of a table of so many rows to the next."""
    return dcme_row_stride(rows, dim)


def has_kernels(str name):
    """Tell whether this machine has the kernels of an instruction set."""
    return dcme_kernels_choose(name.encode()) != NULL


def initialise(float[:, ::1] table, int64_t dim, int64_t seed):
    """Fill a table of padded rows with small random numbers."""
    with nogil:
        dcme_table_initialise(&table[0, 0], table.shape[0], dim, seed)


cdef class Trainer:
    """A training run over an encoded corpus; see csrc/train/train.h."""

    cdef dcme_trainer *trainer
    cdef object kept

    def __init__(self, options, const uint32_t[::1] ids, const int64_t[::1] counts,
                 float[:, ::1] input, float[:, ::1] output, kernels=None):
        cdef dcme_train_options wanted = options
        cdef dcme_corpus corpus
        cdef dcme_error error
        cdef bytes name = kernels.encode() if kernels else b""
        if ids.shape[0] == 0 or input.shape[0] != counts.shape[0]:
            raise ValueError("ids, counts and tables do not fit together")
        corpus.ids = &ids[0]
        corpus.length = ids.shape[0]
        corpus.counts = &counts[0]
        corpus.items = counts.shape[0]
        self.kept = (ids, counts, input, output)
        check(dcme_trainer_open(&self.trainer, &wanted, &corpus, &input[0, 0], &output[0, 0],
                                <const char *>name if name else NULL, &error), &error)

    def __dealloc__(self):
        dcme_trainer_close(self.trainer)

    def epoch(self, int64_t number):
        """Train one epoch or what is left of it; returns False if it was stopped."""
        cdef dcme_error error
        cdef dcme_status status
        with nogil:
            status = dcme_trainer_epoch(self.trainer, number, &error)
        if status == DCME_STOPPED:
            return False
        check(status, &error)
        return True

    def progress(self):
        """Return what has been done so far, by name."""
        cdef dcme_progress progress
        dcme_trainer_progress(self.trainer, &progress)
        return progress

    def stop(self):
        """Ask the threads to stop after their batch."""
        dcme_trainer_stop(self.trainer)

    def state(self):
        """Return the memory that the rest of the run depends on, as arrays of bytes.

        They are views, to be read or written between epochs while the trainer lives.
        """
        cdef dcme_state state = dcme_state(NULL, 0, 0)
        cdef int64_t i
        dcme_trainer_state(self.trainer, &state)
        state.pieces = <dcme_piece *>calloc(state.count, sizeof(dcme_piece))
        if state.pieces == NULL:
            raise MemoryError
        try:
            state.room, state.count = state.count, 0
            dcme_trainer_state(self.trainer, &state)
            return [
                np.asarray(<uint8_t[:state.pieces[i].size]>state.pieces[i].bytes)
                if state.pieces[i].size else np.empty(0, dtype=np.uint8)
                for i in range(state.count)
            ]
        finally:
            free(state.pieces)

    def restored(self):
        """Check the state that was put back, and let `progress` follow it."""
        cdef dcme_error error
        check(dcme_trainer_restored(self.trainer, &error), &error)

    def unfinished(self):
        """Return the epoch that was stopped, or -1."""
        return dcme_trainer_unfinished(self.trainer)

    def is_finite(self, int64_t start, int64_t end):
        """Tell whether rows start .. end - 1 are finite, the output's behind the input's."""
        cdef bint finite
        with nogil:
            finite = dcme_trainer_is_finite(self.trainer, start, end)
        return finite

    def clusters(self):
        """Return how many clusters the objective has."""
        return dcme_trainer_clusters(self.trainer)

    def centre(self, int64_t k, float[::1] alpha):
        """Write a cluster's centre, a distribution over the words, between epochs."""
        if not 0 <= k < dcme_trainer_clusters(self.trainer):
            raise IndexError(k)
        if alpha.shape[0] != self.kept[1].shape[0]:
            raise ValueError("a centre has a number for each word")
        dcme_trainer_centre(self.trainer, k, &alpha[0])

    @property
    def kernels(self):
        """Name of the instruction set in use."""
        return dcme_trainer_kernels(self.trainer).decode()
