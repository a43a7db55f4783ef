/* See deferred_updates.h. */
#include "objectives/deferred_updates.h"

enum { DEFERRED = 8 };

dcme_deferred *dcme_deferred_open(dcme_arena *arena, const dcme_clusters *clusters) {
    dcme_deferred *all = dcme_take(arena, clusters->count, sizeof *all);
    for (int64_t k = 0; all && k < clusters->count; k++) {
        dcme_deferred *d = &all[k];
        DCME_SAVE(arena, d->count);
        DCME_TAKE_SAVED(arena, d->top, clusters->top_items, clusters->model->items);
        DCME_TAKE_SAVED(arena, d->alpha, clusters->top_items, 0);
        DCME_TAKE_SAVED(arena, d->sums, 2 * clusters->model->stride, 0);
    }
    return all;
}

static void make_updates(dcme_deferred *d, const dcme_clusters *clusters, int64_t z, real **rows) {
    const dcme_model *model = clusters->model;
    int64_t top_items = clusters->top_items, stride = model->stride;
    for (int64_t q = 0; q < top_items; q++)
        rows[q] = model->output + d->top[q] * stride;
    dcme_rank1_update(model->kernels, rows, d->alpha, d->sums, top_items, stride);
    dcme_axpy(model->kernels, clusters->u_rows[z], 1, d->sums + stride, stride);
    DCME_CLEAR(d->sums, 2 * stride);
    d->count = 0;
}

void dcme_deferred_begin(dcme_deferred *d, const dcme_clusters *clusters, int64_t z, real **rows) {
    const dcme_center *cluster = &clusters->clusters[z];
    const int32_t *top = dcme_center_top(cluster);
    size_t size = clusters->top_items * sizeof *d->top;
    if (d->count > 0 && memcmp(d->top, top, size) != 0)
        make_updates(d, clusters, z, rows);
    if (d->count > 0)
        return;
    DCME_COPY(d->top, top, clusters->top_items);
    for (int64_t q = 0; q < clusters->top_items; q++)
        d->alpha[q] = -cluster->alpha[d->top[q]];
}

void dcme_deferred_end(dcme_deferred *d, const dcme_clusters *clusters, int64_t z, real **rows) {
    if (++d->count >= DEFERRED)
        make_updates(d, clusters, z, rows);
}
