"""Binding of csrc/documents: word numbers in, sparse rows out, without the GIL."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from dcme_w2v._core.kernels cimport dcme_kernels, dcme_stride, kernels_of
from dcme_w2v._core.rows cimport check_starts
from dcme_w2v._core.status cimport check, dcme_error, dcme_status


cdef extern from "documents/documents.h" nogil:
    const int DCME_ENTRY_BYTES

    ctypedef struct dcme_composition:
        int64_t words
        int64_t topics
        int64_t dim
        int64_t stride
        int32_t log_counts
        const float *vectors
        const float *weights
        const int64_t *starts
        const int32_t *topic
        const float *share
        const dcme_kernels *kernels

    ctypedef struct dcme_documents:
        int64_t count
        const int64_t *starts
        const uint32_t *ids

    dcme_status dcme_compose_extremes(
        const dcme_composition *words, const dcme_documents *documents, float *lowest,
        float *highest, dcme_error *error
    )
    dcme_status dcme_compose_rows(
        const dcme_composition *words, const dcme_documents *documents, float threshold,
        int64_t *starts, int32_t *columns, float *values, dcme_error *error
    )
    int64_t dcme_write_entries(
        char *out, const int32_t *columns, const float *values, int64_t n
    )


cdef dcme_documents documents_of(const int64_t[::1] starts, const uint32_t[::1] ids) except *:
    """Check that the documents lie within the ids."""
    cdef dcme_documents documents
    check_starts(starts, ids.shape[0])
    documents.count = starts.shape[0] - 1
    documents.starts = &starts[0]
    documents.ids = &ids[0]
    return documents


cdef class Composer:
    """Words with their vectors, weights and posteriors; see csrc/documents/documents.h."""

    cdef dcme_composition words
    cdef object held

    def __init__(self, vectors, const float[::1] weights, const int64_t[::1] starts,
                 const int32_t[::1] topic, const float[::1] share, int64_t topics,
                 bint log_counts=False, kernels=None):
        cdef int64_t stride = dcme_stride(vectors.shape[1])
        cdef const float[:, ::1] rows
        if stride != vectors.shape[1] or not vectors.flags.c_contiguous:
            padded = np.zeros((len(vectors), stride), dtype=np.float32)
            padded[:, :vectors.shape[1]] = vectors
        else:
            padded = vectors
        rows = padded
        self._check(len(vectors), weights, starts, topic, share, topics)
        self.words.words = rows.shape[0]
        self.words.topics = topics
        self.words.dim = vectors.shape[1]
        self.words.stride = stride
        self.words.log_counts = log_counts
        self.words.vectors = &rows[0, 0]
        self.words.weights = &weights[0]
        self.words.starts = &starts[0]
        self.words.topic = &topic[0]
        self.words.share = &share[0]
        self.words.kernels = kernels_of(kernels)
        self.held = (padded, weights, starts, topic, share)

    @staticmethod
    def _check(words, weights, starts, topic, share, topics):
        if not words or len(weights) != words or len(starts) != words + 1:
            raise ValueError("vectors, weights and starts do not match")
        check_starts(starts, len(topic))
        if len(topic) != len(share) or (len(topic) and not 0 <= np.min(topic)):
            raise ValueError("topics and shares do not match")
        if len(topic) and np.max(topic) >= topics:
            raise ValueError("there is a topic beyond the last")

    def extremes(self, const int64_t[::1] starts, const uint32_t[::1] ids):
        """Return the lowest and the highest number of each document's unit vector."""
        cdef dcme_error error
        cdef dcme_documents documents = documents_of(starts, ids)
        cdef float[::1] lowest = np.zeros(documents.count + 1, dtype=np.float32)
        cdef float[::1] highest = np.zeros(documents.count + 1, dtype=np.float32)
        with nogil:
            check(dcme_compose_extremes(
                 &self.words, &documents, &lowest[0], &highest[0], &error), &error)
        return np.asarray(lowest)[:documents.count], np.asarray(highest)[:documents.count]

    def rows(self, const int64_t[::1] starts, const uint32_t[::1] ids, float threshold):
        """Return the documents' sparse rows: where each starts, the columns and the values."""
        cdef dcme_error error
        cdef dcme_documents documents = documents_of(starts, ids)
        cdef int64_t room = documents.count * self.words.topics * self.words.dim + 1
        cdef int64_t[::1] row_starts = np.zeros(documents.count + 1, dtype=np.int64)
        cdef int32_t[::1] columns = np.empty(room, dtype=np.int32)
        cdef float[::1] values = np.empty(room, dtype=np.float32)
        with nogil:
            check(dcme_compose_rows(
                &self.words, &documents, threshold, &row_starts[0], &columns[0], &values[0],
                &error), &error)
        count = row_starts[documents.count]
        return (np.asarray(row_starts), np.asarray(columns)[:count].copy(),
                np.asarray(values)[:count].copy())


def write_entries(const int32_t[::1] columns, const float[::1] values):
    """Return " column:value" for each entry as bytes, columns counted from 1."""
    cdef int64_t n = columns.shape[0], length
    if values.shape[0] != n:
        raise ValueError("columns and values do not match")
    if n == 0:
        return b""
    cdef uint8_t[::1] text = np.empty(n * DCME_ENTRY_BYTES, dtype=np.uint8)
    with nogil:
        length = dcme_write_entries(<char *>&text[0], &columns[0], &values[0], n)
    return bytes(text[:length])
