"""Binding of csrc/classify: linear classifiers from options and arrays."""

import numpy as np
from scipy.sparse import csr_matrix

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t

from dcme_w2v._core.engine cimport Run, dcme_engine
from dcme_w2v._core.kernels cimport dcme_kernels, dcme_stride, kernels_of
from dcme_w2v._core.rows cimport check_starts, dcme_sparse_rows
from dcme_w2v._core.status cimport check, dcme_error, dcme_status


cdef extern from "classify/classify_options.h" nogil:
    ctypedef struct dcme_classify_options:
        int32_t objective
        int32_t loss
        int32_t negative
        double noise_power
        int32_t class_clusters
        int32_t exact_clusters
        int32_t draws
        double center_interval
        int32_t clusters
        int32_t top_items
        double beta
        int32_t dcme_update
        int32_t batch
        int32_t epochs
        double lr
        double min_lr
        double l2
        int32_t threads
        int64_t seed


cdef extern from "classify/classify.h" nogil:
    ctypedef struct dcme_instances:
        const int64_t *documents
        const int32_t *labels
        int64_t count
        const float *weights
        const int64_t *sets

    ctypedef struct dcme_linear:
        int64_t classes
        int64_t stride
        int64_t features
        float bias
        float *weights
        const dcme_kernels *kernels

    cdef enum:
        DCME_TARGETS, DCME_LATENT

    ctypedef struct dcme_soft_targets:
        int32_t kind
        const float *rows
        float *posterior

    ctypedef struct dcme_classifier:
        pass

    dcme_status dcme_classifier_open(
        dcme_classifier **classifier, const dcme_classify_options *options,
        const dcme_sparse_rows *documents, const dcme_instances *instances, const int64_t *counts,
        const dcme_linear *model, dcme_error *error
    )
    dcme_engine *dcme_classifier_engine(dcme_classifier *classifier)
    void dcme_classifier_close(dcme_classifier *classifier)
    dcme_status dcme_classify_scores(
        float *scores, const dcme_linear *model, const dcme_sparse_rows *documents, int64_t begin,
        int64_t end, int32_t threads, dcme_error *error
    )
    const int DCME_PIECE

    ctypedef struct dcme_by_feature:
        const int64_t *first
        const int32_t *feature
        const int64_t *starts
        const uint16_t *instances
        const float *values
    ctypedef struct dcme_exact_problem:
        const dcme_sparse_rows *documents
        const dcme_instances *instances
        const dcme_by_feature *columns
        const dcme_soft_targets *soft

    dcme_status dcme_classify_gradient(
        double *loss, double *gradient, const dcme_linear *model,
        const dcme_exact_problem *problem, int32_t threads, dcme_error *error
    )


cdef extern from "classify/label_tree.h" nogil:
    ctypedef struct dcme_label_tree:
        int64_t nodes
        const int64_t *children
        const int64_t *rows
        const int32_t *features
        const int64_t *starts
        const uint16_t *columns
        const float *values
        int32_t bias_feature
        float bias
        int64_t widest

    dcme_status dcme_tree_best(
        int32_t *best, float *scores, int64_t count, int64_t beam, const dcme_label_tree *tree,
        const dcme_sparse_rows *documents, int64_t begin, int64_t end, dcme_error *error
    )


cdef class Documents:
    """Sparse rows, checked, as the core reads them."""

    cdef dcme_sparse_rows core
    cdef int64_t features
    cdef object kept

    def __init__(self, const int64_t[::1] starts, const int32_t[::1] features,
                 const float[::1] values, int64_t width):
        cdef int64_t i
        check_starts(starts, values.shape[0])
        if features.shape[0] != values.shape[0]:
            raise ValueError("features and values do not fit together")
        for i in range(features.shape[0]):
            if features[i] < 0 or features[i] >= width:
                raise ValueError("a feature is out of range")
        self.core.starts = &starts[0]
        self.core.features = &features[0]
        self.core.values = &values[0]
        self.core.count = starts.shape[0] - 1
        self.features = width
        self.kept = (starts, features, values)

    def __len__(self):
        return self.core.count

    cdef int check_range(self, int64_t begin, int64_t end, int64_t rows, int64_t width) except -1:
        """Raise unless there are such documents, rows for them, and a model of their features."""
        if not 0 <= begin <= end <= self.core.count or rows < end - begin or self.features > width:
            raise ValueError("documents out of range, or they and the model do not fit together")
        return 0


