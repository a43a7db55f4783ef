/* Maximum-entropy classification from Python's or a C test's side.
 *
 * The model is linear: class j of C has the score s_j = w_j . x for a sparse vector x, and
 * the probability softmax(s)_j. Weights are held by feature: row f has the weights of feature f in
 * all classes, so that a document updates whole rows or pieces of
 * rows. x ends with a constant feature, whose weights are the biases. The caller owns documents,
 * weights and the epoch loop.
 */
#pragma once

#include "classify/classify_options.h"
#include "dcme.h"
#include "engine/engine.h"
#include "kernels/kernels.h"

/* Sparse rows: document d has the features[i] = values[i] for starts[d] <= i < starts[d + 1]. */
typedef struct {
    const int64_t *starts;   /* (count + 1) */
    const int32_t *features; /* below the model's `features` */
    const real *values;
    int64_t count;
} dcme_sparse_rows;

/* Training instances: a document with several labels is an instance for each of them. */
typedef struct {
    const int64_t *documents; /* (count) */
    const int32_t *labels;    /* (count), or the labels of all sets */
    int64_t count;
    const real *weights; /* (count) positive weights of the instances; NULL: 1 each */
    const int64_t *sets; /* (count + 1) instance i has the labels from sets[i] to sets[i + 1],
                            ascending (hinge); NULL: labels[i] */
} dcme_instances;

typedef struct {
    int64_t classes;  /* C */
    int64_t stride;   /* dcme_stride(classes); the padding stays 0 */
    int64_t features; /* F, without the bias */
    real bias;        /* value of the constant feature, the last */
    real *weights;    /* (features + 1, stride) */
    const dcme_kernels *kernels;
} dcme_linear;

/* Targets of an instance in place of a class; its label is the number of its row. TARGETS: the
 * rows are distributions t over the classes, and the loss is -sum_k t_k log p_k. LATENT: classes
 * are latent, the rows are log alpha_k,y = log p(y | k), and the loss is -log sum_k p_k alpha_k,y,
 * whose gradient has the errors p - xi with the posterior xi_k ~ p_k alpha_k,y (Joulin, Bach and
 * Ponce 2010). */
enum { DCME_TARGETS, DCME_LATENT };
typedef struct {
    int32_t kind;
    const real *rows; /* (labels, stride) */
    real *posterior;  /* (instances, stride) xi is written here; NULL: it is not wanted */
} dcme_soft_targets;

typedef struct dcme_classifier dcme_classifier;

/* `counts` (classes) says how often each label occurs, at least once. `kernels` names the
 * instruction set, NULL for the fastest. Everything
 * given must outlive the classifier, which must be closed, also if opening failed. */
dcme_status dcme_classifier_open(dcme_classifier **classifier, const dcme_classify_options *options,
                                 const dcme_sparse_rows *documents, const dcme_instances *instances,
                                 const int64_t *counts, const dcme_linear *model,
                                 dcme_error *error);

/* Its epochs, progress and state; see engine/engine.h. An epoch is all instances once, in an order
 * that the seed and the epoch decide. Its rows are the rows of the weights. */
dcme_engine *dcme_classifier_engine(dcme_classifier *classifier);

void dcme_classifier_close(dcme_classifier *classifier);

/* scores[d * stride + j] = s_j of the document begin + d, for begin <= . < end. */
dcme_status dcme_classify_scores(real *scores, const dcme_linear *model,
                                 const dcme_sparse_rows *documents, int64_t begin, int64_t end,
                                 int32_t threads, dcme_error *error);

/* The documents of instances by feature, which X^T E is summed by. Instances are taken DCME_PIECE
 * at a time: the errors of a strip of classes stay in the last cache, and most of the gradient is
 * read and written once a piece, so not too often. Piece i has the columns first[i] <= c < first[i
 * + 1], ascending by feature; column c has the values from starts[c] to starts[c + 1], ascending by
 * instance. */
enum { DCME_PIECE = 16384 };
typedef struct {
    const int64_t *first;      /* (pieces + 1) */
    const int32_t *feature;    /* (columns) without the bias */
    const int64_t *starts;     /* (columns + 1) */
    const uint16_t *instances; /* (values) number within the piece */
    const real *values;
} dcme_by_feature;

/* The data of the exact problem; `columns` are made from these documents and instances. */
typedef struct {
    const dcme_sparse_rows *documents;
    const dcme_instances *instances;
    const dcme_by_feature *columns; /* NULL where no gradient is wanted */
    const dcme_soft_targets *soft;  /* NULL: the labels are classes */
} dcme_exact_problem;

/* The exact problem: *loss = weighted sum of -log p of the instances; gradient (features + 1,
 * classes) = its derivative by the weights, or NULL: only the loss, and the posterior. Sums are in
 * double precision and do not depend on `threads`. */
dcme_status dcme_classify_gradient(double *loss, double *gradient, const dcme_linear *model,
                                   const dcme_exact_problem *problem, int32_t threads,
                                   dcme_error *error);
