/* See paper_clusters.h. */
#include "classify/paper_clusters.h"

enum { ROWS = 64 }; /* rows that a kernel is handed at a time */

/* H, the top classes and u of a center that has just been made. */
static void update_moments(dcme_paper_clusters *paper, int64_t k, real entropy) {
    const dcme_linear *model = paper->problem->model;
    real *alpha = paper->clusters[k].alpha;
    paper->entropy[k] = entropy;
    dcme_cluster_choose_top(&paper->clusters[k], alpha, model->classes, paper->top_items);
    dcme_project(model, alpha, 0, model->stride, paper->u + k, paper->stride);
}

void dcme_paper_clusters_open(dcme_paper_clusters *p, dcme_arena *arena,
                              const dcme_problem *problem) {
    const dcme_classify_options *options = problem->options;
    int64_t classes = problem->model->classes, stride = problem->model->stride;
    p->problem = problem;
    p->count = options->clusters;
    p->top_items = dcme_min(options->top_items, classes);
    p->threshold = options->beta * (double)classes;
    p->features = problem->model->features + 1;
    p->stride = dcme_stride(options->clusters);
    DCME_TAKE_SAVED(arena, p->u, p->features * p->stride, 0);
    DCME_TAKE_SAVED(arena, p->entropy, p->stride, 0);
    DCME_TAKE(arena, p->clusters, p->count);
    /* the padding of alpha meets the padding of W's rows in products: both are 0 */
    for (int64_t k = 0; p->clusters && k < p->count; k++)
        dcme_cluster_open(&p->clusters[k], arena, stride, classes, p->top_items);
    for (int64_t k = 0; arena->status == DCME_OK && k < p->count; k++) {
        dcme_cluster_start(&p->clusters[k], problem->counts, classes, options->seed, k);
        /* the weights may come from an earlier run */
        update_moments(p, k, dcme_entropy(p->clusters[k].alpha, classes));
    }
}

dcme_paper_sums *dcme_paper_sums_open(dcme_arena *arena, const dcme_paper_clusters *paper) {
    dcme_paper_sums *sums = dcme_take(arena, paper->count, sizeof *sums);
    for (int64_t k = 0; sums && k < paper->count; k++) {
        DCME_SAVE(arena, sums[k].count);
        DCME_SAVE(arena, sums[k].weight);
        DCME_TAKE_SAVED(arena, sums[k].sums, 2 * paper->features, 0);
    }
    return sums;
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
    DCME_CLEAR(sums->sums, 2 * features);
    sums->count = 0, sums->weight = 0;
}

void dcme_paper_clusters_bounds(const dcme_paper_clusters *paper, dcme_batch *batch, int64_t i,
                                real *values) {
    DCME_COPY(values, paper->entropy, paper->stride);
    dcme_batch_multiply(batch, i, paper->u, paper->stride, 0, paper->stride, values);
}

void dcme_paper_sums_apply(const dcme_paper_sums *sums, const dcme_paper_clusters *paper,
                           const real *weights, real *scores) {
    const dcme_linear *model = paper->problem->model;
    real *rows[ROWS], steps[ROWS], means[ROWS];
    DCME_CLEAR(scores, model->stride);
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
