/* The learned tables: one input row (context) and one output row (target) per word; with word
 * order, also one row each for the word as the left neighbor and as the right neighbor of a
 * target. */
#pragma once

#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

typedef struct {
    int64_t items;         /* N, words in the vocabulary */
    int64_t stride;        /* distance between rows: dcme_row_stride(items, dim) */
    int64_t size;          /* numbers per row without padding: dcme_row_size(kernels, ...) */
    real *input;           /* (items, stride) h_w of the paper; owned by the caller */
    real *output;          /* (items, stride) v_j of the paper; owned by the caller */
    const int64_t *counts; /* (items) in descending order */
    const dcme_kernels *kernels;
    const real *rate_factors; /* (DCME_RATE_BUCKETS) see dcme_rate_of() */
    real *neighbors[2]; /* (items, stride) left and right neighbor tables, or NULL without word
                           order */
} dcme_model;

/* Return the rate of a word's output row, as a multiple of the learning rate. Words are sorted by
 * descending count, so words with similar ranks have nearly the same rate: there is one rate per
 * sixteenth of an octave of ranks, so that the table stays in the cache. */
enum { DCME_RATE_BUCKETS = 32 * 16 };

static inline int64_t dcme_rate_index(int64_t word) {
    float rank = (float)(word + 1);
    uint32_t bits; /* 8 bits of exponent, 23 bits of mantissa */
    memcpy(&bits, &rank, sizeof bits);
    return (bits >> (23 - 4)) - (127 << 4);
}

static inline real dcme_rate_of(const dcme_model *model, int64_t word) {
    return model->rate_factors[dcme_rate_index(word)];
}

/* Return the rate of a word's input row. It is closer to 1 than the rate of the output row, because
 * the input row of a rare word also learns accidental features of its few contexts. */
static inline real dcme_input_rate(const dcme_model *model, int64_t word) {
    return sqrtf(dcme_rate_of(model, word));
}

/* Prefetch all cache lines of a row, which may begin within a line. GCC considers a function that
 * only prefetches to have no effect: without -fwrapv it removes the calls, which makes training a
 * third slower. The empty statement keeps them. */
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
