/* A batch of instances, and the sparse products that dominate the cost of the exact softmax. Scores
 * are X W, and a gradient is X^T E, where E has one row of errors per document. Both are computed
 * for one strip of DCME_COLUMNS classes at a time: the strip of all rows that a batch needs then
 * stays in the second-level cache, and its sums stay in registers. */
#pragma once

#include "classify/classify.h"

enum { DCME_COLUMNS = 128 };

typedef struct {
    const dcme_linear *model;
    int64_t size;      /* capacity in instances */
    int64_t count;     /* number of instances */
    int64_t *starts;   /* (size + 1) */
    int32_t *features; /* the bias is the last feature of every document */
    real *values;
    int32_t *targets; /* (size) */
    int64_t *numbers; /* (size) index of each instance */
    real *weights;    /* (size) weight of each instance, which multiplies its gradient and loss */
    real **rows;      /* capacity for the rows of the widest document */
    uint64_t stream;  /* random-number stream for training on the batch */
} dcme_batch;

/* The same values, grouped by feature: the values of feature[i] are at starts[i] .. starts[i + 1] -
 * 1. */
typedef struct {
    int64_t count;      /* distinct features */
    int32_t *feature;   /* (features + 1) */
    int64_t *starts;    /* (features + 2) */
    int32_t *documents; /* index of the instance within the batch */
    real *values;
    int32_t *place; /* (features + 1) position of each feature, or -1 if it is not in the batch */
    real **rows;    /* (size) */
} dcme_columns;

/* Return the number of nonzero features of the widest document, including the bias. */
int64_t dcme_widest(const dcme_sparse_rows *documents);

void dcme_batch_open(dcme_batch *batch, dcme_arena *arena, const dcme_linear *model, int64_t size,
                     int64_t widest);
void dcme_columns_open(dcme_columns *columns, dcme_arena *arena, const dcme_linear *model,
                       int64_t size, int64_t widest);

/* Append a document, or one instance of it, to the `count` instances in the batch. */
void dcme_batch_add_document(dcme_batch *batch, const dcme_sparse_rows *documents,
                             int64_t document);
void dcme_batch_add_instance(dcme_batch *batch, const dcme_sparse_rows *documents,
                             const dcme_instances *instances, int64_t i);

/* Point `rows` to column `column` of the table rows of the features of instance i, and return
 * the number of rows. The weights of these rows in the products are batch->values +
 * batch->starts[i]. */
int64_t dcme_batch_rows(const dcme_batch *batch, int64_t i, real *table, int64_t stride,
                        int64_t column, real **rows);

void dcme_columns_fill(dcme_columns *columns, const dcme_batch *batch);

/* W += rate X^T E, where E has one row of errors (stride) per instance, times the instance's
 * weight. The columns must have been filled from the batch; their values are overwritten. */
void dcme_columns_update(dcme_columns *columns, const dcme_batch *batch, real *errors, real rate);

/* out (width) += x_i times the columns of a feature table, starting at `column`. */
void dcme_batch_multiply(const dcme_batch *batch, int64_t i, real *table, int64_t stride,
                         int64_t column, int64_t width, real *out);

/* scores (count, stride) = X W */
void dcme_batch_scores(const dcme_batch *batch, real *scores);

/* out[f * step] = alpha . (`width` columns of row f of W, starting at `column`). */
void dcme_project(const dcme_linear *model, const real *alpha, int64_t column, int64_t width,
                  real *out, int64_t step);

/* Turn scores into probabilities, with 0 in the padding; return the logarithm of the partition
 * function. */
double dcme_softmax(real *scores, const dcme_linear *model);

/* Turn scores into errors 1[j = target] - p_j, and return log p of the target. */
double dcme_softmax_errors(real *scores, int32_t target, const dcme_linear *model);
