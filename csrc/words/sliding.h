/* Sums over a moving window in O(size) a step, whatever the window. */
#pragma once

#include "common/arena.h"
#include "kernels/kernels.h"

enum { DCME_SLIDE_STEPS = 4 }; /* at once: the sums stay in registers */

/* For vectors x_0, x_1, ... pushed in order, the sums y_t = sum over 0 < |d| <= c of x_(t+d).
 * Vectors are copied when pushed, so that it does
 * not matter if the rows they came from move on. */
typedef struct {
    const dcme_kernels *kernels;
    int64_t window, size; /* c; numbers in a vector */
    int64_t pushed;       /* vectors so far in this sentence */
    int64_t last;         /* where in the ring the last one is */
    real *ring;           /* (2c + 2, size) the last vectors pushed */
    real *sum;            /* x_(t-c) .. x_(t+c) */
    real *zeros;          /* the vectors beyond a sentence */
    real *y;              /* a result before it is added */
    int64_t waiting;      /* steps that have been pushed, but not taken */
    dcme_slide steps[DCME_SLIDE_STEPS];
} dcme_sliding;

void dcme_sliding_open(dcme_sliding *sliding, dcme_arena *arena, const dcme_kernels *kernels,
                       int64_t window, int64_t size);

/* Start a sentence: all that came before is zero. */
void dcme_sliding_reset(dcme_sliding *sliding);

/* Push x_p = scale x (0 for NULL), then out += out_scale y_t for t = p - c, unless t < 0. Some of
 * that waits for dcme_sliding_finish(). */
void dcme_sliding_push(dcme_sliding *sliding, const real *x, real scale, real *out, real out_scale);
void dcme_sliding_finish(dcme_sliding *sliding);
