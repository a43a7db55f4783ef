/* Training from Python's or a C test's side: open, one call an epoch, close.
 *
 * The caller owns the corpus, the tables and the epoch loop. dcme_trainer_epoch() runs its threads
 * and returns when the epoch is over; meanwhile another thread may poll dcme_trainer_progress() or
 * call dcme_trainer_stop().
 */
#ifndef DCME_TRAIN_H
#define DCME_TRAIN_H

#include "common/state.h"
#include "common/token.h"
#include "dcme.h"
#include "kernels/kernels.h"
#include "model/options.h"

typedef struct {
    const uint32_t *ids;   /* (length) word numbers, by descending frequency */
    int64_t length;        /* at least 1 */
    const int64_t *counts; /* (items) */
    int64_t items;         /* words in the vocabulary */
} dcme_corpus;

typedef struct {
    int64_t trained;         /* tokens that were targets */
    int64_t subsampled;      /* tokens left out because they are frequent */
    int64_t without_context; /* tokens alone in their sentence */
    double loss;             /* sum over the instances looked at */
    int64_t losses;          /* how many these are */
    double rate;             /* learning rate at the furthest position */
} dcme_progress;

typedef struct dcme_trainer dcme_trainer;

/* Numbers in a table of `items` rows: rows are padded to dcme_row_stride(items, dim). */
dcme_status dcme_table_initialise(real *table, int64_t items, int64_t dim, int64_t seed);

/* `input` and `output` are tables of corpus->items rows, aligned to 64 bytes. `kernels` names the
 * instruction set, NULL for the fastest. Everything given must outlive the trainer. */
dcme_status dcme_trainer_open(dcme_trainer **trainer, const dcme_train_options *options,
                              const dcme_corpus *corpus, real *input, real *output,
                              const char *kernels, dcme_error *error);

/* Train one epoch, 0 <= epoch < options.epochs, or go on with the one that was stopped.
 * DCME_STOPPED after dcme_trainer_stop(), at the end of each thread's batch; DCME_DIVERGED if a
 * loss that was looked at, or in the end a row, is not finite. */
dcme_status dcme_trainer_epoch(dcme_trainer *trainer, int64_t epoch, dcme_error *error);

/* What the threads have done since the trainer was opened; may lag by a batch. */
void dcme_trainer_progress(dcme_trainer *trainer, dcme_progress *progress);

/* May come before the epoch has begun, which then ends at once. */
void dcme_trainer_stop(dcme_trainer *trainer);

/* The epoch that was stopped and not finished, or -1. */
int64_t dcme_trainer_unfinished(const dcme_trainer *trainer);

/* List all that a run depends on but its options, the corpus and the two tables: put back into a
 * trainer that was opened alike, with the tables, it goes on as the other would have. Not while an
 * epoch runs. */
void dcme_trainer_state(dcme_trainer *trainer, dcme_state *state);

/* After the state was put back: check that its positions can be, and publish its counts. */
dcme_status dcme_trainer_restored(dcme_trainer *trainer, dcme_error *error);

/* Whether rows from .. to - 1 are finite; the output table's follow on the input table's. May be
 * called while an epoch runs. */
int dcme_trainer_is_finite(const dcme_trainer *trainer, int64_t from, int64_t to);

/* How many clusters the objective has: 0 for most. */
int64_t dcme_trainer_clusters(const dcme_trainer *trainer);

/* Write the centre of cluster k, a distribution over the words, to alpha (items). Not while an
 * epoch runs. */
void dcme_trainer_centre(const dcme_trainer *trainer, int64_t k, real *alpha);

const char *dcme_trainer_kernels(const dcme_trainer *trainer);
void dcme_trainer_close(dcme_trainer *trainer);

#endif
