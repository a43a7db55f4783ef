/* See sliding.h. With P_t = x_(t-c) + .. + x_(t-1) and Q_t = x_(t+1) + .. + x_(t+c), the weighted
 * sums of the linear window move on by
 *     L_(t+1) = L_t - P_t + c x_t,  R_(t+1) = R_t + Q_t + x_(t+c+1) - (c + 1) x_(t+1).
 * Differences of sums keep the rounding of all that was ever in them, and L and R add it up once
 * more, so all sums are made anew from the ring every RENEW positions.
 */
#include "train/sliding.h"

#include <stdlib.h>
#include <string.h>

enum { RENEW = 256 };

static real *slot(const dcme_sliding *s, int64_t position) {
    int64_t slots = 2 * s->window + 2;
    return s->ring + (position + slots) % slots * s->size;
}

dcme_status dcme_sliding_open(dcme_sliding *sliding, const dcme_kernels *kernels, int64_t window,
                              int linear, int64_t size) {
    int64_t vectors = 2 * window + 2 + 5;
    *sliding = (dcme_sliding){.kernels = kernels, .window = window, .size = size, .linear = linear};
    sliding->ring = dcme_allocate(vectors * size, sizeof *sliding->ring);
    if (!sliding->ring)
        return DCME_NO_MEMORY;
    memset(sliding->ring, 0, (size_t)(vectors * size) * sizeof *sliding->ring);
    sliding->near_sum = sliding->ring + (2 * window + 2) * size;
    sliding->far_sum = sliding->near_sum + size;
    sliding->left = sliding->far_sum + size;
    sliding->right = sliding->left + size;
    sliding->zeros = sliding->right + size;
    return DCME_OK;
}

void dcme_sliding_close(dcme_sliding *sliding) {
    free(sliding->ring);
    sliding->ring = NULL;
}

void dcme_sliding_reset(dcme_sliding *sliding) {
    int64_t vectors = 2 * sliding->window + 2 + 4;
    sliding->pushed = 0;
    memset(sliding->ring, 0, (size_t)(vectors * sliding->size) * sizeof *sliding->ring);
}

/* All sums at position t from the vectors themselves. */
static void renew(dcme_sliding *s, int64_t t) {
    int64_t c = s->window, size = s->size;
    memset(s->near_sum, 0, (size_t)(4 * size) * sizeof *s->near_sum);
    for (int64_t d = 1; d <= c; d++) {
        const real *before = slot(s, t - d), *after = slot(s, t + d);
        s->kernels->axpy(s->near_sum, 1, before, size);
        s->kernels->axpy(s->linear ? s->far_sum : s->near_sum, 1, after, size);
        if (s->linear) {
            s->kernels->axpy(s->left, (real)(c + 1 - d), before, size);
            s->kernels->axpy(s->right, (real)(c + 1 - d), after, size);
        }
    }
    if (!s->linear)
        s->kernels->axpy(s->near_sum, 1, slot(s, t), size);
}

/* sum += the `count` vectors times their weights. */
static void change(const dcme_sliding *s, real *sum, const real *const *vectors,
                   const real *weights, int64_t count) {
    s->kernels->combine(sum, (real *const *)vectors, weights, count, s->size);
}

/* The linear sums from position t - 1 to t; x_(t+c) = x has just been put into the ring. */
static void advance_linear(const dcme_sliding *s, int64_t t, const real *x) {
    real c = (real)s->window;
    const real *before = slot(s, t - 1), *leaves = slot(s, t - 1 - s->window), *at = slot(s, t);
    change(s, s->left, (const real *[]){s->near_sum, before}, (real[]){-1, c}, 2);
    change(s, s->near_sum, (const real *[]){before, leaves}, (real[]){1, -1}, 2);
    change(s, s->right, (const real *[]){s->far_sum, x, at}, (real[]){1, 1, -(c + 1)}, 3);
    change(s, s->far_sum, (const real *[]){x, at}, (real[]){1, -1}, 2);
}

void dcme_sliding_push(dcme_sliding *s, const real *x) {
    int64_t p = s->pushed++, t = p - s->window;
    if (!x)
        x = s->zeros;
    memcpy(slot(s, p), x, (size_t)s->size * sizeof *x); /* over x_(t-c-2) */
    if (t % RENEW == 0 && t > 0) {
        renew(s, t);
    } else if (s->linear) {
        advance_linear(s, t, x);
    } else {
        change(s, s->near_sum, (const real *[]){slot(s, t - 1 - s->window), x}, (real[]){-1, 1}, 2);
    }
}

void dcme_sliding_sum(const dcme_sliding *s, real *out, real scale) {
    int64_t t = s->pushed - 1 - s->window;
    if (s->linear) {
        s->kernels->mean(out, scale, (real *const[]){s->left, s->right}, 2, s->size);
        return;
    }
    memset(out, 0, (size_t)s->size * sizeof *out);
    change(s, out, (const real *[]){s->near_sum, slot(s, t)}, (real[]){scale, -scale}, 2);
}