cdef class Instances:
    """Which document has which label, checked."""

    cdef dcme_instances core
    cdef int64_t documents, classes
    cdef object kept

    def __init__(self, const int64_t[::1] documents, const int32_t[::1] labels,
                 int64_t document_count, int64_t classes, const float[::1] weights=None,
                 const int64_t[::1] sets=None):
        cdef int64_t i, j
        if sets is not None and (sets.shape[0] != documents.shape[0] + 1 or sets[0] != 0
                                 or sets[documents.shape[0]] != labels.shape[0]):
            raise ValueError("sets and labels do not fit together")
        if documents.shape[0] == 0 or sets is None and documents.shape[0] != labels.shape[0]:
            raise ValueError("documents and labels do not fit together")
        for i in range(documents.shape[0]):
            if not 0 <= documents[i] < document_count:
                raise ValueError("a document is out of range")
            if sets is None:
                continue
            if not 0 <= sets[i] < sets[i + 1] <= labels.shape[0]:
                raise ValueError("a set of labels is empty")
            for j in range(sets[i] + 1, sets[i + 1]):
                if labels[j - 1] >= labels[j]:
                    raise ValueError("the labels of a set do not ascend")
        for i in range(labels.shape[0]):
            if not 0 <= labels[i] < classes:
                raise ValueError("a label is out of range")
        if weights is not None and weights.shape[0] != documents.shape[0]:
            raise ValueError("documents and weights do not fit together")
        self.core.documents = &documents[0]
        self.core.labels = &labels[0]
        self.core.weights = &weights[0] if weights is not None else NULL
        self.core.sets = &sets[0] if sets is not None else NULL
        self.core.count = documents.shape[0]
        self.classes = classes
        self.documents = document_count
        self.kept = (documents, labels, weights, sets)


cdef class Columns:
    """The documents of instances by feature, which gradients are summed by."""

    cdef dcme_by_feature core
    cdef const int64_t *numbers
    cdef int64_t features, count
    cdef object kept

    def __init__(self, Documents documents, Instances instances):
        if instances.documents > documents.core.count:
            raise ValueError("documents and instances do not fit together")
        starts, columns, values = map(np.asarray, documents.kept)
        shape = documents.core.count, documents.features
        rows, numbers = csr_matrix((values, columns, starts), shape), np.asarray(instances.kept[0])
        pieces = [rows[numbers[i : i + DCME_PIECE]].tocsc()
                  for i in range(0, len(numbers), DCME_PIECE)]
        sizes = [np.diff(piece.indptr) for piece in pieces]
        cdef const int64_t[::1] first = np.cumsum([0, *map(np.count_nonzero, sizes)])
        cdef const int32_t[::1] feature = np.concatenate(
            [np.flatnonzero(size) for size in sizes]).astype(np.int32)
        found = np.concatenate(sizes)
        cdef const int64_t[::1] begins = np.append(0, np.cumsum(found[found > 0], dtype=np.int64))
        cdef const uint16_t[::1] places = np.concatenate(
            [piece.indices for piece in pieces]).astype(np.uint16)
        cdef const float[::1] entries = np.concatenate([piece.data for piece in pieces])
        self.core = dcme_by_feature(
            &first[0], &feature[0], &begins[0], &places[0], &entries[0])
        self.numbers = instances.core.documents
        self.count = instances.core.count
        self.features = documents.features
        self.kept = instances.kept[0], first, feature, begins, places, entries


cdef class Linear:
    """The weights by feature, padded rows, the last one the biases."""

    cdef dcme_linear core
    cdef object kept

    def __init__(self, float[:, ::1] weights, int64_t classes, float bias, kernels=None):
        if weights.shape[0] < 1 or classes < 1 or weights.shape[1] != dcme_stride(classes):
            raise ValueError("weights and classes do not fit together")
        self.core.classes = classes
        self.core.stride = weights.shape[1]
        self.core.features = weights.shape[0] - 1
        self.core.bias = bias
        self.core.weights = &weights[0, 0]
        self.core.kernels = kernels_of(kernels)
        self.kept = weights

    @property
    def kernels(self):
        """Name of the instruction set in use."""
        return self.core.kernels.name.decode()

    def scores(self, Documents documents, int64_t begin, int64_t end, float[:, ::1] out,
               int32_t threads):
        """Fill out[i] with the scores of document begin + i in all classes."""
        cdef dcme_error error
        documents.check_range(begin, end, out.shape[0], self.core.features)
        if out.shape[1] != self.core.stride:
            raise ValueError("scores and weights do not fit together")
        if begin == end:
            return
        with nogil:
            check(dcme_classify_scores(
                &out[0, 0], &self.core, &documents.core, begin, end, threads, &error), &error)

    def gradient(self, Documents documents, Instances instances, Columns columns,
                 double[:, ::1] out, int32_t threads):
        """Fill `out` with the gradient of the loss, the sum of -log p, and return the loss."""
        return self._gradient(documents, instances, columns, NULL, out, threads)

    def soft_gradient(self, Documents documents, Instances instances, Columns columns,
                      const float[:, ::1] rows, double[:, ::1] out, float[:, ::1] posterior,
                      bint latent, int32_t threads):
        """Fill `out` with the gradient of the loss of soft targets, and return the loss.

        `rows` are the targets of each label, or where `latent` log p(label | class); see
        csrc/classify/classify.h. `out` and `posterior` may be None.
        """
        cdef dcme_soft_targets soft
        if rows.shape[0] < instances.classes or rows.shape[1] != self.core.stride:
            raise ValueError("targets and weights do not fit together")
        soft.kind = DCME_LATENT if latent else DCME_TARGETS
        soft.rows = &rows[0, 0]
        soft.posterior = NULL
        if posterior is not None:
            if posterior.shape[0] != instances.core.count or posterior.shape[1] != rows.shape[1]:
                raise ValueError("posterior and instances do not fit together")
            soft.posterior = &posterior[0, 0]
        return self._gradient(documents, instances, columns, &soft, out, threads)

    cdef double _gradient(self, Documents documents, Instances instances, Columns columns,
                          const dcme_soft_targets *soft, double[:, ::1] out,
                          int32_t threads) except? -1:
        cdef dcme_error error
        cdef dcme_exact_problem problem
        cdef double loss = 0
        cdef double *gradient = NULL
        if documents.features > self.core.features or instances.documents > documents.core.count:
            raise ValueError("documents, instances and weights do not fit together")
        problem.documents = &documents.core
        problem.instances = &instances.core
        problem.columns = NULL
        problem.soft = soft
        if out is not None:
            if out.shape[0] != self.core.features + 1 or out.shape[1] != self.core.classes:
                raise ValueError("gradient and weights do not fit together")
            if (columns.features != documents.features or columns.count != instances.core.count
                    or columns.numbers != instances.core.documents):
                raise ValueError("columns and instances do not fit together")
            problem.columns = &columns.core
            gradient = &out[0, 0]
        with nogil:
            check(dcme_classify_gradient(
                &loss, gradient, &self.core, &problem, threads, &error), &error)
        return loss


