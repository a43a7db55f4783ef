/* See batch.h. */
#include "classify/batch.h"
#include "objectives/dual_center.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 64 }; /* number of rows per kernel call */

int64_t dcme_widest(const dcme_sparse_rows *documents) {
    int64_t widest = 0;
    for (int64_t d = 0; d < documents->count; d++)
        widest = dcme_max(widest, documents->starts[d + 1] - documents->starts[d]);
    return widest + 1;
}

void dcme_batch_open(dcme_batch *batch, dcme_arena *arena, const dcme_linear *model, int64_t size,
                     int64_t widest) {
    batch->model = model;
    batch->size = size;
    DCME_TAKE(arena, batch->starts, size + 1);
    DCME_TAKE_UNSET(arena, batch->features, size * widest);
    DCME_TAKE_UNSET(arena, batch->values, size * widest);
    DCME_TAKE(arena, batch->targets, size);
    DCME_TAKE(arena, batch->numbers, size);
    DCME_TAKE(arena, batch->weights, size);
    DCME_TAKE(arena, batch->rows, widest);
}

void dcme_columns_open(dcme_columns *columns, dcme_arena *arena, const dcme_linear *model,
                       int64_t size, int64_t widest) {
    int64_t features = model->features + 1;
    DCME_TAKE(arena, columns->feature, features);
    DCME_TAKE(arena, columns->starts, features + 1);
    DCME_TAKE_UNSET(arena, columns->documents, size * widest);
    DCME_TAKE_UNSET(arena, columns->values, size * widest);
    DCME_TAKE(arena, columns->place, features);
    DCME_TAKE(arena, columns->rows, size);
    for (int64_t f = 0; columns->place && f < features; f++)
        columns->place[f] = -1;
}

void dcme_batch_add_document(dcme_batch *batch, const dcme_sparse_rows *documents,
                             int64_t document) {
    int64_t begin = documents->starts[document], n = documents->starts[document + 1] - begin;
    int64_t at = batch->starts[batch->count];
    if (n > 0) /* without any features, the arrays may be NULL */
        DCME_COPY(batch->features + at, documents->features + begin, n);
    if (n > 0)
        DCME_COPY(batch->values + at, documents->values + begin, n);
    batch->features[at + n] = (int32_t)batch->model->features;
    batch->values[at + n] = batch->model->bias;
    batch->starts[++batch->count] = at + n + 1;
}

void dcme_batch_add_instance(dcme_batch *batch, const dcme_sparse_rows *documents,
                             const dcme_instances *instances, int64_t i) {
    int64_t d = batch->count;
    dcme_batch_add_document(batch, documents, instances->documents[i]);
    batch->numbers[d] = i;
    batch->weights[d] = instances->weights ? instances->weights[i] : 1;
    batch->targets[d] = instances->labels[instances->sets ? instances->sets[i] : i];
}

int64_t dcme_batch_rows(const dcme_batch *batch, int64_t i, real *table, int64_t stride,
                        int64_t column, real **rows) {
    int64_t begin = batch->starts[i], n = batch->starts[i + 1] - begin;
    for (int64_t r = 0; r < n; r++)
        rows[r] = table + batch->features[begin + r] * stride + column;
    return n;
}

void dcme_columns_fill(dcme_columns *columns, const dcme_batch *batch) {
    int64_t total = batch->starts[batch->count], at = 0;
    columns->count = 0;
    for (int64_t i = 0; i < total; i++) {
        int32_t *place = &columns->place[batch->features[i]];
        if (*place < 0) {
            *place = (int32_t)columns->count;
            columns->feature[columns->count] = batch->features[i];
            columns->starts[++columns->count] = 0;
        }
        columns->starts[*place + 1]++;
    }
    columns->starts[0] = 0; /* first the start of each feature's values, then their end */
    for (int64_t c = 0; c < columns->count; c++) {
        int64_t n = columns->starts[c + 1];
        columns->starts[c + 1] = at;
        at += n;
    }
    for (int64_t d = 0; d < batch->count; d++)
        for (int64_t i = batch->starts[d]; i < batch->starts[d + 1]; i++) {
            int64_t *next = &columns->starts[columns->place[batch->features[i]] + 1];
            columns->documents[*next] = (int32_t)d;
            columns->values[(*next)++] = batch->values[i];
        }
    for (int64_t c = 0; c < columns->count; c++)
        columns->place[columns->feature[c]] = -1;
}

void dcme_columns_update(dcme_columns *columns, const dcme_batch *batch, real *errors, real rate) {
    const dcme_linear *model = batch->model;
    int64_t total = columns->starts[columns->count];
    for (int64_t i = 0; i < total; i++)
        columns->values[i] *= rate * batch->weights[columns->documents[i]];
    for (int64_t column = 0; column < model->stride; column += DCME_COLUMNS) {
        int64_t width = dcme_min(model->stride - column, DCME_COLUMNS);
        for (int64_t c = 0; c < columns->count; c++) {
            int64_t begin = columns->starts[c], n = columns->starts[c + 1] - begin;
            for (int64_t i = 0; i < n; i++)
                columns->rows[i] = errors + columns->documents[begin + i] * model->stride + column;
            model->kernels->weighted_sum(model->weights + columns->feature[c] * model->stride +
                                             column,
                                         columns->rows, columns->values + begin, n, width);
        }
    }
}

void dcme_batch_multiply(const dcme_batch *batch, int64_t i, real *table, int64_t stride,
                         int64_t column, int64_t width, real *out) {
    int64_t n = dcme_batch_rows(batch, i, table, stride, column, batch->rows);
    batch->model->kernels->weighted_sum(out, batch->rows, batch->values + batch->starts[i], n,
                                        width);
}

void dcme_batch_scores(const dcme_batch *batch, real *scores) {
    const dcme_linear *model = batch->model;
    DCME_CLEAR(scores, batch->count * model->stride);
    for (int64_t column = 0; column < model->stride; column += DCME_COLUMNS)
        for (int64_t d = 0; d < batch->count; d++)
            dcme_batch_multiply(batch, d, model->weights, model->stride, column,
                                dcme_min(model->stride - column, DCME_COLUMNS),
                                scores + d * model->stride + column);
}

void dcme_project(const dcme_linear *model, const real *alpha, int64_t column, int64_t width,
                  real *out, int64_t step) {
    real *rows[ROWS], products[ROWS];
    for (int64_t f = 0, n; f <= model->features; f += n) {
        n = dcme_min(model->features + 1 - f, ROWS);
        for (int64_t i = 0; i < n; i++)
            rows[i] = model->weights + (f + i) * model->stride + column;
        dcme_dots(model->kernels, products, alpha, rows, n, width);
        for (int64_t i = 0; i < n; i++)
            out[(f + i) * step] = products[i];
    }
}

double dcme_softmax(real *scores, const dcme_linear *model) {
    real largest = scores[0];
    for (int64_t j = 1; j < model->classes; j++)
        largest = scores[j] > largest ? scores[j] : largest;
    dcme_exponentials(model->kernels, scores, scores, largest, model->classes);
    double total = dcme_total(scores, model->classes);
    dcme_scale(scores, (real)(1 / total), scores, model->classes);
    DCME_CLEAR(scores + model->classes, model->stride - model->classes);
    return largest + log(total);
}

double dcme_softmax_errors(real *scores, int32_t target, const dcme_linear *model) {
    real score = scores[target];
    double partition = dcme_softmax(scores, model);
    dcme_scale(scores, -1, scores, model->classes);
    scores[target] += 1;
    return score - partition;
}
