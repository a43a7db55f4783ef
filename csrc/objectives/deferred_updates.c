/* See deferred_updates.h. */
#include "objectives/deferred_updates.h"

#include <stdlib.h>
#include <string.h>

enum { DEFERRED = 8 };

static int64_t sums_of(const dcme_clusters *clusters, int one_sum) {
    return (one_sum ? 2 : clusters->top_items) * clusters->model->stride;
}

dcme_status dcme_deferred_open(dcme_deferred **all, const dcme_clusters *clusters, int one_sum) {
    int64_t top_items = clusters->top_items;
    dcme_deferred *d = *all = dcme_allocate_zeros(clusters->count, sizeof *d);
    for (int64_t k = 0; d && k < clusters->count; k++) {
        d[k].top = dcme_allocate_zeros(top_items, sizeof *d[k].top);
        d[k].alpha = one_sum ? dcme_allocate_zeros(top_items, sizeof *d[k].alpha) : NULL;
        d[k].sums = dcme_allocate_zeros(sums_of(clusters, one_sum), sizeof *d[k].sums);
        if (!d[k].top || (one_sum && !d[k].alpha) || !d[k].sums)
            return DCME_NO_MEMORY;
    }
    return d ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_deferred_close(dcme_deferred *all, int64_t clusters) {
    for (int64_t k = 0; all && k < clusters; k++)
        free(all[k].top), free(all[k].alpha), free(all[k].sums);
    free(all);
}

static void make_updates(dcme_deferred *d, const dcme_clusters *clusters, int64_t z, real **rows) {
    const dcme_model *model = clusters->model;
    int64_t top_items = clusters->top_items, stride = model->stride;
    for (int64_t q = 0; q < top_items; q++)
        rows[q] = model->output + d->top[q] * stride;
    if (d->alpha) {
        model->kernels->rank1_update(rows, d->alpha, d->sums, top_items, stride);
        model->kernels->axpy(clusters->u_rows[z], 1, d->sums + stride, stride);
    } else {
        for (int64_t q = 0; q < top_items; q++)
            model->kernels->axpy(rows[q], 1, d->sums + q * stride, stride);
    }
    memset(d->sums, 0, (size_t)sums_of(clusters, d->alpha != NULL) * sizeof *d->sums);
    d->count = 0;
}

void dcme_deferred_begin(dcme_deferred *d, const dcme_clusters *clusters, int64_t z, real **rows) {
    const dcme_cluster *cluster = &clusters->clusters[z];
    size_t size = (size_t)clusters->top_items * sizeof *d->top;
    if (d->count > 0 && memcmp(d->top, cluster->top, size) != 0)
        make_updates(d, clusters, z, rows);
    if (d->count > 0)
        return;
    memcpy(d->top, cluster->top, size);
    for (int64_t q = 0; d->alpha && q < clusters->top_items; q++)
        d->alpha[q] = -cluster->alpha[d->top[q]];
}

void dcme_deferred_end(dcme_deferred *d, const dcme_clusters *clusters, int64_t z, real **rows) {
    if (++d->count >= DEFERRED)
        make_updates(d, clusters, z, rows);
}

void dcme_deferred_state(dcme_deferred *all, const dcme_clusters *clusters, dcme_state *state) {
    for (int64_t k = 0; all && k < clusters->count; k++) {
        dcme_deferred *d = &all[k];
        dcme_state_add(state, &d->count, 1, sizeof d->count);
        dcme_state_add(state, d->top, clusters->top_items, sizeof *d->top);
        if (d->alpha)
            dcme_state_add(state, d->alpha, clusters->top_items, sizeof *d->alpha);
        dcme_state_add(state, d->sums, sums_of(clusters, d->alpha != NULL), sizeof *d->sums);
    }
}
