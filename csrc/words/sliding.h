/* Moving-window sums that cost O(size) per step for any window width. */
#pragma once

#include "common/arena.h"
#include "kernels/kernels.h"

enum { DCME_SLIDE_STEPS = 4 }; /* steps per call, during which the sums stay in registers */

/* For vectors x_0, x_1, ... pushed in order, the sums y_t = sum over 0 < |d| <= c of x_(t+d).
 * Vectors are copied when pushed, so their original rows may be updated later. */
typedef struct {
    const dcme_kernels *kernels;
    int64_t window, size; /* c, and the length of a vector */
    int64_t pushed;       /* number of vectors pushed in this sentence */
    int64_t last;         /* position of the last vector in the ring */
    real *ring;           /* (2c + 2, size) the last vectors pushed */
    real *sum;            /* x_(t-c) .. x_(t+c) */
    real *zeros;          /* zeros, for positions outside a sentence */
    real *y;              /* a result before it is added to its destination */
    int64_t waiting;      /* steps that were pushed but not yet taken */
    dcme_slide steps[DCME_SLIDE_STEPS];
} dcme_sliding;

void dcme_sliding_open(dcme_sliding *sliding, dcme_arena *arena, const dcme_kernels *kernels,
                       int64_t window, int64_t size);

/* Start a sentence: all previous vectors count as zero. */
void dcme_sliding_reset(dcme_sliding *sliding);

/* Push x_p = scale x (0 for NULL), then out += out_scale y_t for t = p - c, unless t < 0. The last
 * steps may be delayed until dcme_sliding_finish(). */
void dcme_sliding_push(dcme_sliding *sliding, const real *x, real scale, real *out, real out_scale);
void dcme_sliding_finish(dcme_sliding *sliding);
