/* Moves of the top items that a thread has yet to make.
 *
 * Every instance of a cluster moves its top items by their whole weight. Where several threads do
 * so at once, each waits for rows that another has just written: two of them were half as fast as
 * one. So each gathers the moves of a cluster's top items and makes those of LATE instances
 * together. The scores of an instance then lack what the last few of its cluster have moved, as
 * they lack what other threads are at.
 */
#ifndef DCME_LATE_H
#define DCME_LATE_H

#include "objectives/objective.h"

/* Of one thread and one cluster. */
typedef struct {
    int64_t count;  /* instances since the moves were made last */
    int32_t *words; /* (Q) top items at that time */
    real *moves;    /* (Q, stride) */
} dcme_late;

/* One for each cluster, or DCME_NO_MEMORY; close them even then. */
dcme_status dcme_late_open(dcme_late **late, int64_t clusters, int64_t top_items, int64_t stride);
void dcme_late_close(dcme_late *late, int64_t clusters);

/* Be ready for an instance whose cluster has these top items: if they are others than before, the
 * moves of those are made. */
void dcme_late_begin(dcme_late *late, const dcme_model *model, const int32_t *top,
                     int64_t top_items);

/* An instance's moves have been added; make them if they are many. */
void dcme_late_end(dcme_late *late, const dcme_model *model, int64_t top_items);

/* List what changes. */
void dcme_late_state(dcme_late *late, int64_t clusters, int64_t top_items, int64_t stride,
                     dcme_state *state);

#endif
