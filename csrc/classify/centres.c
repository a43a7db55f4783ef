/* See centres.h. */
#include "classify/centres.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 64 }; /* rows that a kernel is handed at a time */

/* H, the top classes and u of a centre that has just been made. */
static void settle(dcme_centres *centres, int64_t k, real entropy) {
    const dcme_linear *model = centres->problem->model;
    real *alpha = centres->clusters[k].alpha, *rows[ROWS], products[ROWS];
    centres->entropy[k] = entropy;
    dcme_cluster_choose_top(&centres->clusters[k], model->classes, centres->top_items);
    for (int64_t f = 0, n; f < centres->features; f += n) {
        for (n = 0; n < ROWS && f + n < centres->features; n++)
            rows[n] = model->weights + (f + n) * model->stride;
        model->kernels->dots(products, alpha, rows, n, model->stride);
        for (int64_t i = 0; i < n; i++)
            centres->u[(f + i) * centres->stride + k] = products[i];
    }
}

dcme_status dcme_centres_open(dcme_centres *centres, const dcme_problem *problem) {
    const dcme_classify_options *options = problem->options;
    int64_t classes = problem->model->classes;
    centres->problem = problem;
    centres->count = options->clusters;
    centres->top_items = options->top_items < classes ? options->top_items : classes;
    centres->threshold = options->beta * (double)classes;
    centres->features = problem->model->features + 1;
    centres->stride = dcme_stride(options->clusters);
    centres->u = dcme_allocate_zeros(centres->features * centres->stride, sizeof *centres->u);
    centres->entropy = dcme_allocate_zeros(centres->stride, sizeof *centres->entropy);
    centres->clusters = dcme_allocate_zeros(centres->count, sizeof *centres->clusters);
    if (!centres->u || !centres->entropy || !centres->clusters)
        return DCME_NO_MEMORY;
    for (int64_t k = 0; k < centres->count; k++) {
        /* the padding of alpha meets the padding of W's rows in products: both are 0 */
        if (dcme_cluster_open(&centres->clusters[k], problem->model->stride, centres->top_items))
            return DCME_NO_MEMORY;
        memset(centres->clusters[k].alpha, 0, (size_t)problem->model->stride * sizeof(real));
        dcme_cluster_start(&centres->clusters[k], problem->counts, classes, options->seed, k);
        /* the weights may be those of an earlier run */
        settle(centres, k, dcme_entropy(centres->clusters[k].alpha, classes));
    }
    return DCME_OK;
}

void dcme_centres_close(dcme_centres *centres) {
    for (int64_t k = 0; centres->clusters && k < centres->count; k++)
        dcme_cluster_close(&centres->clusters[k]);
    free(centres->clusters), free(centres->u), free(centres->entropy);
}

dcme_status dcme_sums_open(dcme_sums **sums, int64_t clusters, int64_t features) {
    dcme_sums *s = dcme_allocate_zeros(clusters, sizeof *s);
    *sums = s;
    for (int64_t k = 0; s && k < clusters; k++) {
        s[k].sums = dcme_allocate_zeros(2 * features, sizeof *s[k].sums);
        if (!s[k].sums)
            return DCME_NO_MEMORY;
    }
    return s ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_sums_close(dcme_sums *sums, int64_t clusters) {
    for (int64_t k = 0; sums && k < clusters; k++)
        free(sums[k].sums);
    free(sums);
}

void dcme_sums_add(dcme_sums *sums, const dcme_batch *batch, int64_t i, real rate) {
    for (int64_t n = batch->starts[i]; n < batch->starts[i + 1]; n++) {
        real *place = sums->sums + 2 * (int64_t)batch->features[n];
        place[0] += batch->values[n];
        place[1] += rate * batch->values[n];
    }
    sums->count++;
}

void dcme_sums_clear(dcme_sums *sums, int64_t features) {
    memset(sums->sums, 0, (size_t)(2 * features) * sizeof *sums->sums);
    sums->count = 0;
}

void dcme_centres_bounds(const dcme_centres *centres, dcme_batch *batch, int64_t i, real *values) {
    int64_t n = dcme_batch_rows(batch, i, centres->u, centres->stride, 0, batch->rows);
    memcpy(values, centres->entropy, (size_t)centres->stride * sizeof *values);
    batch->model->kernels->combine(values, batch->rows, batch->values + batch->starts[i], n,
                                   centres->stride);
}

void dcme_sums_apply(const dcme_sums *sums, const dcme_centres *centres, const real *weights,
                     real *scores) {
    const dcme_linear *model = centres->problem->model;
    real *rows[ROWS], steps[ROWS], means[ROWS];
    memset(scores, 0, (size_t)model->stride * sizeof *scores);
    for (int64_t f = 0; f < centres->features;) {
        int64_t n = 0;
        for (; f < centres->features && n < ROWS; f++) {
            if (sums->sums[2 * f] == 0 && sums->sums[2 * f + 1] == 0)
                continue;
            rows[n] = model->weights + f * model->stride;
            steps[n] = -sums->sums[2 * f + 1];
            means[n++] = sums->sums[2 * f] / (real)sums->count;
        }
        model->kernels->push(rows, steps, weights, n, model->stride);
        model->kernels->combine(scores, rows, means, n, model->stride);
    }
}

void dcme_centres_move(dcme_centres *centres, int64_t k, real *scores) {
    const dcme_linear *model = centres->problem->model;
    real *alpha = centres->clusters[k].alpha;
    settle(centres, k, dcme_soften(model->kernels, alpha, scores, model->classes));
}
