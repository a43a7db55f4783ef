/* See class_clusters.h. */
#include "classify/class_clusters.h"

#include <math.h>
#include <string.h>

enum { ROWS = 64 }; /* rows that a kernel is handed at a time */

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

int64_t dcme_class_cluster_columns(const dcme_class_clusters *clusters, int64_t k) {
    return smaller(clusters->width, clusters->problem->model->stride - k * clusters->width);
}

int64_t dcme_class_cluster_classes(const dcme_class_clusters *clusters, int64_t k) {
    return smaller(clusters->width, clusters->problem->model->classes - k * clusters->width);
}

/* Square and u of a centre that has just been made, of this entropy. */
static void update_moments(dcme_class_clusters *clusters, int64_t k, real entropy) {
    const dcme_linear *model = clusters->problem->model;
    real *alpha = clusters->alpha + k * clusters->width, *rows[ROWS], products[ROWS];
    double square = 0;
    for (int64_t j = 0; j < dcme_class_cluster_classes(clusters, k); j++)
        square += (double)alpha[j] * (double)alpha[j];
    clusters->entropy[k] = entropy;
    clusters->square[k] = (real)square;
    for (int64_t f = 0, n; f < clusters->features; f += n) {
        for (n = 0; n < ROWS && f + n < clusters->features; n++)
            rows[n] = model->weights + (f + n) * model->stride + k * clusters->width;
        model->kernels->dots(products, alpha, rows, n, dcme_class_cluster_columns(clusters, k));
        for (int64_t i = 0; i < n; i++)
            clusters->table[(f + i) * 2 * clusters->stride + k] = products[i];
    }
}

static void start(dcme_class_clusters *clusters, int64_t k) {
    const int64_t *counts = clusters->problem->counts + k * clusters->width;
    real *alpha = clusters->alpha + k * clusters->width;
    int64_t classes = dcme_class_cluster_classes(clusters, k);
    double total = 0;
    for (int64_t j = 0; j < classes; j++)
        total += (double)counts[j];
    for (int64_t j = 0; j < classes; j++)
        alpha[j] = (real)((double)counts[j] / total);
    atomic_init(&clusters->busy[k], 0);
    update_moments(clusters, k, dcme_entropy(alpha, classes));
}

void dcme_class_clusters_open(dcme_class_clusters *c, dcme_arena *arena,
                              const dcme_problem *problem) {
    int64_t stride = problem->model->stride, lines = stride / DCME_PAD;
    int64_t most = problem->options->class_clusters, each = (lines + most - 1) / most;
    c->problem = problem;
    c->width = each * DCME_PAD;
    c->count = (lines + each - 1) / each;
    c->stride = dcme_stride(c->count);
    c->features = problem->model->features + 1;
    c->table = dcme_take(arena, c->features * 2 * c->stride, sizeof *c->table);
    c->alpha = dcme_take(arena, stride, sizeof *c->alpha);
    c->entropy = dcme_take(arena, c->stride, sizeof *c->entropy);
    c->square = dcme_take(arena, c->stride, sizeof *c->square);
    c->weight = dcme_take(arena, c->stride, sizeof *c->weight);
    c->busy = dcme_take(arena, c->count, sizeof *c->busy);
    dcme_save(arena, c->table, c->features * 2 * c->stride, sizeof *c->table, 0);
    dcme_save(arena, c->alpha, stride, sizeof *c->alpha, 0);
    dcme_save(arena, c->entropy, c->stride, sizeof *c->entropy, 0);
    dcme_save(arena, c->square, c->stride, sizeof *c->square, 0);
    dcme_save(arena, c->weight, c->stride, sizeof *c->weight, 0);
    for (int64_t k = 0; arena->status == DCME_OK && k < c->count; k++)
        start(c, k);
}

void dcme_class_clusters_bounds(const dcme_class_clusters *clusters, dcme_batch *batch, int64_t d,
                                real *products, real *bounds) {
    int64_t stride = clusters->stride;
    int64_t n = dcme_batch_rows(batch, d, clusters->table, 2 * stride, 0, batch->rows);
    memset(products, 0, (size_t)(2 * stride) * sizeof *products);
    batch->model->kernels->weighted_sum(products, batch->rows, batch->values + batch->starts[d], n,
                                        2 * stride);
    for (int64_t k = 0; k < clusters->count; k++)
        bounds[k] = products[k] - clusters->square[k] * products[stride + k] + clusters->entropy[k];
    for (int64_t k = clusters->count; k < stride; k++)
        bounds[k] = -INFINITY;
}

/* W -= owed_k alpha_k, and scores = W' mean of the x owed. */
static void fold(dcme_class_clusters *clusters, int64_t k, real *scores) {
    const dcme_linear *model = clusters->problem->model;
    int64_t columns = dcme_class_cluster_columns(clusters, k);
    real *alpha = clusters->alpha + k * clusters->width, *rows[ROWS], steps[ROWS];
    real share = -1 / clusters->weight[k];
    clusters->weight[k] = 0;
    memset(scores, 0, (size_t)columns * sizeof *scores);
    for (int64_t f = 0; f < clusters->features;) {
        int64_t n = 0;
        for (; f < clusters->features && n < ROWS; f++) {
            real *owed = clusters->table + (2 * f + 1) * clusters->stride + k;
            if (*owed == 0)
                continue;
            rows[n] = model->weights + f * model->stride + k * clusters->width;
            steps[n++] = -*owed;
            *owed = 0;
        }
        model->kernels->rank1_update(rows, steps, alpha, n, columns);
        for (int64_t i = 0; i < n; i++)
            steps[i] *= share;
        model->kernels->weighted_sum(scores, rows, steps, n, columns);
    }
}

void dcme_class_cluster_update(dcme_class_clusters *clusters, int64_t k, real *scratch) {
    if (!(clusters->weight[k] > 0) || atomic_exchange(&clusters->busy[k], 1))
        return; /* nothing is pending, or another thread holds the lock */
    fold(clusters, k, scratch);
    update_moments(clusters, k,
                   dcme_soften(clusters->problem->model->kernels,
                               clusters->alpha + k * clusters->width, scratch,
                               dcme_class_cluster_classes(clusters, k)));
    atomic_store(&clusters->busy[k], 0);
}

void dcme_class_clusters_fold(dcme_class_clusters *clusters) {
    const dcme_linear *model = clusters->problem->model;
    for (int64_t f = 0; f < clusters->features; f++) {
        real *u = clusters->table + 2 * f * clusters->stride, *owed = u + clusters->stride;
        for (int64_t k = 0; k < clusters->count; k++) {
            int64_t column = k * clusters->width;
            dcme_axpy(model->kernels, model->weights + f * model->stride + column, -owed[k],
                      clusters->alpha + column, dcme_class_cluster_columns(clusters, k));
            u[k] -= owed[k] * clusters->square[k];
            owed[k] = 0;
        }
    }
    memset(clusters->weight, 0, (size_t)clusters->stride * sizeof *clusters->weight);
}

void dcme_class_clusters_shrink(dcme_class_clusters *clusters, real factor) {
    int64_t count = (clusters->features - 1) * 2 * clusters->stride;
    for (int64_t i = 0; i < count; i++)
        clusters->table[i] *= factor;
}
