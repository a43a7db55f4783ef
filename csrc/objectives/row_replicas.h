/* Each thread's own copies of the output rows of the most frequent words.
 *
 * All threads meet these words all the time. Were their rows shared like all others, each thread
 * would wait for cache lines that another has just written; where processors are far from one
 * another, two threads were no faster than one. So each thread moves its own copies, and
 * synchronises them with the table, one row after the other: what it moved is added to the table's
 * row, which then is its copy. What others moved it learns up to some thousand instances late.
 */
#ifndef DCME_ROW_REPLICAS_H
#define DCME_ROW_REPLICAS_H

#include "dcme.h"
#include "model/model.h"

typedef struct {
    const dcme_model *model;
    int64_t count;   /* rows: those of the words below; 0 for a single thread */
    int64_t every;   /* instances from one synchronised row to the next */
    int64_t seen;    /* instances */
    int copied;      /* whether the copies are of use */
    real *tables[2]; /* the output table, and (count, stride) the copies */
    real *base;      /* (count, stride) what was copied */
} dcme_row_replicas;

dcme_status dcme_replicas_open(dcme_row_replicas *replicas, const dcme_model *model,
                               int32_t threads);
void dcme_replicas_close(dcme_row_replicas *replicas);

/* Bytes of a thread's copies. */
int64_t dcme_replicas_bytes(const dcme_model *model);

/* Go on with a row that a random number names: if two threads synchronise one at
 * once, moves are lost. */
void dcme_replicas_seed(dcme_row_replicas *replicas, uint64_t stream);

/* Copy the table's rows, unless that was done. */
void dcme_replicas_begin(dcme_row_replicas *replicas);
/* An instance has been learned: it may be time to synchronise a row. */
void dcme_replicas_step(dcme_row_replicas *replicas);
/* Synchronise all rows; the copies are of no use from then on. */
void dcme_replicas_end(dcme_row_replicas *replicas);

/* The row of a word to score and to move. */
static inline real *dcme_replica_row(const dcme_row_replicas *replicas, int32_t word) {
    /* no branch: it would be unpredictable */
    return replicas->tables[word < replicas->count] + word * replicas->model->stride;
}

#endif
