/* What is learned: one input row (context) and one output row (target) for each word; with word
 * order, also its rows as the left and as the right neighbour of a target. */
#ifndef DCME_MODEL_H
#define DCME_MODEL_H

#include "kernels/kernels.h"

typedef struct {
    int64_t items;         /* N, words in the vocabulary */
    int64_t stride;        /* numbers from one row to the next: dcme_row_stride(items, dim) */
    real *input;           /* (items, stride), h_w of the paper; belongs to the caller */
    real *output;          /* (items, stride), v_j of the paper; belongs to the caller */
    const int64_t *counts; /* (items), in descending order */
    const dcme_kernels *kernels;
    real *neighbours[2]; /* (items, stride) each, left and right, or NULL without word order */
} dcme_model;

static inline void dcme_prefetch(const real *row, int64_t stride) {
    for (int64_t d = 0; d < stride; d += 64 / (int64_t)sizeof(real))
        __builtin_prefetch(row + d, 1);
}

#endif
