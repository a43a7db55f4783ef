/* Deferred updates of a cluster's top items by a thread.
 *
 * Every instance of a cluster updates the cluster's top items with their full weight. If several
 * threads do so at once, each waits for rows that another has just written: two threads were half
 * as fast as one. So each thread sums up the updates of DEFERRED instances of a cluster and applies
 * them together. The scores of an instance then lack the last few updates of its cluster, just as
 * they lack the pending updates of other threads.
 *
 * All top items move along one sum, each by its negated share of the center (alpha). The u of the
 * cluster moves along another sum.
 */
#pragma once

#include "objectives/word_clusters.h"

/* Updates of one thread for one cluster. */
typedef struct {
    int64_t count; /* number of instances since the last update */
    int32_t *top;  /* (Q) top items at the first of these instances */
    real *alpha;   /* (Q) their negated shares of the center */
    real *sums;    /* (2, stride) sums for all top items and for u */
} dcme_deferred;

/* One per cluster. */
dcme_deferred *dcme_deferred_open(dcme_arena *arena, const dcme_clusters *clusters);

/* Prepare for an instance of cluster z: if its top items have changed, apply the updates of the
 * previous ones. `rows` has room for Q rows. */
void dcme_deferred_begin(dcme_deferred *deferred, const dcme_clusters *clusters, int64_t z,
                         real **rows);

/* Count an instance that was added to the sums. After enough instances, apply the updates. */
void dcme_deferred_end(dcme_deferred *deferred, const dcme_clusters *clusters, int64_t z,
                       real **rows);
