"""Bindings that train and apply models: word vectors, classifiers, label trees, documents."""

import threading

import numpy as np

from libc.stdint cimport uintptr_t

from dcme_w2v._core.csrc cimport *


KERNELS = [name for name in ("neon", "avx512", "avx2", "scalar")
           if dcme_kernels_choose(name.encode()) != NULL]


cdef const dcme_kernels *kernels_of(str name) except NULL:
    """Return the kernels with this name, or raise ValueError."""
    cdef const dcme_kernels *found = dcme_kernels_choose(name.encode())
    if found == NULL:
        raise ValueError("there are no kernels of this name that fit this machine")
    return found


cdef float *table(float[:, ::1] rows, int64_t count, int64_t width) except NULL:
    """Return the data of a table that has at least this many rows of this width."""
    if rows.shape[0] < max(count, 1) or not 0 < rows.shape[1] == width:
        raise ValueError("the shape of a table does not fit the number or width of its rows")
    return &rows[0, 0]


# ---- runs ----


class _Piece:
    """A view of a run's memory as bytes. It keeps the run alive."""

    def __init__(self, run, uintptr_t address, int64_t size):
        self.run = run
        self.__array_interface__ = {
            "version": 3, "data": (address, False), "shape": (size,), "typestr": "|u1"
        }


cdef class Run:
    """The base class of training runs: epochs, progress and state; see csrc/engine/engine.h."""

    cdef dcme_engine *engine  # set by subclasses
    cdef object lock  # protects the state, because epochs change it without the GIL

    def __cinit__(self):
        self.lock = threading.Lock()
        if type(self) is Run:
            raise TypeError("open a run of words or of classes")

    def epoch(self, int64_t number):
        """Train one epoch, or the rest of it; return False if it was stopped."""
        cdef int status
        if not self.lock.acquire(blocking=False):
            raise ValueError("another thread is running an epoch of this run; wait until it ends")
        try:
            with nogil:
                status = dcme_engine_epoch(self.engine, number)
        finally:
            self.lock.release()
        return status != DCME_STOPPED

    def progress(self):
        """Return the progress so far, by name."""
        cdef dcme_progress progress
        dcme_engine_progress(self.engine, &progress)
        return progress

    def stop(self):
        """Ask the threads to stop after their current batch."""
        dcme_engine_stop(self.engine)

    def unfinished(self):
        """Return the epoch that was stopped before its end, or -1 if there is none."""
        return dcme_engine_unfinished(self.engine)

    def state(self):
        """Return the state on which the rest of the run depends, as (name, bytes) pairs.

        The bytes are views, which keep the run open. Read or write them only between epochs. The
        learned tables are not included, because they belong to the caller.
        """
        cdef dcme_state state = dcme_state(NULL, 0, 0)
        dcme_engine_state(self.engine, &state)
        cdef uint8_t[::1] room = np.empty(state.count * sizeof(dcme_piece), np.uint8)
        state = dcme_state(<dcme_piece *>&room[0], state.count, 0)
        dcme_engine_state(self.engine, &state)
        return [
            (piece.name.decode(), np.asarray(_Piece(self, <uintptr_t>piece.bytes, piece.size)))
            for piece in state.pieces[: state.count]
        ]

    def restored(self):
        """Check a state that was restored, and update the progress accordingly."""
        with self.lock:
            dcme_engine_check_state(self.engine)

    def is_finite(self, int64_t start, int64_t end):
        """Return whether the rows start .. end - 1 of the tables are finite.

        Rows are numbered consecutively across the tables. In word training, the word vectors come
        first, then the context vectors; in a classifier, the rows are the weights by feature.
        """
        cdef bint finite
        with nogil:
            finite = dcme_engine_is_finite(self.engine, start, end)
        return finite


# ---- word vectors ----


def row_stride(int64_t rows, int64_t dim):
    """Return the row stride of a table with this many rows."""
    return dcme_row_stride(rows, dim)


def initialize(float[:, ::1] rows, int64_t dim, int64_t seed):
    """Fill a table of padded rows with small random numbers."""
    cdef int64_t count = rows.shape[0]
    cdef float *numbers = table(rows, count, dcme_row_stride(count, dim))
    with nogil:
        dcme_table_initialize(numbers, count, dim, seed)


