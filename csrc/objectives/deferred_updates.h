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

/* Of one thread and one cluster. */
typedef struct {
    int64_t count; /* instances since the updates were made last */
    int32_t *top;  /* (Q) top items when the first of them came */
    real *alpha;   /* (Q) minus their shares of the center */
    real *sums;    /* (2, stride): of all top items, and of u */
} dcme_deferred;

/* One for each cluster. */
dcme_deferred *dcme_deferred_open(dcme_arena *arena, const dcme_clusters *clusters);

/* Be ready for an instance of cluster z: if it has other top items than before, the updates of
 * those are made. `rows` has room for Q rows. */
void dcme_deferred_begin(dcme_deferred *deferred, const dcme_clusters *clusters, int64_t z,
                         real **rows);

/* An instance has been added to the sums; make the updates if they are many. */
void dcme_deferred_end(dcme_deferred *deferred, const dcme_clusters *clusters, int64_t z,
                       real **rows);
