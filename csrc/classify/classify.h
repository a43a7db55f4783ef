/* Maximum-entropy classification, as called from Python or a C test. The model is linear: class j
 * of C has the score s_j = w_j . x for a sparse vector x, and the probability softmax(s)_j. Weights
 * are stored by feature: row f has the weights of feature f for all classes, so that a document
 * updates whole rows or parts of rows. x ends with a constant feature, whose weights are the
 * biases. The caller owns the documents, the weights and the epoch loop. */
#pragma once

#include "classify/classify_options.h"
#include "dcme.h"
#include "engine/engine.h"
#include "kernels/kernels.h"

/* Sparse rows: document d has features[i] = values[i] for starts[d] <= i < starts[d + 1]. */
typedef struct {
    const int64_t *starts;   /* (count + 1) */
    const int32_t *features; /* feature numbers, below the model's feature count */
    const real *values;
    int64_t count;
} dcme_sparse_rows;

/* Training instances: a document with several labels is one instance per label. */
typedef struct {
    const int64_t *documents; /* (count) */
    const int32_t *labels;    /* (count), or as many as all label sets contain */
    int64_t count;
    const real *weights; /* (count) positive weight of each instance; NULL: all 1 */
    const int64_t *sets; /* (count + 1) instance i has the labels from sets[i] to sets[i + 1],
                            ascending (hinge); NULL: labels[i] */
} dcme_instances;

typedef struct {
    int64_t classes;  /* C */
    int64_t stride;   /* dcme_stride(classes); the padding remains 0 */
    int64_t features; /* F, without the constant feature */
    real bias;        /* value of the constant feature, which is the last */
    real *weights;    /* (features + 1, stride) */
    const dcme_kernels *kernels;
} dcme_linear;

/* Soft targets instead of classes: an instance's label is the index of its row. TARGETS: the rows
 * are distributions t over the classes, and the loss is -sum_k t_k log p_k. LATENT: classes are
 * latent, the rows are log alpha_k,y = log p(y | k), and the loss is -log sum_k p_k alpha_k,y,
 * whose gradient has the errors p - xi with the posterior xi_k ~ p_k alpha_k,y (Joulin, Bach and
 * Ponce 2010). */
enum { DCME_TARGETS, DCME_LATENT };
typedef struct {
    int32_t kind;
    const real *rows; /* (labels, stride) */
    real *posterior;  /* (instances, stride) receives xi; NULL if it is not needed */
} dcme_soft_targets;

typedef struct dcme_classifier dcme_classifier;

/* Open a classifier. `counts` (classes) contains the number of occurrences of each label, which is
 * at least 1. `kernels` names the instruction set; NULL selects the fastest. All arguments must
 * outlive the classifier, which must be closed even if opening it failed. */
dcme_status dcme_classifier_open(dcme_classifier **classifier, const dcme_classify_options *options,
                                 const dcme_sparse_rows *documents, const dcme_instances *instances,
                                 const int64_t *counts, const dcme_linear *model,
                                 dcme_error *error);

/* Return the engine for its epochs, progress and state; see engine/engine.h. An epoch visits all
 * instances once, in an order that depends on the seed and the epoch. The engine's rows are the
 * rows of the weights. */
dcme_engine *dcme_classifier_engine(dcme_classifier *classifier);

void dcme_classifier_close(dcme_classifier *classifier);

/* scores[d * stride + j] = s_j of document begin + d, up to document end - 1. */
dcme_status dcme_classify_scores(real *scores, const dcme_linear *model,
                                 const dcme_sparse_rows *documents, int64_t begin, int64_t end,
                                 int32_t threads, dcme_error *error);

/* The documents of the instances by feature, for computing X^T E. Instances are processed in pieces
 * of DCME_PIECE: the errors of a strip of classes stay in the last-level cache, while most of the
 * gradient is read and written once per piece. Piece i has the columns first[i] .. first[i + 1] -
 * 1, ascending by feature; column c has the values starts[c] .. starts[c + 1] - 1, ascending by
 * instance. */
enum { DCME_PIECE = 16384 };
typedef struct {
    const int64_t *first;      /* (pieces + 1) */
    const int32_t *feature;    /* (columns) without the constant feature */
    const int64_t *starts;     /* (columns + 1) */
    const uint16_t *instances; /* (values) index of the instance within the piece */
    const real *values;
} dcme_by_feature;

/* The data of the exact problem; `columns` must have been made from these documents and instances.
 */
typedef struct {
    const dcme_sparse_rows *documents;
    const dcme_instances *instances;
    const dcme_by_feature *columns; /* NULL if no gradient is needed */
    const dcme_soft_targets *soft;  /* NULL: each label is a class */
} dcme_exact_problem;

/* Compute the exact loss, *loss = weighted sum of -log p over the instances, and its gradient by
 * the weights (features + 1, classes). With a NULL gradient, only the loss and the posterior are
 * computed. Sums are in double precision and do not depend on `threads`. */
dcme_status dcme_classify_gradient(double *loss, double *gradient, const dcme_linear *model,
                                   const dcme_exact_problem *problem, int32_t threads,
                                   dcme_error *error);