cdef class Trainer(Run):
    """A training run over an encoded corpus; see csrc/words/train.h.

    `subwords` has two arrays: where the n-grams of each word start, and the numbers of the n-grams.
    In `input`, the rows of n-grams follow the rows of words.
    """

    cdef dcme_trainer *trainer
    cdef dcme_subwords subwords
    cdef object kept

    def __cinit__(self, options, const uint32_t[::1] ids, const int64_t[::1] counts,
                  float[:, ::1] input, float[:, ::1] output, kernels=KERNELS[0],
                  subwords=None, neighbors=None):
        cdef dcme_train_options wanted = options
        cdef const int64_t[::1] starts
        cdef const int32_t[::1] ngrams
        cdef int64_t words = counts.shape[0], rows = input.shape[0]
        cdef int64_t width = dcme_row_stride(rows, wanted.dim)
        cdef float *sides[2]
        cdef dcme_corpus corpus = dcme_corpus(&ids[0], ids.shape[0], &counts[0], words, NULL)
        if not ids.shape[0] or output.shape[0] != words or subwords is None and rows != words:
            raise ValueError("the sizes of ids, counts and tables do not fit together")
        if subwords is not None:
            starts, ngrams = subwords
            check_starts(starts, words, ngrams.shape[0])
            self.subwords = dcme_subwords(&starts[0], &ngrams[0], rows - words)
            corpus.subwords = &self.subwords
        if wanted.word_order:
            if subwords is not None:
                raise ValueError("word order does not fit with subwords; use only one of them")
            left, right = neighbors
            sides = [table(left, words, width), table(right, words, width)]
        self.kept = (ids, counts, input, output, subwords, neighbors)
        dcme_trainer_open(&self.trainer, &wanted, &corpus, table(input, words, width),
                          table(output, words, width), sides if wanted.word_order else NULL,
                          kernels_of(kernels).name)
        self.engine = dcme_trainer_engine(self.trainer)

    def __dealloc__(self):
        dcme_trainer_close(self.trainer)

    def clusters(self):
        """Return the number of clusters that the objective has."""
        return dcme_trainer_clusters(self.trainer)

    def center(self, int64_t k):
        """Return the center of a cluster, a distribution over the words. Call between epochs."""
        cdef float[::1] alpha = np.empty(self.kept[1].shape[0], np.float32)
        if not 0 <= k < self.clusters():
            raise IndexError(k)
        with self.lock:
            dcme_trainer_center(self.trainer, k, &alpha[0])
        return np.asarray(alpha)


# ---- classifiers ----


cdef class SparseRows:
    """A validated csr_matrix in the form that the core reads."""

    cdef dcme_sparse_rows core
    cdef int64_t width
    cdef object matrix, kept

    def __cinit__(self, matrix):
        cdef int64_t count = matrix.shape[0]
        cdef const int64_t[::1] starts = matrix.indptr.astype(np.int64)
        cdef const int32_t[::1] columns = np.ascontiguousarray(matrix.indices, np.int32)
        cdef const float[::1] values = np.ascontiguousarray(matrix.data, np.float32)
        check_starts(starts, count, min(columns.shape[0], values.shape[0]))
        check_below(columns, matrix.shape[1])
        self.core = dcme_sparse_rows(&starts[0], &columns[0], &values[0], count)
        self.width = matrix.shape[1]
        self.matrix, self.kept = matrix, (starts, columns, values)

    def __len__(self):
        return self.core.count

    cdef int check_range(self, int64_t begin, int64_t end, int64_t rows, int64_t width) except -1:
        """Raise unless these documents and their rows exist and the model has their features."""
        if not 0 <= begin <= end <= self.core.count or rows < end - begin or self.width > width:
            raise ValueError("a document is out of range, or the documents do not fit the model")
        return 0


cdef class Instances:
    """The validated labels and weights of documents."""

    cdef dcme_instances core
    cdef int64_t documents, classes
    cdef object kept

    def __cinit__(self, const int64_t[::1] documents, const int32_t[::1] labels,
                  int64_t document_count, int64_t classes, const float[::1] weights=None,
                  const int64_t[::1] sets=None):
        cdef int64_t i, j, count = documents.shape[0]
        if sets is not None:
            check_starts(sets, count, labels.shape[0])
        elif labels.shape[0] != count:
            raise ValueError("the numbers of documents and labels do not fit together")
        if count == 0 or weights is not None and weights.shape[0] != count:
            raise ValueError("the numbers of documents and weights do not fit together")
        check_below(labels, classes)
        for i in range(count):
            if not 0 <= documents[i] < document_count:
                raise ValueError("a document is out of range")
            if sets is None:
                continue
            if sets[i] == sets[i + 1]:
                raise ValueError("an empty set of labels does not fit")
            for j in range(sets[i] + 1, sets[i + 1]):
                if labels[j - 1] >= labels[j]:
                    raise ValueError("the labels of a document do not ascend")
        self.core = dcme_instances(&documents[0], &labels[0], count, NULL, NULL)
        if weights is not None:
            self.core.weights = &weights[0]
        if sets is not None:
            self.core.sets = &sets[0]
        self.documents, self.classes = document_count, classes
        self.kept = documents, labels, weights, sets


