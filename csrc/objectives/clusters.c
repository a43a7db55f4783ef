/* See clusters.h. Offline passes run over the output table in order: bandwidth, not latency. */
#include "objectives/clusters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = DCME_AT_ONCE }; /* rows that the offline passes hand to a kernel at a time */

/* Fill rows[0 .. n) with the output rows from item j on; return n <= ROWS. */
static int64_t output_rows(const dcme_model *model, int64_t j, real **rows) {
    int64_t n = model->items - j < ROWS ? model->items - j : ROWS;
    for (int64_t i = 0; i < n; i++)
        rows[i] = model->output + (j + i) * model->stride;
    return n;
}

/* The constant of (9) and the top items of a centre that has just been made. */
static void update_moments(dcme_clusters *clusters, int64_t k, real entropy) {
    dcme_cluster *cluster = &clusters->clusters[k];
    double prior = 0;
    for (int64_t j = 0; j < clusters->model->items; j++)
        prior += (double)cluster->alpha[j] * (double)clusters->prior[j];
    clusters->entropy[k] = entropy + (real)prior;
    dcme_cluster_choose_top(cluster, cluster->alpha, clusters->model->items, clusters->top_items);
}

/* The first centre of cluster k; the rows may be those of an earlier run. */
static void start(dcme_clusters *clusters, int64_t k, int64_t seed) {
    const dcme_model *model = clusters->model;
    dcme_cluster *cluster = &clusters->clusters[k];
    real *rows[ROWS], *u = clusters->u_rows[k];
    dcme_cluster_start(cluster, model->counts, model->items, seed, k);
    memset(u, 0, (size_t)model->stride * sizeof *u);
    for (int64_t j = 0; j < model->items; j += ROWS) {
        int64_t n = output_rows(model, j, rows);
        model->kernels->weighted_sum(u, rows, cluster->alpha + j, n, model->stride);
    }
    update_moments(clusters, k, dcme_entropy(cluster->alpha, model->items));
}

/* v_j -= alpha_j owed for n items from j on, but not the top ones (17b). */
static void update_rows(const dcme_clusters *clusters, const dcme_cluster *cluster,
                        const real *owed, real *const *rows, int64_t j, int64_t n) {
    real weights[ROWS];
    for (int64_t i = 0; i < n; i++)
        weights[i] = cluster->is_top[j + i] ? 0 : -cluster->alpha[j + i];
    clusters->model->kernels->rank1_update(rows, weights, owed, n, clusters->model->stride);
}

/* u += sum of e^(score - score of the best item) v over n items from j on; a new best one shrinks
 * what was there. Return the best item so far. */
static int64_t add_rows(const dcme_model *model, real *u, const real *scores, int64_t best,
                        real **rows, int64_t j, int64_t n) {
    real weights[ROWS], before = scores[best];
    for (int64_t i = j; i < j + n; i++)
        best = scores[i] > scores[best] ? i : best;
    if (scores[best] > before)
        model->kernels->mean(u, (real)exp((double)(before - scores[best])), &u, 1, model->stride);
    dcme_exponentials(model->kernels, weights, scores + j, scores[best], n);
    model->kernels->weighted_sum(u, rows, weights, n, model->stride);
    return best;
}

/* All that is done with rows is done while a few of them are in the cache: one pass over memory. */
void dcme_cluster_move(dcme_clusters *clusters, int64_t k, const dcme_cluster_sums *sums,
                       const real *owed, dcme_scratch *scratch) {
    const dcme_model *model = clusters->model;
    dcme_cluster *cluster = &clusters->clusters[k];
    real *rows[ROWS], *scores = scratch->scores, *mean = scratch->mean, *u = scratch->u;
    int64_t best = 0;
    memset(mean, 0, (size_t)model->stride * sizeof *mean);
    memset(u, 0, (size_t)model->stride * sizeof *u);
    model->kernels->axpy(mean, (real)(1 / sums->weight), sums->h, model->stride);
    for (int64_t j = 0; j < model->items; j += ROWS) {
        int64_t n = output_rows(model, j, rows);
        if (owed)
            update_rows(clusters, cluster, owed, rows, j, n);
        model->kernels->dots(scores + j, mean, rows, n, model->stride);
        for (int64_t i = j; i < j + n; i++)
            scores[i] += clusters->prior[i];
        best = add_rows(model, u, scores, best, rows, j, n);
    }
    real entropy = dcme_soften(model->kernels, cluster->alpha, scores, model->items);
    /* alpha of the best item is e^0 by the sum of all */
    model->kernels->mean(clusters->u_rows[k], cluster->alpha[best], &u, 1, model->stride);
    update_moments(clusters, k, entropy);
}

