/* Deferred updates of a cluster's top items by a thread.
 *
 * Every instance of a cluster updates its top items by their full weight. If several threads do
 * so at once, each waits for rows that another has just written: two were half as fast as
 * one. So each thread sums up the updates of DEFERRED instances of a cluster and applies them
 * together. The scores of an instance then do not include the last few updates of its cluster, as
 * they do not include pending updates of other threads.
 *
 * All top items move along one sum, by minus their shares of the center (alpha), and the cluster's
 * u along another.
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

/* Count an instance that was added to the sums, and apply the updates after enough instances. */
void dcme_deferred_end(dcme_deferred *deferred, const dcme_clusters *clusters, int64_t z,
                       real **rows);
