/* The learned tables: one input row (context) and one output row (target) for each word; with word
 * order, also its rows as the left and as the right neighbor of a target. */
#pragma once

#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

typedef struct {
    int64_t items;         /* N, words in the vocabulary */
    int64_t stride;        /* numbers from one row to the next: dcme_row_stride(items, dim) */
    int64_t size;          /* of them, those that are not padding: dcme_row_size(kernels, ...) */
    real *input;           /* (items, stride), h_w of the paper; belongs to the caller */
    real *output;          /* (items, stride), v_j of the paper; belongs to the caller */
    const int64_t *counts; /* (items), in descending order */
    const dcme_kernels *kernels;
    const real *rate_factors; /* (DCME_RATE_BUCKETS) see dcme_rate_of() */
    real *neighbors[2];       /* (items, stride) each, left and right, or NULL without word order */
} dcme_model;

/* The rate of a word's output row, in units of the learning rate. Words are in descending order of
 * counts, so that neighbors in rank have nearly the same: there is one for a sixteenth of an octave
 * of ranks, and the table stays in the cache. */
enum { DCME_RATE_BUCKETS = 32 * 16 };

static inline int64_t dcme_rate_index(int64_t word) {
    float rank = (float)(word + 1);
    uint32_t bits; /* 8 of the exponent, 23 of the mantissa */
    memcpy(&bits, &rank, sizeof bits);
    return (bits >> (23 - 4)) - (127 << 4);
}

static inline real dcme_rate_of(const dcme_model *model, int64_t word) {
    return model->rate_factors[dcme_rate_index(word)];
}

/* The rate of a word's input row: nearer 1, since a rare one also learns what its few contexts have
 * by chance. */
static inline real dcme_input_rate(const dcme_model *model, int64_t word) {
    return sqrtf(dcme_rate_of(model, word));
}

/* All cache lines of a row, which may begin within one. For GCC a function that only prefetches has
 * no effect: without -fwrapv it removes the calls, and training is a third slower. So there is an
 * empty statement that it has to keep. */
static inline void dcme_prefetch(const real *row, int64_t stride) {
    const char *line = (const char *)((uintptr_t)row & ~(uintptr_t)63);
    const char *end = (const char *)(row + stride);
    for (; line + 64 < end; line += 128) {
        __builtin_prefetch(line);
        __builtin_prefetch(line + 64);
        __asm__ volatile("" : "+r"(line));
    }
    if (line < end)
        __builtin_prefetch(line);
}
