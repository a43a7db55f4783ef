/* The learned tables: one input row (context) and one output row (target) for each word; with word
 * order, also its rows as the left and as the right neighbor of a target. */
#pragma once

#include "kernels/kernels.h"

typedef struct {
    int64_t items;         /* N, words in the vocabulary */
    int64_t stride;        /* numbers from one row to the next: dcme_row_stride(items, dim) */
    int64_t size;          /* of them, those that are not padding: dcme_row_size(kernels, ...) */
    real *input;           /* (items, stride), h_w of the paper; belongs to the caller */
    real *output;          /* (items, stride), v_j of the paper; belongs to the caller */
    const int64_t *counts; /* (items), in descending order */
    const dcme_kernels *kernels;
    real *neighbors[2]; /* (items, stride) each, left and right, or NULL without word order */
} dcme_model;

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
