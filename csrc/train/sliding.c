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

/* The linear sums from position t - 1 to t; x_(t+c) = x has just been put into the ring. */
static void advance_linear(dcme_sliding *s, int64_t t, const real *x) {
    const dcme_kernels *k = s->kernels;
    int64_t c = s->window, size = s->size;
    k->axpy(s->left, -1, s->near_sum, size);
    k->axpy(s->left, (real)c, slot(s, t - 1), size);
    k->axpy(s->near_sum, 1, slot(s, t - 1), size);
    k->axpy(s->near_sum, -1, slot(s, t - 1 - c), size);
    k->axpy(s->right, 1, s->far_sum, size);
    k->axpy(s->right, 1, x, size);
    k->axpy(s->right, (real) - (c + 1), slot(s, t), size);
    k->axpy(s->far_sum, 1, x, size);
    k->axpy(s->far_sum, -1, slot(s, t), size);
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
        s->kernels->axpy(s->near_sum, -1, slot(s, t - 1 - s->window), s->size);
        s->kernels->axpy(s->near_sum, 1, x, s->size);
    }
}

void dcme_sliding_sum(const dcme_sliding *s, real *out, real scale) {
    int64_t t = s->pushed - 1 - s->window;
    memset(out, 0, (size_t)s->size * sizeof *out);
    if (s->linear) {
        s->kernels->axpy(out, scale, s->left, s->size);
        s->kernels->axpy(out, scale, s->right, s->size);
    } else {
        s->kernels->axpy(out, scale, s->near_sum, s->size);
        s->kernels->axpy(out, -scale, slot(s, t), s->size);
    }
}
