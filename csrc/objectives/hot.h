/* Each thread's own copies of the output rows of the most frequent words.
 *
 * All threads meet these words all the time. Were their rows shared like all others, each thread
 * would wait for cache lines that another has just written; where processors are far from one
 * another, two threads were no faster than one. So each thread moves its own copies, and joins them
 * with the table, one row after the other: what it moved is added to the table's row, which then is
 * its copy. What others moved it learns up to some thousand instances late.
 */
#ifndef DCME_HOT_H
#define DCME_HOT_H

#include "dcme.h"
#include "train/model.h"

typedef struct {
    const dcme_model *model;
    int64_t count;   /* rows: those of the words below; 0 for a single thread */
    int64_t every;   /* instances from one join to the next */
    int64_t seen;    /* instances */
    int copied;      /* whether the copies are of use */
    real *tables[2]; /* the output table, and (count, stride) the copies */
    real *joined;    /* (count, stride) what was copied */
} dcme_hot;

dcme_status dcme_hot_open(dcme_hot *hot, const dcme_model *model, int32_t threads);
void dcme_hot_close(dcme_hot *hot);

/* Go on with a row that a random number names: if two threads join one at once, moves are lost. */
void dcme_hot_take_turns(dcme_hot *hot, uint64_t stream);

/* Copy the table's rows, unless that was done. */
void dcme_hot_begin(dcme_hot *hot);
/* An instance has been learned: it may be time to join a row. */
void dcme_hot_step(dcme_hot *hot);
/* Join all rows; the copies are of no use from then on. */
void dcme_hot_end(dcme_hot *hot);

/* The row of a word to score and to move. */
static inline real *dcme_hot_row(const dcme_hot *hot, int32_t word) {
    /* no branch: it would be a coin */
    return hot->tables[word < hot->count] + word * hot->model->stride;
}

#endif
