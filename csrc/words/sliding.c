/* See sliding.h. A running sum accumulates the rounding errors of all vectors that were ever in it.
 * It is therefore recomputed from the ring every RENEW positions, starting at position 0, when only
 * the first c vectors are in the ring. */
#include "words/sliding.h"

enum { RENEW = 256 };

/* Return the vector at a position, which is one of the last 2c + 2; division is avoided because
 * this is called often. */
static real *slot(const dcme_sliding *s, int64_t position) {
    if (position < 0)
        return s->zeros;
    int64_t place = s->last - (s->pushed - 1 - position);
    return s->ring + (place < 0 ? place + 2 * s->window + 2 : place) * s->size;
}

void dcme_sliding_open(dcme_sliding *sliding, dcme_arena *arena, const dcme_kernels *kernels,
                       int64_t window, int64_t size) {
    real *next = dcme_take(arena, (2 * window + 2 + 3) * size, sizeof *next);
    *sliding = (dcme_sliding){.kernels = kernels, .window = window, .size = size};
    if (!next)
        return;
    sliding->ring = next, next += (2 * window + 2) * size;
    sliding->sum = next, next += size;
    sliding->zeros = next, next += size;
    sliding->y = next;
}

void dcme_sliding_reset(dcme_sliding *sliding) {
    sliding->pushed = sliding->last = sliding->waiting = 0;
}

/* Compute the sum at position t from the vectors themselves. */
static void renew(dcme_sliding *s, int64_t t) {
    int64_t c = s->window;
    DCME_CLEAR(s->sum, s->size);
    for (int64_t d = 1; d <= c; d++)
        dcme_axpy(s->kernels, s->sum, 1, slot(s, t + d), s->size);
    for (int64_t d = 1; d <= c && d <= t; d++)
        dcme_axpy(s->kernels, s->sum, 1, slot(s, t - d), s->size);
    dcme_axpy(s->kernels, s->sum, 1, slot(s, t), s->size);
}

void dcme_sliding_finish(dcme_sliding *s) {
    if (s->waiting > 0)
        s->kernels->slide(s->steps, s->waiting, s->sum, s->size);
    s->waiting = 0;
}

void dcme_sliding_push(dcme_sliding *s, const real *x, real scale, real *out, real out_scale) {
    int64_t p = s->pushed++, t = p - s->window;
    s->last = p == 0 || s->last == 2 * s->window + 1 ? 0 : s->last + 1;
    real *vector = (real *)(x ? x : s->zeros), *last = slot(s, p); /* overwrites x_(t-c-2) */
    if (t > 0 && t % RENEW != 0) {
        s->steps[s->waiting++] = (dcme_slide){
            vector, last, slot(s, t - 1 - s->window), slot(s, t), out, scale, out_scale};
        if (s->waiting == DCME_SLIDE_STEPS)
            dcme_sliding_finish(s);
        return;
    }
    dcme_sliding_finish(s);
    s->kernels->mean(last, scale, &vector, 1, s->size);
    if (t < 0)
        return;
    renew(s, t);
    DCME_CLEAR(s->y, s->size);
    s->kernels->weighted_sum(s->y, (real *const[]){s->sum, slot(s, t)},
                             (const real[]){out_scale, -out_scale}, 2, s->size);
    dcme_axpy(s->kernels, out, 1, s->y, s->size);
}
