/* Copies of the output rows of the most frequent words, one set per thread.
 *
 * All threads update these words continually. With shared rows, each thread would wait for cache
 * lines that another has just written; on CPUs that do not share a cache, two threads were no
 * faster than one. So each thread updates its own copies, and synchronizes them with the table, one
 * row after the other: its updates are added to the table's row, which is then copied. Updates by
 * other threads arrive up to a few thousand instances late.
 */
#pragma once

#include "common/arena.h"
#include "model/model.h"

typedef struct {
    const dcme_model *model;
    int64_t count;   /* the first `count` words have copies; 0 for a single thread */
    int64_t every;   /* instances between two synchronized rows */
    int64_t left;    /* instances until the next row is synchronized */
    int64_t turn;    /* the row to synchronize next */
    int copied;      /* whether the copies are valid */
    real *tables[2]; /* the output table, and (count, stride) the copies */
    real *base;      /* (count, stride) the rows as they were copied */
} dcme_row_replicas;

void dcme_replicas_open(dcme_row_replicas *replicas, dcme_arena *arena, const dcme_model *model,
                        int32_t threads);

/* Continue at a random row: if two threads synchronize the same row at once,
 * updates are lost. */
void dcme_replicas_seed(dcme_row_replicas *replicas, uint64_t stream);

/* If the copies are not valid, copy the rows from the table. */
void dcme_replicas_begin(dcme_row_replicas *replicas);
/* Count an instance, and synchronize the next row if enough instances have passed. */
void dcme_replicas_step(dcme_row_replicas *replicas);
/* Synchronize all rows. Afterwards, the copies are invalid. */
void dcme_replicas_end(dcme_row_replicas *replicas);

/* Return the row to score and update for a word. */
static inline real *dcme_replica_row(const dcme_row_replicas *replicas, int32_t word) {
    /* no branch: it would be unpredictable */
    return replicas->tables[word < replicas->count] + word * replicas->model->stride;
}
