"""Binding of csrc/train: word vectors from options and arrays."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from dcme_w2v._core.engine cimport Run, dcme_engine
from dcme_w2v._core.kernels cimport dcme_kernels_choose, dcme_row_stride
from dcme_w2v._core.status cimport check, dcme_error, dcme_status


cdef extern from "model/train_options.h" nogil:
    ctypedef struct dcme_train_options:
        int32_t model
        int32_t objective
        int32_t dim
        int32_t window
        int32_t window_mode
        int32_t negative
        double noise_power
        double virtual_samples
        double prior
        int32_t clusters
        int32_t top_items
        double beta
        int32_t epochs
        double sample
        double lr
        double min_lr
        int32_t gradient
        int32_t word_order
        int32_t block
        int32_t threads
        int64_t seed
        int32_t deterministic


cdef extern from "train/train.h" nogil:
    ctypedef struct dcme_subwords:
        const int64_t *starts
        const int32_t *ngrams
        int64_t buckets

    ctypedef struct dcme_corpus:
        const uint32_t *ids
        int64_t length
        const int64_t *counts
        int64_t items
        const dcme_subwords *subwords

    ctypedef struct dcme_trainer:
        pass

    void dcme_table_initialize(float *table, int64_t items, int64_t dim, int64_t seed)
    dcme_status dcme_trainer_open(
        dcme_trainer **trainer, const dcme_train_options *options, const dcme_corpus *corpus,
        float *input, float *output, float *const *neighbors, const char *kernels,
        dcme_error *error
    )
    dcme_engine *dcme_trainer_engine(dcme_trainer *trainer)
    int64_t dcme_trainer_clusters(const dcme_trainer *trainer)
    void dcme_trainer_center(const dcme_trainer *trainer, int64_t k, float *alpha)
    const char *dcme_trainer_kernels(const dcme_trainer *trainer)
    void dcme_trainer_close(dcme_trainer *trainer)


def row_stride(int64_t rows, int64_t dim):
    """Return the row stride of a table of this many rows."""
    return dcme_row_stride(rows, dim)


def has_kernels(str name):
    """Return whether this CPU supports the kernels of an instruction set."""
    return dcme_kernels_choose(name.encode()) != NULL


def initialize(float[:, ::1] table, int64_t dim, int64_t seed):
    """Fill a table of padded rows with small random numbers."""
    with nogil:
        dcme_table_initialize(&table[0, 0], table.shape[0], dim, seed)


cdef class Trainer(Run):
    """A training run over an encoded corpus; see csrc/train/train.h.

    `subwords` are the n-grams of each word: where they start, and their numbers. Their rows
    follow the rows of the words in `input`.
    """

    cdef dcme_trainer *trainer
    cdef dcme_subwords subwords
    cdef object kept

    def __init__(self, options, const uint32_t[::1] ids, const int64_t[::1] counts,
                 float[:, ::1] input, float[:, ::1] output, kernels=None, subwords=None,
                 neighbors=None):
        cdef dcme_train_options wanted = options
        cdef dcme_corpus corpus
        cdef float *sides[2]
        cdef float[:, ::1] left, right
        cdef dcme_error error
        cdef bytes name = kernels.encode() if kernels else b""
        cdef const int64_t[::1] starts
        cdef const int32_t[::1] ngrams
        rows = input.shape[0] if subwords is None else output.shape[0]
        width = dcme_row_stride(input.shape[0], wanted.dim)
        if (ids.shape[0] == 0 or rows != counts.shape[0] or output.shape[0] != counts.shape[0]
                or not input.shape[1] == output.shape[1] == width):
            raise ValueError("ids, counts and tables do not fit together")
        corpus.ids = &ids[0]
        corpus.length = ids.shape[0]
        corpus.counts = &counts[0]
        corpus.items = counts.shape[0]
        corpus.subwords = NULL
        self.kept = (ids, counts, input, output, subwords, neighbors)
        if subwords is not None:
            starts, ngrams = subwords
            if starts.shape[0] != counts.shape[0] + 1 or ngrams.shape[0] != starts[counts.shape[0]]:
                raise ValueError("the n-grams do not belong to the words")
            self.subwords.starts = &starts[0]
            self.subwords.ngrams = &ngrams[0]
            self.subwords.buckets = input.shape[0] - output.shape[0]
            corpus.subwords = &self.subwords
        if wanted.word_order:
            left, right = neighbors
            if (not left.shape[0] == right.shape[0] == counts.shape[0] or subwords is not None
                    or not left.shape[1] == right.shape[1] == width):
                raise ValueError("word order needs a table for each neighbor, and no subwords")
            sides = [&left[0, 0], &right[0, 0]]
        check(dcme_trainer_open(&self.trainer, &wanted, &corpus, &input[0, 0], &output[0, 0],
                                sides if wanted.word_order else NULL,
                                <const char *>name if name else NULL, &error), &error)
        self.engine = dcme_trainer_engine(self.trainer)

    def __dealloc__(self):
        dcme_trainer_close(self.trainer)

    def clusters(self):
        """Return how many clusters the objective has."""
        return dcme_trainer_clusters(self.trainer)

    def center(self, int64_t k, float[::1] alpha):
        """Write a cluster's center, a distribution over the words, between epochs."""
        if not 0 <= k < dcme_trainer_clusters(self.trainer):
            raise IndexError(k)
        if alpha.shape[0] != self.kept[1].shape[0]:
            raise ValueError("a center has a number for each word")
        dcme_trainer_center(self.trainer, k, &alpha[0])

    @property
    def kernels(self):
        """Name of the instruction set in use."""
        return dcme_trainer_kernels(self.trainer).decode()
