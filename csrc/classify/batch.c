/* See batch.h. */
#include "classify/batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t dcme_widest(const dcme_sparse_rows *documents) {
    int64_t widest = 0;
    for (int64_t d = 0; d < documents->count; d++)
        if (documents->starts[d + 1] - documents->starts[d] > widest)
            widest = documents->starts[d + 1] - documents->starts[d];
    return widest + 1;
}

void dcme_batch_open(dcme_batch *batch, dcme_arena *arena, const dcme_linear *model, int64_t size,
                     int64_t widest) {
    batch->model = model;
    batch->size = size;
    batch->starts = dcme_take(arena, size + 1, sizeof *batch->starts);
    batch->features = dcme_take_unset(arena, size, widest * (int64_t)sizeof *batch->features);
    batch->values = dcme_take_unset(arena, size, widest * (int64_t)sizeof *batch->values);
    batch->targets = dcme_take(arena, size, sizeof *batch->targets);
    batch->numbers = dcme_take(arena, size, sizeof *batch->numbers);
    batch->weights = dcme_take(arena, size, sizeof *batch->weights);
    batch->rows = dcme_take(arena, widest, sizeof *batch->rows);
}

void dcme_columns_open(dcme_columns *columns, dcme_arena *arena, const dcme_linear *model,
                       int64_t size, int64_t widest) {
    int64_t features = model->features + 1;
    columns->feature = dcme_take(arena, features, sizeof *columns->feature);
    columns->starts = dcme_take(arena, features + 1, sizeof *columns->starts);
    columns->documents = dcme_take_unset(arena, size, widest * (int64_t)sizeof(int32_t));
    columns->values = dcme_take_unset(arena, size, widest * (int64_t)sizeof *columns->values);
    columns->place = dcme_take(arena, features, sizeof *columns->place);
    columns->rows = dcme_take(arena, size, sizeof *columns->rows);
    for (int64_t f = 0; columns->place && f < features; f++)
        columns->place[f] = -1;
}

void dcme_batch_clear(dcme_batch *batch) { batch->count = 0; }

void dcme_batch_add_instance(dcme_batch *batch, const dcme_sparse_rows *documents,
                             const dcme_instances *instances, int64_t i) {
    int64_t document = instances->documents[i];
    int64_t begin = documents->starts[document], n = documents->starts[document + 1] - begin;
    int64_t at = batch->starts[batch->count];
    if (n > 0) /* without any feature at all the arrays may be NULL */
        memcpy(batch->features + at, documents->features + begin,
               (size_t)n * sizeof *batch->features);
    if (n > 0)
        memcpy(batch->values + at, documents->values + begin, (size_t)n * sizeof *batch->values);
    batch->features[at + n] = (int32_t)batch->model->features;
    batch->values[at + n] = batch->model->bias;
    batch->numbers[batch->count] = i;
    batch->weights[batch->count] = instances->weights ? instances->weights[i] : 1;
    batch->targets[batch->count++] = instances->labels[instances->sets ? instances->sets[i] : i];
    batch->starts[batch->count] = at + n + 1;
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
    columns->starts[0] = 0; /* each becomes where the feature's values begin, then where they end */
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
        int64_t left = model->stride - column, width = left < DCME_COLUMNS ? left : DCME_COLUMNS;
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

void dcme_batch_scores(const dcme_batch *batch, int64_t begin, int64_t end, real *scores,
                       real **rows) {
    const dcme_linear *model = batch->model;
    memset(scores, 0, (size_t)((end - begin) * model->stride) * sizeof *scores);
    for (int64_t column = 0; column < model->stride; column += DCME_COLUMNS) {
        int64_t left = model->stride - column, width = left < DCME_COLUMNS ? left : DCME_COLUMNS;
        for (int64_t d = begin; d < end; d++) {
            int64_t n = dcme_batch_rows(batch, d, model->weights, model->stride, column, rows);
            model->kernels->weighted_sum(scores + (d - begin) * model->stride + column, rows,
                                         batch->values + batch->starts[d], n, width);
        }
    }
}

double dcme_softmax(real *scores, const dcme_linear *model) {
    static const real lowest = -87; /* negligible compared with the largest, exp(0) */
    real largest = scores[0];
    double total = 0;
    for (int64_t j = 1; j < model->classes; j++)
        largest = scores[j] > largest ? scores[j] : largest;
    for (int64_t j = 0; j < model->classes; j++) {
        real x = scores[j] - largest;
        scores[j] = x < lowest ? lowest : x;
    }
    model->kernels->exponential(scores, scores, model->classes);
    for (int64_t j = 0; j < model->classes; j++)
        total += (double)scores[j];
    real scale = (real)(1 / total);
    for (int64_t j = 0; j < model->classes; j++)
        scores[j] *= scale;
    for (int64_t j = model->classes; j < model->stride; j++)
        scores[j] = 0;
    return (double)largest + log(total);
}

double dcme_softmax_errors(real *scores, int32_t target, const dcme_linear *model) {
    real score = scores[target];
    double partition = dcme_softmax(scores, model);
    for (int64_t j = 0; j < model->classes; j++)
        scores[j] = -scores[j];
    scores[target] += 1;
    return (double)score - partition;
}
