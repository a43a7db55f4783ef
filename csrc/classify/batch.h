/* Some instances side by side, and the sparse products that are exact softmax's cost.
 *
 * Scores are X W, a gradient is X^T E with E one row of errors a document. Both run over the
 * classes in strips of DCME_COLUMNS columns, so that one strip of all rows that a batch needs stays
 * in the second-level cache and its sums in registers.
 */
#pragma once

#include "classify/classify.h"

enum { DCME_COLUMNS = 128 };

typedef struct {
    const dcme_linear *model;
    int64_t size;      /* instances that there is room for */
    int64_t count;     /* instances in it */
    int64_t *starts;   /* (size + 1) */
    int32_t *features; /* the bias is the last feature of every document */
    real *values;
    int32_t *targets; /* (size) */
    int64_t *numbers; /* (size) which of the instances it is */
    real *weights;    /* (size) how much an instance counts: multiplies its gradient and loss */
    real **rows;      /* room for the rows of the widest document */
    uint64_t stream;  /* of random numbers to learn it */
} dcme_batch;

/* The same by feature: feature[i] has the values from starts[i] to starts[i + 1]. */
typedef struct {
    int64_t count;      /* distinct features */
    int32_t *feature;   /* (features + 1) */
    int64_t *starts;    /* (features + 2) */
    int32_t *documents; /* instance within the batch */
    real *values;
    int32_t *place; /* (features + 1) place of a feature, -1 for one that is not in the batch */
    real **rows;    /* (size) */
} dcme_columns;

/* Nonzero features of the widest document, the bias included. */
int64_t dcme_widest(const dcme_sparse_rows *documents);

void dcme_batch_open(dcme_batch *batch, dcme_arena *arena, const dcme_linear *model, int64_t size,
                     int64_t widest);
void dcme_columns_open(dcme_columns *columns, dcme_arena *arena, const dcme_linear *model,
                       int64_t size, int64_t widest);

/* Add a document, or an instance of one, behind the `count` that there are. */
void dcme_batch_add_document(dcme_batch *batch, const dcme_sparse_rows *documents,
                             int64_t document);
void dcme_batch_add_instance(dcme_batch *batch, const dcme_sparse_rows *documents,
                             const dcme_instances *instances, int64_t i);

/* Point `rows` to column `column` of the table's rows of instance i; returns how many. The weights
 * of the products are batch->values + batch->starts[i]. */
int64_t dcme_batch_rows(const dcme_batch *batch, int64_t i, real *table, int64_t stride,
                        int64_t column, real **rows);

void dcme_columns_fill(dcme_columns *columns, const dcme_batch *batch);

/* W += rate X^T E with one row of errors (stride) for each instance, times the instance's weight.
 * The columns were filled from the batch; their values are used up. */
void dcme_columns_update(dcme_columns *columns, const dcme_batch *batch, real *errors, real rate);

/* out (width) += x_i times the columns from `column` on of a table by feature. */
void dcme_batch_multiply(const dcme_batch *batch, int64_t i, real *table, int64_t stride,
                         int64_t column, int64_t width, real *out);

/* scores (count, stride) = X W */
void dcme_batch_scores(const dcme_batch *batch, real *scores);

/* out[f * step] = alpha . the columns from `column` on, `width` of them, of row f of W. */
void dcme_project(const dcme_linear *model, const real *alpha, int64_t column, int64_t width,
                  real *out, int64_t step);

/* Scores become probabilities, 0 in the padding; returns the logarithm of the partition function.
 */
double dcme_softmax(real *scores, const dcme_linear *model);

/* Scores become errors 1[j = target] - p_j; returns log p of the target. */
double dcme_softmax_errors(real *scores, int32_t target, const dcme_linear *model);
