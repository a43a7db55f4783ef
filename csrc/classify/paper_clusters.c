/* See paper_clusters.h. */
#include "classify/paper_clusters.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 }; /* rows that a kernel is handed at a time */

/* H, the top classes and u of a centre that has just been made. */
static void update_moments(dcme_paper_clusters *paper, int64_t k, real entropy) {
    const dcme_linear *model = paper->problem->model;
    real *alpha = paper->clusters[k].alpha, *rows[ROWS], products[ROWS];
    paper->entropy[k] = entropy;
    dcme_cluster_choose_top(&paper->clusters[k], alpha, model->classes, paper->top_items);
    for (int64_t f = 0, n; f < paper->features; f += n) {
        for (n = 0; n < ROWS && f + n < paper->features; n++)
            rows[n] = model->weights + (f + n) * model->stride;
        model->kernels->dots(products, alpha, rows, n, model->stride);
        for (int64_t i = 0; i < n; i++)
            paper->u[(f + i) * paper->stride + k] = products[i];
    }
}

dcme_status dcme_paper_clusters_open(dcme_paper_clusters *paper, const dcme_problem *problem) {
    const dcme_classify_options *options = problem->options;
    int64_t classes = problem->model->classes;
    paper->problem = problem;
    paper->count = options->clusters;
    paper->top_items = options->top_items < classes ? options->top_items : classes;
    paper->threshold = options->beta * (double)classes;
    paper->features = problem->model->features + 1;
    paper->stride = dcme_stride(options->clusters);
    paper->u = dcme_allocate_zeros(paper->features * paper->stride, sizeof *paper->u);
    paper->entropy = dcme_allocate_zeros(paper->stride, sizeof *paper->entropy);
    paper->clusters = dcme_allocate_zeros(paper->count, sizeof *paper->clusters);
    if (!paper->u || !paper->entropy || !paper->clusters)
        return DCME_NO_MEMORY;
    for (int64_t k = 0; k < paper->count; k++) {
        /* the padding of alpha meets the padding of W's rows in products: both are 0 */
        if (dcme_cluster_open(&paper->clusters[k], problem->model->stride, paper->top_items))
            return DCME_NO_MEMORY;
        memset(paper->clusters[k].alpha, 0, (size_t)problem->model->stride * sizeof(real));
        dcme_cluster_start(&paper->clusters[k], problem->counts, classes, options->seed, k);
        /* the weights may be those of an earlier run */
        update_moments(paper, k, dcme_entropy(paper->clusters[k].alpha, classes));
    }
    return DCME_OK;
}

void dcme_paper_clusters_close(dcme_paper_clusters *paper) {
    for (int64_t k = 0; paper->clusters && k < paper->count; k++)
        dcme_cluster_close(&paper->clusters[k]);
    free(paper->clusters), free(paper->u), free(paper->entropy);
}

dcme_status dcme_paper_clusters_fail(dcme_error *error, const dcme_problem *problem) {
    int64_t clusters = dcme_stride(problem->options->clusters), stride = problem->model->stride;
    int64_t features = problem->model->features + 1; /* u, a thread's sums, and the centres */
    int64_t bytes = clusters * (3 * features + 3 * stride) * (int64_t)sizeof(real);
    return dcme_no_memory(error, bytes, "the clusters", "lower --clusters or --features");
}

void dcme_paper_clusters_state(dcme_paper_clusters *paper, dcme_state *state) {
    int64_t classes = paper->problem->model->classes;
    dcme_state_add(state, paper->u, paper->features * paper->stride, sizeof *paper->u);
    dcme_state_add(state, paper->entropy, paper->stride, sizeof *paper->entropy);
    for (int64_t k = 0; k < paper->count; k++)
        dcme_cluster_state(&paper->clusters[k], classes, paper->top_items, state);
}

void dcme_paper_sums_state(dcme_paper_sums *sums, int64_t clusters, int64_t features,
                           dcme_state *state) {
    for (int64_t k = 0; k < clusters; k++) {
        dcme_state_add(state, &sums[k].count, 1, sizeof sums[k].count);
        dcme_state_add(state, &sums[k].weight, 1, sizeof sums[k].weight);
        dcme_state_add(state, sums[k].sums, 2 * features, sizeof *sums[k].sums);
    }
}

dcme_status dcme_paper_sums_open(dcme_paper_sums **sums, int64_t clusters, int64_t features) {
    dcme_paper_sums *s = dcme_allocate_zeros(clusters, sizeof *s);
    *sums = s;
    for (int64_t k = 0; s && k < clusters; k++) {
        s[k].sums = dcme_allocate_zeros(2 * features, sizeof *s[k].sums);
        if (!s[k].sums)
            return DCME_NO_MEMORY;
    }
    return s ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_paper_sums_close(dcme_paper_sums *sums, int64_t clusters) {
    for (int64_t k = 0; sums && k < clusters; k++)
        free(sums[k].sums);
    free(sums);
}

void dcme_paper_sums_add(dcme_paper_sums *sums, const dcme_batch *batch, int64_t i, real rate) {
    for (int64_t n = batch->starts[i]; n < batch->starts[i + 1]; n++) {
        real *place = sums->sums + 2 * (int64_t)batch->features[n];
        real weighted = batch->weights[i] * batch->values[n];
        place[0] += weighted;
        place[1] += rate * weighted;
    }
    sums->weight += batch->weights[i];
    sums->count++;
}

void dcme_paper_sums_clear(dcme_paper_sums *sums, int64_t features) {
    memset(sums->sums, 0, (size_t)(2 * features) * sizeof *sums->sums);
    sums->count = 0, sums->weight = 0;
}

void dcme_paper_clusters_bounds(const dcme_paper_clusters *paper, dcme_batch *batch, int64_t i,
                                real *values) {
    int64_t n = dcme_batch_rows(batch, i, paper->u, paper->stride, 0, batch->rows);
    memcpy(values, paper->entropy, (size_t)paper->stride * sizeof *values);
    batch->model->kernels->weighted_sum(values, batch->rows, batch->values + batch->starts[i], n,
                                        paper->stride);
}

void dcme_paper_sums_apply(const dcme_paper_sums *sums, const dcme_paper_clusters *paper,
                           const real *weights, real *scores) {
    const dcme_linear *model = paper->problem->model;
    real *rows[ROWS], steps[ROWS], means[ROWS];
    memset(scores, 0, (size_t)model->stride * sizeof *scores);
    for (int64_t f = 0; f < paper->features;) {
        int64_t n = 0;
        for (; f < paper->features && n < ROWS; f++) {
            if (sums->sums[2 * f] == 0 && sums->sums[2 * f + 1] == 0)
                continue;
            rows[n] = model->weights + f * model->stride;
            steps[n] = -sums->sums[2 * f + 1];
            means[n++] = sums->sums[2 * f] / sums->weight;
        }
        model->kernels->rank1_update(rows, steps, weights, n, model->stride);
        model->kernels->weighted_sum(scores, rows, means, n, model->stride);
    }
}

void dcme_paper_clusters_move(dcme_paper_clusters *paper, int64_t k, real *scores) {
    const dcme_linear *model = paper->problem->model;
    real *alpha = paper->clusters[k].alpha;
    update_moments(paper, k, dcme_soften(model->kernels, alpha, scores, model->classes));
}
