/* One dual cluster: its center, a distribution over the items, and its lock.
 *
 * These functions need a center alone, whatever the model's layout: used by the clusters of word
 * vectors (word_clusters.c) and of classes (../classify/paper_classes.c).
 */
#pragma once

#include "common/arena.h"
#include "kernels/kernels.h"

#include <stdatomic.h>

typedef struct {
    real *alpha;          /* (N) center */
    int32_t *_Atomic top; /* (Q) heaviest items, descending */
    int32_t *spare;       /* (Q) where the next ones are written */
    uint8_t *is_top;      /* (N) */
    _Atomic int busy;     /* a thread is at its offline update */
} dcme_center;

/* `cluster` is all zeros before. Its center has room for `room` items, the first `items` of them in
 * the state. */
void dcme_center_open(dcme_center *cluster, dcme_arena *arena, int64_t room, int64_t items,
                      int64_t top_items);

/* The top items. The list that a reader holds is rewritten after two more moves of the cluster;
 * each entry is always an item. */
static inline const int32_t *dcme_center_top(const dcme_center *cluster) {
    return atomic_load_explicit(&cluster->top, memory_order_acquire);
}

/* The unigram distribution, disturbed at random so that cluster k differs from the others. */
void dcme_center_start(dcme_center *cluster, const int64_t *counts, int64_t items, int64_t seed,
                       int64_t k);

real dcme_entropy(const real *alpha, int64_t items);

/* out[i] = e^(x[i] - largest), and 0 where that is negligible compared with 1: products with
 * numbers so small would be denormal, which takes many times as long. out may be x. */
void dcme_exponentials(const dcme_kernels *kernels, real *out, const real *x, real largest,
                       int64_t count);

static inline double dcme_total(const real *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i];
    return sum;
}

enum { DCME_AT_ONCE = 64 }; /* numbers that are handed to a kernel at a time */

/* alpha = softmax(scores) (13), made of dcme_exponentials(); returns its entropy. `scores` is
 * overwritten. */
real dcme_soften(const dcme_kernels *kernels, real *alpha, real *scores, int64_t items);

/* Make the heaviest items the top ones. */
void dcme_center_choose_top(dcme_center *cluster, int64_t items, int64_t top_items);

/* The cluster's lock: whether the caller has got it, without waiting; and giving it back. */
int dcme_center_try_lock(dcme_center *cluster);
void dcme_center_unlock(dcme_center *cluster);

/* argmax_k scores_k over the clusters that no thread is updating (over all, if all are): instances
 * that a busy cluster took meanwhile would learn from values about to be replaced, and pile up. */
int64_t dcme_center_best(const dcme_center *clusters, const real *scores, int64_t count);
