/* See class_clusters.h. */
#include "classify/class_clusters.h"

#include <math.h>

enum { ROWS = 64 }; /* rows that a kernel is handed at a time */

int64_t dcme_class_cluster_columns(const dcme_class_clusters *clusters, int64_t k) {
    return dcme_min(clusters->width, clusters->problem->model->stride - k * clusters->width);
}

int64_t dcme_class_cluster_classes(const dcme_class_clusters *clusters, int64_t k) {
    return dcme_min(clusters->width, clusters->problem->model->classes - k * clusters->width);
}

/* Square and u of a center that has just been made, of this entropy. */
static void update_moments(dcme_class_clusters *clusters, int64_t k, real entropy) {
    real *alpha = clusters->alpha + k * clusters->width;
    double square = 0;
    for (int64_t j = 0; j < dcme_class_cluster_classes(clusters, k); j++)
        square += (double)alpha[j] * (double)alpha[j];
    clusters->entropy[k] = entropy;
    clusters->square[k] = (real)square;
    dcme_project(clusters->problem->model, alpha, k * clusters->width,
                 dcme_class_cluster_columns(clusters, k), clusters->table + k,
                 2 * clusters->stride);
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
    DCME_TAKE_SAVED(arena, c->table, c->features * 2 * c->stride, 0);
    DCME_TAKE_SAVED(arena, c->alpha, stride, 0);
    DCME_TAKE_SAVED(arena, c->entropy, c->stride, 0);
    DCME_TAKE_SAVED(arena, c->square, c->stride, 0);
    DCME_TAKE_SAVED(arena, c->weight, c->stride, 0);
    DCME_TAKE(arena, c->busy, c->count);
    for (int64_t k = 0; arena->status == DCME_OK && k < c->count; k++)
        start(c, k);
}

void dcme_class_clusters_bounds(const dcme_class_clusters *clusters, dcme_batch *batch, int64_t d,
                                real *products, real *bounds) {
    int64_t stride = clusters->stride;
    DCME_CLEAR(products, 2 * stride);
    dcme_batch_multiply(batch, d, clusters->table, 2 * stride, 0, 2 * stride, products);
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
    DCME_CLEAR(scores, columns);
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
    DCME_CLEAR(clusters->weight, clusters->stride);
}

void dcme_class_clusters_shrink(dcme_class_clusters *clusters, real factor) {
    dcme_scale(clusters->table, factor, clusters->table,
               (clusters->features - 1) * 2 * clusters->stride);
}
