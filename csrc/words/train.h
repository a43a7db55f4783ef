/* Training of word vectors from Python's or a C test's side: open, run the engine's epochs, close.
 * The caller owns the corpus, the tables and the epoch loop. */
#pragma once

#include "common/token.h"
#include "dcme.h"
#include "engine/engine.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "model/train_options.h"
#include "words/subwords.h"

typedef struct {
    const uint32_t *ids;           /* (length) word numbers, by descending frequency */
    int64_t length;                /* at least 1 */
    const int64_t *counts;         /* (items) */
    int64_t items;                 /* words in the vocabulary */
    const dcme_subwords *subwords; /* NULL for none */
} dcme_corpus;

typedef struct dcme_trainer dcme_trainer;

/* Numbers in a table of `items` rows: rows are padded to dcme_row_stride(items, dim). */
void dcme_table_initialize(real *table, int64_t items, int64_t dim, int64_t seed);

/* `input` and `output` are tables of corpus->items rows, aligned to 64 bytes; with subwords the
 * input's has the rows of n-grams, too, and both have the stride of that many rows. `neighbors`
 * are two more, of left and right neighbors, if the options have word order, which is not
 * supported with subwords, and may be NULL if not. `kernels` names the instruction set, NULL for
 * the fastest. Everything given must outlive the trainer, which must be closed, also if opening
 * failed. */
dcme_status dcme_trainer_open(dcme_trainer **trainer, const dcme_train_options *options,
                              const dcme_corpus *corpus, real *input, real *output,
                              real *const *neighbors, const char *kernels, dcme_error *error);

/* Its epochs, progress and state; see engine/engine.h. The tables are the input's and then the
 * output's rows, and with word order the rows of left and right neighbors. */
dcme_engine *dcme_trainer_engine(dcme_trainer *trainer);

/* How many clusters the objective has: 0 for most. */
int64_t dcme_trainer_clusters(const dcme_trainer *trainer);

/* Write the center of cluster k, a distribution over the words, to alpha (items). Not while an
 * epoch runs. */
void dcme_trainer_center(const dcme_trainer *trainer, int64_t k, real *alpha);

void dcme_trainer_close(dcme_trainer *trainer);
