/* See clusters.h. Offline passes run over the output table in order: bandwidth, not latency. */
#include "objectives/clusters.h"

#include <stdlib.h>
#include <string.h>

int64_t dcme_output_rows(const dcme_model *model, int64_t j, real **rows) {
    int64_t n = model->items - j < DCME_ROWS ? model->items - j : DCME_ROWS;
    for (int64_t i = 0; i < n; i++)
        rows[i] = model->output + (j + i) * model->stride;
    return n;
}

int64_t dcme_scratch_length(const dcme_model *model) {
    return model->items > model->stride ? model->items : model->stride;
}

/* u = V alpha, the constant of (9) and the top items of a centre that has just been made. */
static void settle(dcme_clusters *clusters, int64_t k, real entropy, real *u) {
    const dcme_model *model = clusters->model;
    dcme_cluster *cluster = &clusters->clusters[k];
    real *rows[DCME_ROWS];
    memset(u, 0, (size_t)model->stride * sizeof *u);
    for (int64_t j = 0; j < model->items; j += DCME_ROWS) {
        int64_t n = dcme_output_rows(model, j, rows);
        model->kernels->combine(u, rows, cluster->alpha + j, n, model->stride);
    }
    memcpy(clusters->u_rows[k], u, (size_t)model->stride * sizeof *u);
    double prior = 0;
    for (int64_t j = 0; j < model->items; j++)
        prior += (double)cluster->alpha[j] * (double)clusters->prior[j];
    clusters->entropy[k] = entropy + (real)prior;
    dcme_cluster_choose_top(cluster, model->items, clusters->top_items);
}

void dcme_cluster_move(dcme_clusters *clusters, int64_t k, const real *h_mean, real *scratch) {
    const dcme_model *model = clusters->model;
    real *rows[DCME_ROWS];
    for (int64_t j = 0; j < model->items; j += DCME_ROWS) {
        int64_t n = dcme_output_rows(model, j, rows);
        model->kernels->dots(scratch + j, h_mean, rows, n, model->stride);
    }
    for (int64_t j = 0; j < model->items; j++)
        scratch[j] += clusters->prior[j];
    real entropy = dcme_soften(model->kernels, clusters->clusters[k].alpha, scratch, model->items);
    settle(clusters, k, entropy, scratch);
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
    real *scratch = dcme_allocate(dcme_scratch_length(model), sizeof *scratch);
    dcme_status status = scratch ? DCME_OK : DCME_NO_MEMORY;
    for (int64_t k = 0; status == DCME_OK && k < count; k++) {
        clusters->u_rows[k] = clusters->u + k * model->stride;
        status = dcme_cluster_open(&clusters->clusters[k], model->items, clusters->top_items);
        if (status == DCME_OK) {
            dcme_cluster_start(&clusters->clusters[k], model->counts, model->items, options->seed,
                               k);
            settle(clusters, k, dcme_entropy(clusters->clusters[k].alpha, model->items), scratch);
        }
    }
    free(scratch);
    return status;
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

int64_t dcme_member_bytes(const dcme_clusters *clusters) {
    int64_t sums = 4 * clusters->count * clusters->model->stride;
    return (sums + 3 * dcme_scratch_length(clusters->model)) * (int64_t)sizeof(real);
}

dcme_status dcme_pending_open(dcme_pending **pending, int64_t clusters, int64_t stride) {
    dcme_pending *p = dcme_allocate_zeros(clusters, sizeof *p);
    *pending = p;
    for (int64_t k = 0; p && k < clusters; k++) {
        p[k].h = dcme_allocate_zeros(stride, sizeof *p[k].h);
        if (!p[k].h)
            return DCME_NO_MEMORY;
    }
    return p ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_pending_close(dcme_pending *pending, int64_t clusters) {
    for (int64_t k = 0; pending && k < clusters; k++)
        free(pending[k].h);
    free(pending);
}

void dcme_pending_add(dcme_pending *pending, const dcme_model *model, const real *h, real weight) {
    model->kernels->axpy(pending->h, weight, h, model->stride);
    pending->weight += weight;
    pending->count++;
}

void dcme_pending_mean(const dcme_pending *pending, const dcme_model *model, real *mean) {
    memset(mean, 0, (size_t)model->stride * sizeof *mean);
    model->kernels->axpy(mean, (real)(1 / pending->weight), pending->h, model->stride);
}

void dcme_pending_clear(dcme_pending *pending, const dcme_model *model) {
    memset(pending->h, 0, (size_t)model->stride * sizeof *pending->h);
    pending->weight = 0;
    pending->count = 0;
}

void dcme_clusters_state(dcme_clusters *clusters, dcme_state *state) {
    int64_t items = clusters->model->items;
    dcme_state_add(state, clusters->u, clusters->count * clusters->model->stride,
                   sizeof *clusters->u);
    dcme_state_add(state, clusters->entropy, clusters->count, sizeof *clusters->entropy);
    for (int64_t k = 0; k < clusters->count; k++) {
        dcme_cluster *cluster = &clusters->clusters[k];
        dcme_state_add(state, cluster->alpha, items, sizeof *cluster->alpha);
        dcme_state_add(state, cluster->top, clusters->top_items, sizeof *cluster->top);
        dcme_state_add(state, cluster->is_top, items, sizeof *cluster->is_top);
    }
}

void dcme_pending_state(dcme_pending *pending, int64_t clusters, int64_t stride,
                        dcme_state *state) {
    for (int64_t k = 0; k < clusters; k++) {
        dcme_state_add(state, &pending[k].count, 1, sizeof pending[k].count);
        dcme_state_add(state, &pending[k].weight, 1, sizeof pending[k].weight);
        dcme_state_add(state, pending[k].h, stride, sizeof *pending[k].h);
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
