/* Vector kernels: the arithmetic of every objective, chosen at run time.
 *
 * scalar.c is the specification, written for readability. Each other file does the same for one
 * instruction set and is tested against it. Rows are `size` numbers long, a multiple of DCME_QUAD,
 * padded with zeros; they need not be aligned, but are fastest at 64 bytes.
 */
#pragma once

#include "array.h"

#include <stddef.h>

typedef float real;

enum { DCME_QUAD = 4, DCME_PAD = 16 };

/* Return the length of a row in memory: `dim`, rounded up so that rows start at cache lines. */
static inline int64_t dcme_stride(int64_t dim) {
    return (dim + DCME_PAD - 1) / DCME_PAD * DCME_PAD;
}

/* Return the length of a row for two large tables. Their rows are aligned only if the padding costs
 * no more than DCME_SPARE_BYTES. */
enum { DCME_SPARE_BYTES = 1 << 25 };
static inline int64_t dcme_row_stride(int64_t items, int64_t dim) {
    int64_t whole = dcme_stride(dim), quads = (dim + DCME_QUAD - 1) / DCME_QUAD * DCME_QUAD;
    int64_t spare = 2 * (whole - quads) * (int64_t)sizeof(real);
    return items <= DCME_SPARE_BYTES / (spare > 0 ? spare : 1) ? whole : quads;
}

/* A step of a moving window, to position t. */
typedef struct {
    const real *x;     /* x_(t+c), which enters the sum */
    real *last;        /* copy of x_(t+c), times `scale` */
    const real *first; /* x_(t-c-1), which leaves the sum */
    const real *at;    /* x_t */
    real *out, scale, out_scale;
} dcme_slide;

typedef struct {
    const char *name;
    int64_t lanes; /* floats per vector */

    /* out[i stride + j] = hs[i] . rows[j] */
    void (*dots)(real *out, int64_t stride, real *const *hs, int64_t h_count, real *const *rows,
                 int64_t count, int64_t size);

    /* out[2 i] = hs[i] . hs[i]; out[2 i + 1] = hs[i] . rows[i] */
    void (*pair_dots)(real *out, real *const *hs, real *const *rows, int64_t count, int64_t size);

    /* gradient = 0; for each i in turn: gradient += weights[i] rows[i]; rows[i] += steps[i] h. The
     * weights were computed before any row moved, so each row enters the gradient with the values
     * that were scored, unless the same row occurs twice in the list. */
    void (*update)(real *gradient, const real *h, real *const *rows, const real *weights,
                   const real *steps, int64_t count, int64_t size);

    /* out = scale (rows[0] + rows[1] + ...) */
    void (*mean)(real *out, real scale, real *const *rows, int64_t count, int64_t size);

    /* Steps of a moving sum, ../words/sliding.h, one after another: last = scale x, then
     *     sum += last - first; out += out_scale (sum - at). */
    void (*slide)(const dcme_slide *steps, int64_t count, real *sum, int64_t size);

    /* out += weights[0] rows[0] + weights[1] rows[1] + ... */
    void (*weighted_sum)(real *out, real *const *rows, const real *weights, int64_t count,
                         int64_t size);

    /* For each i in turn, for each j in turn: outs[i] += weights[i out_stride + j row_stride]
     * rows[j]. The outs and the rows must not overlap. Unless `starts` is NULL, outs[i] is first
     * set to start_weights[i] starts[i]. */
    void (*weighted_sums)(real *const *outs, int64_t out_count, const real *weights,
                          int64_t out_stride, int64_t row_stride, real *const *rows, int64_t count,
                          int64_t size, real *const *starts, const real *start_weights);

    /* out[i] = exp(x[i]), where |x[i]| is at most 87; out may be x. Both have room for
     * dcme_stride(count) numbers. */
    void (*exponential)(real *out, const real *x, int64_t count);

    /* out[i] = 1[i = 0] - sigma(x[i]), sigma(x) = 1 / (1 + exp(-x)): the weights of a target, which
     * comes first, and of its noise samples. out may be x. Both have room for dcme_stride(count)
     * numbers, and values beyond count are undefined. */
    void (*residuals)(real *out, const real *x, int64_t count);

} dcme_kernels;

/* Return how many numbers of a row the kernels must process: `dim`, rounded up to fill the last
 * vector. With 100 dimensions and 8 lanes, they process 104 of the 112 numbers. */
static inline int64_t dcme_row_size(const dcme_kernels *kernels, int64_t dim, int64_t stride) {
    int64_t whole = (dim + kernels->lanes - 1) / kernels->lanes * kernels->lanes;
    return whole < stride ? whole : stride;
}

/* scores[i] = rows[i] . h */
static inline void dcme_dots(const dcme_kernels *kernels, real *scores, const real *h,
                             real *const *rows, int64_t count, int64_t size) {
    real *one = (real *)h;
    kernels->dots(scores, 0, &one, 1, rows, count, size);
}

/* rows[i] += weights[i] x */
static inline void dcme_rank1_update(const dcme_kernels *kernels, real *const *rows,
                                     const real *weights, const real *x, int64_t count,
                                     int64_t size) {
    real *one = (real *)x;
    kernels->weighted_sums(rows, count, weights, 1, 0, &one, 1, size, NULL, NULL);
}

/* y += a x */
static inline void dcme_axpy(const dcme_kernels *kernels, real *y, real a, const real *x,
                             int64_t size) {
    real *row = (real *)x;
    kernels->weighted_sum(y, &row, &a, 1, size);
}

/* out = a x; out may be x */
static inline void dcme_scale(real *out, real a, const real *x, int64_t size) {
    for (int64_t d = 0; d < size; d++)
        out[d] = a * x[d];
}

extern const dcme_kernels dcme_kernels_scalar;

/* Return the kernels with this name ("scalar", "avx2", "avx512", "neon"), or the fastest ones for
 * NULL; return NULL if the machine does not support them. */
const dcme_kernels *dcme_kernels_choose(const char *name);
