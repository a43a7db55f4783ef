/* See word_clusters.h. Offline passes visit the output table in order. */
#include "objectives/word_clusters.h"

#include <math.h>

enum { ROWS = DCME_AT_ONCE }; /* rows per kernel call in offline passes */

/* Fill rows[0 .. n) with the output rows starting at item j; return n <= ROWS. */
static int64_t output_rows(const dcme_model *model, int64_t j, real **rows) {
    int64_t n = dcme_min(model->items - j, ROWS);
    for (int64_t i = 0; i < n; i++)
        rows[i] = model->output + (j + i) * model->stride;
    return n;
}

/* Compute the constant in (9) and the top items of a new center. */
static void renew(dcme_clusters *clusters, int64_t k, real entropy) {
    dcme_center *cluster = &clusters->clusters[k];
    dcme_center_choose_top(cluster, clusters->model->items, clusters->top_items);
    double prior = 0;
    for (int64_t j = 0; j < clusters->model->items; j++)
        prior += cluster->alpha[j] * (double)clusters->prior[j];
    clusters->entropy[k] = entropy + (real)prior;
}

/* Initialize the center of cluster k; the rows may come from an earlier run. */
static void start(dcme_clusters *clusters, int64_t k, int64_t seed) {
    const dcme_model *model = clusters->model;
    dcme_center *cluster = &clusters->clusters[k];
    real *rows[ROWS], *u = clusters->u_rows[k];
    dcme_center_start(cluster, model->counts, model->items, seed, k);
    DCME_CLEAR(u, model->stride);
    for (int64_t j = 0; j < model->items; j += ROWS) {
        int64_t n = output_rows(model, j, rows);
        model->kernels->weighted_sum(u, rows, cluster->alpha + j, n, model->stride);
    }
    renew(clusters, k, dcme_entropy(cluster->alpha, model->items));
}

/* v_j -= alpha_j sum for n items from j on, except for the top items (17b). */
static void update_rows(const dcme_clusters *clusters, const dcme_center *cluster, const real *sum,
                        real *const *rows, int64_t j, int64_t n) {
    real weights[ROWS];
    for (int64_t i = 0; i < n; i++)
        weights[i] = cluster->is_top[j + i] ? 0 : -cluster->alpha[j + i];
    dcme_rank1_update(clusters->model->kernels, rows, weights, sum, n, clusters->model->stride);
}

/* u += sum of e^(score - best score) v over n items from j on; a new best score rescales the sum so
 * far. Return the best item so far. */
static int64_t add_rows(const dcme_model *model, real *u, const real *scores, int64_t best,
                        real **rows, int64_t j, int64_t n) {
    real weights[ROWS], before = scores[best];
    for (int64_t i = j; i < j + n; i++)
        best = scores[i] > scores[best] ? i : best;
    if (scores[best] > before)
        dcme_scale(u, (real)exp(before - scores[best]), u, model->stride);
    dcme_exponentials(model->kernels, weights, scores + j, scores[best], n);
    model->kernels->weighted_sum(u, rows, weights, n, model->stride);
    return best;
}

/* Do all work on a few rows while they are in the cache, so that one pass over the table
 * suffices. */
void dcme_cluster_move(dcme_clusters *clusters, int64_t k, const dcme_cluster_sums *sums,
                       dcme_scratch *scratch) {
    const dcme_model *model = clusters->model;
    dcme_center *cluster = &clusters->clusters[k];
    real *rows[ROWS], *scores = scratch->scores, *mean = scratch->mean, *u = scratch->u;
    int64_t best = 0;
    DCME_CLEAR(mean, model->stride);
    DCME_CLEAR(u, model->stride);
    dcme_axpy(model->kernels, mean, (real)(1 / sums->weight), sums->h, model->stride);
    for (int64_t j = 0; j < model->items; j += ROWS) {
        int64_t n = output_rows(model, j, rows);
        update_rows(clusters, cluster, sums->h, rows, j, n);
        dcme_dots(model->kernels, scores + j, mean, rows, n, model->stride);
        for (int64_t i = j; i < j + n; i++)
            scores[i] += clusters->prior[i];
        best = add_rows(model, u, scores, best, rows, j, n);
    }
    real entropy = dcme_soften(model->kernels, cluster->alpha, scores, model->items);
    /* alpha of the best item is e^0 divided by the sum */
    dcme_scale(clusters->u_rows[k], cluster->alpha[best], u, model->stride);
    renew(clusters, k, entropy);
}