cdef class Columns:
    """The documents grouped by feature, for computing gradients."""

    cdef dcme_by_feature core
    cdef const int64_t *numbers
    cdef int64_t features, count
    cdef object kept

    def __cinit__(self, SparseRows documents, Instances instances):
        if instances.documents > documents.core.count:
            raise ValueError("documents and instances do not fit together")
        rows, numbers = documents.matrix, np.asarray(instances.kept[0])
        pieces = [rows[numbers[i : i + DCME_PIECE]].tocsc()
                  for i in range(0, len(numbers), DCME_PIECE)]
        sizes = [np.diff(piece.indptr) for piece in pieces]
        found = np.concatenate(sizes)
        cdef const int64_t[::1] first = np.cumsum([0, *map(np.count_nonzero, sizes)])
        cdef const int32_t[::1] feature = np.concatenate(
            [np.flatnonzero(size) for size in sizes]).astype(np.int32)
        cdef const int64_t[::1] begins = np.append(0, np.cumsum(found[found > 0], dtype=np.int64))
        cdef const uint16_t[::1] places = np.concatenate(
            [piece.indices for piece in pieces]).astype(np.uint16)
        cdef const float[::1] entries = np.concatenate(
            [piece.data for piece in pieces]).astype(np.float32)
        self.core = dcme_by_feature(
            &first[0], &feature[0], &begins[0], &places[0], &entries[0])
        self.numbers, self.count = instances.core.documents, instances.core.count
        self.features = documents.width
        self.kept = instances.kept[0], first, feature, begins, places, entries


cdef class Linear:
    """The weights of a linear model: one padded row per feature, and a last row with the biases."""

    cdef dcme_linear core
    cdef object kept

    def __cinit__(self, float[:, ::1] weights, int64_t classes, float bias,
                  kernels=KERNELS[0]):
        cdef int64_t stride = dcme_stride(classes)
        self.core = dcme_linear(classes, stride, weights.shape[0] - 1, bias,
                                table(weights, 1, stride), kernels_of(kernels))
        self.kept = weights

    def scores(self, SparseRows documents, int64_t begin, int64_t end, float[:, ::1] out,
               int32_t threads):
        """Write the scores of document begin + i for all classes to out[i]."""
        documents.check_range(begin, end, out.shape[0], self.core.features)
        if out.shape[1] != self.core.stride:
            raise ValueError("scores and weights do not fit together")
        with nogil:
            dcme_classify_scores(
                &out[0, 0], &self.core, &documents.core, begin, end, threads)

    def gradient(self, SparseRows documents, Instances instances, Columns columns,
                 double[:, ::1] out, int32_t threads, float[:, ::1] targets=None,
                 float[:, ::1] posterior=None, bint latent=False):
        """Write the gradient of the loss to `out`, and return the loss, which is the sum of -log p.

        For each label, `targets` has a distribution over the classes or, if `latent` is set,
        log p(label | class) for each class; see csrc/classify/classify.h. `out` and `posterior` may
        be None.
        """
        cdef double loss = 0
        cdef double *gradient = NULL
        cdef dcme_soft_targets soft = dcme_soft_targets(
            DCME_LATENT if latent else DCME_TARGETS, NULL, NULL)
        cdef dcme_exact_problem problem = dcme_exact_problem(
            &documents.core, &instances.core, NULL, NULL)
        documents.check_range(0, instances.documents, instances.documents, self.core.features)
        if targets is not None:
            soft.rows = table(targets, instances.classes, self.core.stride)
            problem.soft = &soft
        elif instances.classes > self.core.classes:
            raise ValueError("labels and weights do not fit together")
        if posterior is not None:
            soft.posterior = table(posterior, instances.core.count, self.core.stride)
        if out is not None:
            if out.shape[0] != self.core.features + 1 or out.shape[1] != self.core.classes:
                raise ValueError("gradient and weights do not fit together")
            if (columns.features != documents.width or columns.count != instances.core.count
                    or columns.numbers != instances.core.documents):
                raise ValueError("columns and instances do not fit together")
            problem.columns = &columns.core
            gradient = &out[0, 0]
        with nogil:
            dcme_classify_gradient(&loss, gradient, &self.core, &problem, threads)
        return loss


cdef class Learner(Run):
    """A training run of a linear classifier with one objective; see csrc/classify/classify.h."""

    cdef dcme_classifier *classifier
    cdef object kept

    def __cinit__(self, options, SparseRows documents, Instances instances,
                  const int64_t[::1] counts, Linear linear):
        cdef dcme_classify_options wanted = options
        documents.check_range(0, instances.documents, instances.documents, linear.core.features)
        if counts.shape[0] != linear.core.classes or instances.classes > counts.shape[0]:
            raise ValueError("labels, counts and weights do not fit together")
        self.kept = documents, instances, counts, linear
        dcme_classifier_open(&self.classifier, &wanted, &documents.core, &instances.core,
                             &counts[0], &linear.core)
        self.engine = dcme_classifier_engine(self.classifier)

    def __dealloc__(self):
        dcme_classifier_close(self.classifier)


