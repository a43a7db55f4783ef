/* One dual cluster: its center, a distribution over the items, and its lock. These functions need
 * only the center, not the model's layout, and are used for the clusters of word vectors
 * (word_clusters.c) and of classes (../classify/paper_classes.c). */
#pragma once

#include "common/arena.h"
#include "kernels/kernels.h"

#include <stdatomic.h>

typedef struct {
    real *alpha;          /* (N) center */
    int32_t *_Atomic top; /* (Q) heaviest items, descending */
    int32_t *spare;       /* (Q) where the next top items are written */
    uint8_t *is_top;      /* (N) */
    _Atomic int busy;     /* whether a thread is doing the offline update */
} dcme_center;

/* `cluster` must be all zeros. Its center has room for `room` items, of which the first `items` are
 * part of the state. */
void dcme_center_open(dcme_center *cluster, dcme_arena *arena, int64_t room, int64_t items,
                      int64_t top_items);

/* Return the top items. The list is overwritten after two more updates of the cluster; every entry
 * is a valid item even then. */
static inline const int32_t *dcme_center_top(const dcme_center *cluster) {
    return atomic_load_explicit(&cluster->top, memory_order_acquire);
}

/* Fill the center with the unigram distribution plus random noise, so that cluster k differs from
 * the others. */
void dcme_center_start(dcme_center *cluster, const int64_t *counts, int64_t items, int64_t seed,
                       int64_t k);

real dcme_entropy(const real *alpha, int64_t items);

/* out[i] = e^(x[i] - largest), or 0 if that is negligible compared with 1: products with such small
 * numbers would be denormal, which makes them many times slower. out may be x. */
void dcme_exponentials(const dcme_kernels *kernels, real *out, const real *x, real largest,
                       int64_t count);

static inline double dcme_total(const real *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i];
    return sum;
}

enum { DCME_AT_ONCE = 64 }; /* numbers per kernel call */

/* Set alpha = softmax(scores) (13) from dcme_exponentials(), and return its entropy. `scores` is
 * overwritten. */
real dcme_soften(const dcme_kernels *kernels, real *alpha, real *scores, int64_t items);

/* Make the heaviest items the top items. */
void dcme_center_choose_top(dcme_center *cluster, int64_t items, int64_t top_items);

/* Try to lock the cluster without waiting, and return whether this succeeded; the second function
 * unlocks it. */
int dcme_center_try_lock(dcme_center *cluster);
void dcme_center_unlock(dcme_center *cluster);

/* Return argmax_k scores_k over the clusters that no thread is updating, or over all clusters if
 * all are being updated. Without this rule, instances would pile up in a busy cluster and train on
 * values that are about to be replaced. */
int64_t dcme_center_best(const dcme_center *clusters, const real *scores, int64_t count);