void dcme_scratch_open(dcme_scratch *scratch, dcme_arena *arena, const dcme_model *model) {
    DCME_TAKE(arena, scratch->scores, model->items);
    DCME_TAKE(arena, scratch->mean, model->stride);
    DCME_TAKE(arena, scratch->u, model->stride);
}

void dcme_clusters_open(dcme_clusters *c, dcme_arena *arena, const dcme_model *model,
                        const dcme_train_options *options) {
    c->model = model;
    c->count = options->clusters;
    c->top_items = dcme_min(options->top_items, model->items);
    c->threshold = options->beta * model->items;
    DCME_TAKE(arena, c->prior, model->items);
    DCME_TAKE_SAVED(arena, c->u, c->count * model->stride, 0);
    DCME_TAKE_SAVED(arena, c->entropy, c->count, 0);
    DCME_TAKE(arena, c->u_rows, c->count);
    DCME_TAKE(arena, c->clusters, c->count);
    for (int64_t k = 0; c->clusters && k < c->count; k++)
        dcme_center_open(&c->clusters[k], arena, model->items, model->items, c->top_items);
    if (arena->status != DCME_OK)
        return;
    dcme_prior_add(c->prior, 1, model, options->prior);
    for (int64_t k = 0; k < c->count; k++) {
        c->u_rows[k] = c->u + k * model->stride;
        start(c, k, options->seed);
    }
}

double dcme_clusters_untrained_loss(const dcme_clusters *clusters) {
    real least = 0;
    for (int64_t j = 0; j < clusters->model->items; j++)
        least = clusters->prior[j] < least ? clusters->prior[j] : least;
    return log((double)clusters->model->items) - (double)least;
}

dcme_cluster_sums *dcme_cluster_sums_open(dcme_arena *arena, const dcme_clusters *clusters) {
    int64_t count = clusters->count, stride = clusters->model->stride;
    dcme_cluster_sums *sums = dcme_take(arena, count, sizeof *sums);
    real *h;
    DCME_TAKE_SAVED(arena, h, count * stride, 0);
    for (int64_t k = 0; h && k < count; k++) {
        sums[k].h = h + k * stride;
        DCME_SAVE(arena, sums[k].count);
        DCME_SAVE(arena, sums[k].weight);
    }
    return sums;
}

void dcme_cluster_sums_add(dcme_cluster_sums *sums, const dcme_model *model, const real *h,
                           real weight) {
    dcme_axpy(model->kernels, sums->h, weight, h, model->stride);
    sums->weight += weight;
    sums->count++;
}

void dcme_cluster_sums_clear(dcme_cluster_sums *sums, const dcme_model *model) {
    DCME_CLEAR(sums->h, model->stride);
    sums->weight = 0;
    sums->count = 0;
}

void dcme_clusters_center(const dcme_clusters *clusters, int64_t k, real *alpha) {
    DCME_COPY(alpha, clusters->clusters[k].alpha, clusters->model->items);
}

int64_t dcme_clusters_decode(const dcme_clusters *clusters, const real *h, real *scores) {
    dcme_dots(clusters->model->kernels, scores, h, clusters->u_rows, clusters->count,
              clusters->model->stride);
    for (int64_t k = 0; k < clusters->count; k++)
        scores[k] += clusters->entropy[k];
    return dcme_center_best(clusters->clusters, scores, clusters->count);
}