cdef class LabelTree:
    """A validated label tree with sparse weights; see csrc/classify/label_tree.h."""

    cdef dcme_label_tree core
    cdef object kept

    def __cinit__(self, const int64_t[::1] children, const int64_t[::1] rows,
                  const int32_t[::1] features, const int64_t[::1] starts,
                  const uint16_t[::1] columns, const float[::1] values, int32_t bias_feature,
                  float bias):
        cdef int64_t n, i, count, level = 0, widest = 0, nodes = children.shape[0] - 1
        check_starts(rows, nodes, features.shape[0])
        check_starts(starts, features.shape[0], min(columns.shape[0], values.shape[0]))
        for n in range(nodes):
            count = children[n + 1] - children[n]
            widest = max(widest, count)
            if children[n] <= n or count < 1:
                raise ValueError("the children of the nodes do not ascend")
            for i in range(starts[rows[n]], starts[rows[n + 1]]):
                if columns[i] >= count:
                    raise ValueError("a column is out of range")
        n = 1
        while n < nodes:  # check that the children of each level form the next level
            if n <= level or children[level] != n:
                raise ValueError("the levels of nodes do not follow one another")
            level, n = n, children[n]
        if n != nodes or children[level] != n:
            raise ValueError("the labels are not on the lowest level")
        self.core = dcme_label_tree(
            nodes, &children[0], &rows[0], &features[0], &starts[0], &columns[0], &values[0],
            bias_feature, bias, widest)
        self.kept = children, rows, features, starts, columns, values

    def best(self, SparseRows documents, int64_t begin, int64_t end, int64_t beam,
             int32_t[:, ::1] best, float[:, ::1] scores):
        """Write the positions of the most probable labels (-1: none) and their scores."""
        documents.check_range(begin, end, min(best.shape[0], scores.shape[0]),
                              self.core.bias_feature)
        if scores.shape[1] != best.shape[1] or best.shape[1] < 1 or beam < 1:
            raise ValueError("labels and scores do not fit together")
        with nogil:
            dcme_tree_best(&best[0, 0], &scores[0, 0], best.shape[1], beam, &self.core,
                           &documents.core, begin, end)


# ---- document vectors ----


cdef class Composer:
    """Words with their vectors, weights and topic posteriors; see csrc/documents/documents.h."""

    cdef dcme_composition words
    cdef object kept

    def __cinit__(self, vectors, const float[::1] weights, SparseRows posteriors,
                  bint log_counts=False, kernels=KERNELS[0]):
        cdef int64_t count = weights.shape[0], dim = vectors.shape[1], stride = dcme_stride(dim)
        cdef float[:, ::1] rows = np.pad(vectors, ((0, 0), (0, stride - dim)))
        posteriors.check_range(0, count, count, posteriors.width)
        self.words = dcme_composition(
            count, posteriors.width, dim, stride, log_counts, table(rows, count, stride),
            &weights[0], posteriors.core.starts, posteriors.core.features, posteriors.core.values,
            kernels_of(kernels))
        self.kept = rows, weights, posteriors

    def extremes(self, const int64_t[::1] starts, const uint32_t[::1] ids):
        """Return the minimum and the maximum entry of each document's unit vector."""
        cdef dcme_documents documents = documents_of(starts, ids)
        cdef float[:, ::1] found = np.empty((2, documents.count), np.float32)
        with nogil:
            dcme_compose_extremes(&self.words, &documents, &found[0, 0], &found[1, 0])
        return np.asarray(found)

    def rows(self, const int64_t[::1] starts, const uint32_t[::1] ids, float threshold):
        """Return the documents as sparse rows: starts of rows, columns and values."""
        cdef dcme_documents documents = documents_of(starts, ids)
        cdef int64_t room = documents.count * self.words.topics * self.words.dim
        cdef int64_t[::1] begins = np.empty(documents.count + 1, np.int64)
        cdef int32_t[::1] columns = np.empty(room, np.int32)
        cdef float[::1] values = np.empty(room, np.float32)
        with nogil:
            dcme_compose_rows(
                &self.words, &documents, threshold, &begins[0], &columns[0], &values[0])
        count = begins[documents.count]
        return (np.asarray(begins), np.asarray(columns)[:count].copy(),
                np.asarray(values)[:count].copy())


cdef dcme_documents documents_of(const int64_t[::1] starts, const uint32_t[::1] ids) except *:
    """Check that the documents refer only to existing IDs."""
    cdef int64_t count = starts.shape[0] - 1
    check_starts(starts, count, ids.shape[0])
    return dcme_documents(count, &starts[0], &ids[0])