cdef class LabelTree:
    """A tree of labels with sparse weights, checked; see csrc/classify/label_tree.h."""

    cdef dcme_label_tree core
    cdef object kept

    def __init__(self, const int64_t[::1] children, const int64_t[::1] rows,
                 const int32_t[::1] features, const int64_t[::1] starts,
                 const uint16_t[::1] columns, const float[::1] values, int32_t bias_feature,
                 float bias):
        cdef int64_t n, i, count, level = 0, nodes = children.shape[0] - 1
        if (nodes < 1 or rows.shape[0] != nodes + 1 or rows[0] != 0
                or rows[nodes] != features.shape[0] or starts.shape[0] != features.shape[0] + 1
                or columns.shape[0] != values.shape[0] or columns.shape[0] < 1):
            raise ValueError("the arrays of a tree do not fit together")
        check_starts(starts, columns.shape[0])
        for n in range(nodes):
            if children[n] <= n or children[n] >= children[n + 1] or rows[n] > rows[n + 1]:
                raise ValueError("nodes do not ascend")
        for n in range(nodes):
            count = children[n + 1] - children[n]
            self.core.widest = max(self.core.widest, count)
            for i in range(starts[rows[n]], starts[rows[n + 1]]):
                if columns[i] >= count:
                    raise ValueError("a column is out of range")
        n = 1
        while n < nodes:  # the levels: each one's children are the next
            if n <= level or children[level] != n:
                raise ValueError("the levels of nodes do not follow one another")
            level, n = n, children[n]
        if n != nodes or children[level] != n:
            raise ValueError("the labels are not on the lowest level")
        self.core.nodes, self.core.children, self.core.rows = nodes, &children[0], &rows[0]
        self.core.features, self.core.starts = &features[0], &starts[0]
        self.core.columns, self.core.values = &columns[0], &values[0]
        self.core.bias_feature, self.core.bias = bias_feature, bias
        self.kept = (children, rows, features, starts, columns, values)

    def best(self, Documents documents, int64_t begin, int64_t end, int64_t beam,
             int32_t[:, ::1] best, float[:, ::1] scores):
        """Fill rows with the places of the most probable labels, -1 for none, and their scores."""
        cdef dcme_error error
        documents.check_range(begin, end, min(best.shape[0], scores.shape[0]),
                              self.core.bias_feature)
        if scores.shape[1] != best.shape[1] or best.shape[1] < 1 or beam < 1:
            raise ValueError("labels and scores do not fit together")
        with nogil:
            check(dcme_tree_best(
                &best[0, 0], &scores[0, 0], best.shape[1], beam, &self.core, &documents.core,
                begin, end, &error), &error)


cdef class Learner(Run):
    """Training of a linear classifier by one objective; see csrc/classify/classify.h."""

    cdef dcme_classifier *classifier
    cdef object kept

    def __init__(self, options, Documents documents, Instances instances,
                 const int64_t[::1] counts, Linear linear):
        cdef dcme_classify_options wanted = options
        cdef dcme_error error
        if (counts.shape[0] != linear.core.classes
                or documents.features > linear.core.features
                or instances.documents > documents.core.count
                or instances.classes > linear.core.classes):
            raise ValueError("documents, counts and weights do not fit together")
        self.kept = (documents, instances, counts, linear)
        check(dcme_classifier_open(&self.classifier, &wanted, &documents.core, &instances.core,
                                   &counts[0], &linear.core, &error), &error)
        self.engine = dcme_classifier_engine(self.classifier)

    def __dealloc__(self):
        dcme_classifier_close(self.classifier)
