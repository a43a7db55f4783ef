/* See groups.h. */
#include "classify/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 }; /* rows that a kernel is handed at a time */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t dcme_group_columns(const dcme_groups *groups, int64_t k) {
    return least(groups->width, groups->problem->model->stride - k * groups->width);
}

int64_t dcme_group_classes(const dcme_groups *groups, int64_t k) {
    return least(groups->width, groups->problem->model->classes - k * groups->width);
}

/* Square and u of a centre that has just been made, of this entropy. */
static void settle(dcme_groups *groups, int64_t k, real entropy) {
    const dcme_linear *model = groups->problem->model;
    real *alpha = groups->alpha + k * groups->width, *rows[ROWS], products[ROWS];
    double square = 0;
    for (int64_t j = 0; j < dcme_group_classes(groups, k); j++)
        square += (double)alpha[j] * (double)alpha[j];
    groups->entropy[k] = entropy;
    groups->square[k] = (real)square;
    for (int64_t f = 0, n; f < groups->features; f += n) {
        for (n = 0; n < ROWS && f + n < groups->features; n++)
            rows[n] = model->weights + (f + n) * model->stride + k * groups->width;
        model->kernels->dots(products, alpha, rows, n, dcme_group_columns(groups, k));
        for (int64_t i = 0; i < n; i++)
            groups->table[(f + i) * 2 * groups->stride + k] = products[i];
    }
}

static void start(dcme_groups *groups, int64_t k) {
    const int64_t *counts = groups->problem->counts + k * groups->width;
    real *alpha = groups->alpha + k * groups->width;
    int64_t classes = dcme_group_classes(groups, k);
    double total = 0;
    for (int64_t j = 0; j < classes; j++)
        total += (double)counts[j];
    for (int64_t j = 0; j < classes; j++)
        alpha[j] = (real)((double)counts[j] / total);
    atomic_init(&groups->busy[k], 0);
    settle(groups, k, dcme_entropy(alpha, classes));
}

dcme_status dcme_groups_open(dcme_groups *groups, const dcme_problem *problem) {
    int64_t stride = problem->model->stride, lines = stride / DCME_PAD;
    int64_t each = (lines + problem->options->clusters - 1) / problem->options->clusters;
    groups->problem = problem;
    groups->width = each * DCME_PAD;
    groups->count = (lines + each - 1) / each;
    groups->stride = dcme_stride(groups->count);
    groups->features = problem->model->features + 1;
    groups->table =
        dcme_allocate_zeros(groups->features * 2 * groups->stride, sizeof *groups->table);
    groups->alpha = dcme_allocate_zeros(stride, sizeof *groups->alpha);
    groups->entropy = dcme_allocate_zeros(groups->stride, sizeof *groups->entropy);
    groups->square = dcme_allocate_zeros(groups->stride, sizeof *groups->square);
    groups->weight = dcme_allocate_zeros(groups->stride, sizeof *groups->weight);
    groups->busy = dcme_allocate_zeros(groups->count, sizeof *groups->busy);
    if (!groups->table || !groups->alpha || !groups->entropy || !groups->square ||
        !groups->weight || !groups->busy)
        return DCME_NO_MEMORY;
    for (int64_t k = 0; k < groups->count; k++)
        start(groups, k);
    return DCME_OK;
}

void dcme_groups_close(dcme_groups *groups) {
    free(groups->table), free(groups->alpha), free(groups->entropy), free(groups->square);
    free(groups->weight), free(groups->busy);
}

void dcme_groups_bounds(const dcme_groups *groups, dcme_batch *batch, int64_t d, real *products,
                        real *bounds) {
    int64_t stride = groups->stride;
    int64_t n = dcme_batch_rows(batch, d, groups->table, 2 * stride, 0, batch->rows);
    memset(products, 0, (size_t)(2 * stride) * sizeof *products);
    batch->model->kernels->combine(products, batch->rows, batch->values + batch->starts[d], n,
                                   2 * stride);
    for (int64_t k = 0; k < groups->count; k++)
        bounds[k] = products[k] - groups->square[k] * products[stride + k] + groups->entropy[k];
    for (int64_t k = groups->count; k < stride; k++)
        bounds[k] = -INFINITY;
}

/* W -= owed_k alpha_k, and scores = W' mean of the x owed. */
static void fold(dcme_groups *groups, int64_t k, real *scores) {
    const dcme_linear *model = groups->problem->model;
    int64_t columns = dcme_group_columns(groups, k);
    real *alpha = groups->alpha + k * groups->width, *rows[ROWS], steps[ROWS];
    real share = -1 / groups->weight[k];
    groups->weight[k] = 0;
    memset(scores, 0, (size_t)columns * sizeof *scores);
    for (int64_t f = 0; f < groups->features;) {
        int64_t n = 0;
        for (; f < groups->features && n < ROWS; f++) {
            real *owed = groups->table + (2 * f + 1) * groups->stride + k;
            if (*owed == 0)
                continue;
            rows[n] = model->weights + f * model->stride + k * groups->width;
            steps[n++] = -*owed;
            *owed = 0;
        }
        model->kernels->push(rows, steps, alpha, n, columns);
        for (int64_t i = 0; i < n; i++)
            steps[i] *= share;
        model->kernels->combine(scores, rows, steps, n, columns);
    }
}

void dcme_group_update(dcme_groups *groups, int64_t k, real *scratch) {
    if (!(groups->weight[k] > 0) || atomic_exchange(&groups->busy[k], 1))
        return; /* nothing is owed, or another thread is at it */
    fold(groups, k, scratch);
    settle(groups, k,
           dcme_soften(groups->problem->model->kernels, groups->alpha + k * groups->width, scratch,
                       dcme_group_classes(groups, k)));
    atomic_store(&groups->busy[k], 0);
}

void dcme_groups_fold(dcme_groups *groups) {
    const dcme_linear *model = groups->problem->model;
    for (int64_t f = 0; f < groups->features; f++) {
        real *u = groups->table + 2 * f * groups->stride, *owed = u + groups->stride;
        for (int64_t k = 0; k < groups->count; k++) {
            int64_t column = k * groups->width;
            model->kernels->axpy(model->weights + f * model->stride + column, -owed[k],
                                 groups->alpha + column, dcme_group_columns(groups, k));
            u[k] -= owed[k] * groups->square[k];
            owed[k] = 0;
        }
    }
    memset(groups->weight, 0, (size_t)groups->stride * sizeof *groups->weight);
}

void dcme_groups_shrink(dcme_groups *groups, real factor) {
    int64_t count = (groups->features - 1) * 2 * groups->stride;
    for (int64_t i = 0; i < count; i++)
        groups->table[i] *= factor;
}