dcme_status dcme_scratch_open(dcme_scratch *scratch, const dcme_model *model) {
    scratch->scores = dcme_allocate(model->items, sizeof *scratch->scores);
    scratch->mean = dcme_allocate(model->stride, sizeof *scratch->mean);
    scratch->u = dcme_allocate(model->stride, sizeof *scratch->u);
    return scratch->scores && scratch->mean && scratch->u ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_scratch_close(dcme_scratch *scratch) {
    free(scratch->scores);
    free(scratch->mean);
    free(scratch->u);
}

dcme_status dcme_clusters_open(dcme_clusters *clusters, const dcme_model *model,
                               const dcme_train_options *options) {
    int64_t count = options->clusters;
    clusters->model = model;
    clusters->count = count;
    clusters->top_items = options->top_items < model->items ? options->top_items : model->items;
    clusters->threshold = options->beta * (double)model->items;
    clusters->prior = dcme_allocate(model->items, sizeof *clusters->prior);
    clusters->u = dcme_allocate(count * model->stride, sizeof *clusters->u);
    clusters->entropy = dcme_allocate(count, sizeof *clusters->entropy);
    clusters->u_rows = dcme_allocate(count, sizeof *clusters->u_rows);
    clusters->clusters = dcme_allocate_zeros(count, sizeof *clusters->clusters);
    if (!clusters->prior || !clusters->u || !clusters->entropy || !clusters->u_rows ||
        !clusters->clusters)
        return DCME_NO_MEMORY;
    dcme_prior_fill(clusters->prior, model, options->prior);
    for (int64_t k = 0; k < count; k++) {
        clusters->u_rows[k] = clusters->u + k * model->stride;
        if (dcme_cluster_open(&clusters->clusters[k], model->items, clusters->top_items) != DCME_OK)
            return DCME_NO_MEMORY;
        start(clusters, k, options->seed);
    }
    return DCME_OK;
}

void dcme_clusters_close(dcme_clusters *clusters) {
    for (int64_t k = 0; clusters->clusters && k < clusters->count; k++)
        dcme_cluster_close(&clusters->clusters[k]);
    free(clusters->clusters);
    free(clusters->prior);
    free(clusters->u);
    free(clusters->entropy);
    free(clusters->u_rows);
}

dcme_status dcme_clusters_fail(dcme_error *error, const dcme_model *model,
                               const dcme_train_options *options) {
    int64_t item = options->dcme_update == DCME_PAPER ? 5 : 17; /* bytes in a cluster */
    return dcme_no_memory(error, options->clusters * model->items * item, "the clusters",
                          "lower --clusters or --max-vocab");
}

int64_t dcme_thread_bytes(const dcme_clusters *clusters) {
    int64_t sums = 4 * clusters->count * clusters->model->stride;
    return (sums + 3 * clusters->model->items) * (int64_t)sizeof(real);
}

dcme_status dcme_cluster_sums_open(dcme_cluster_sums **sums, int64_t clusters, int64_t stride) {
    dcme_cluster_sums *p = dcme_allocate_zeros(clusters, sizeof *p);
    *sums = p;
    for (int64_t k = 0; p && k < clusters; k++) {
        p[k].h = dcme_allocate_zeros(stride, sizeof *p[k].h);
        if (!p[k].h)
            return DCME_NO_MEMORY;
    }
    return p ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_cluster_sums_close(dcme_cluster_sums *sums, int64_t clusters) {
    for (int64_t k = 0; sums && k < clusters; k++)
        free(sums[k].h);
    free(sums);
}

void dcme_cluster_sums_add(dcme_cluster_sums *sums, const dcme_model *model, const real *h,
                           real weight) {
    model->kernels->axpy(sums->h, weight, h, model->stride);
    sums->weight += weight;
    sums->count++;
}

void dcme_cluster_sums_clear(dcme_cluster_sums *sums, const dcme_model *model) {
    memset(sums->h, 0, (size_t)model->stride * sizeof *sums->h);
    sums->weight = 0;
    sums->count = 0;
}

void dcme_clusters_state(dcme_clusters *clusters, dcme_state *state) {
    int64_t items = clusters->model->items;
    dcme_state_add(state, clusters->u, clusters->count * clusters->model->stride,
                   sizeof *clusters->u);
    dcme_state_add(state, clusters->entropy, clusters->count, sizeof *clusters->entropy);
    for (int64_t k = 0; k < clusters->count; k++)
        dcme_cluster_state(&clusters->clusters[k], items, clusters->top_items, state);
}

void dcme_cluster_sums_state(dcme_cluster_sums *sums, int64_t clusters, int64_t stride,
                             dcme_state *state) {
    for (int64_t k = 0; k < clusters; k++) {
        dcme_state_add(state, &sums[k].count, 1, sizeof sums[k].count);
        dcme_state_add(state, &sums[k].weight, 1, sizeof sums[k].weight);
        dcme_state_add(state, sums[k].h, stride, sizeof *sums[k].h);
    }
}

void dcme_clusters_centre(const dcme_clusters *clusters, int64_t k, real *alpha) {
    memcpy(alpha, clusters->clusters[k].alpha, (size_t)clusters->model->items * sizeof *alpha);
}

int64_t dcme_clusters_decode(const dcme_clusters *clusters, const real *h, real *scores) {
    clusters->model->kernels->dots(scores, h, clusters->u_rows, clusters->count,
                                   clusters->model->stride);
    for (int64_t k = 0; k < clusters->count; k++)
        scores[k] += clusters->entropy[k];
    return dcme_cluster_best(clusters->clusters, scores, clusters->count);
}
