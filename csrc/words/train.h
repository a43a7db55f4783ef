/* Word-vector training, as called from Python or a C test: open, run the engine's epochs, close.
 * The caller owns the corpus, the tables and the epoch loop. */
#pragma once

#include "common/token.h"
#include "dcme.h"
#include "engine/engine.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "model/train_options.h"

/* The n-grams of each word. Their rows follow the words' rows in the input table. */
typedef struct {
    const int64_t *starts; /* (items + 1) n-grams of word i: starts[i] .. starts[i + 1] - 1 */
    const int32_t *ngrams; /* (starts[items]) numbers below `buckets` */
    int64_t buckets;       /* number of n-gram rows */
} dcme_subwords;

typedef struct {
    const uint32_t *ids;           /* (length) word IDs, by descending frequency */
    int64_t length;                /* at least 1 */
    const int64_t *counts;         /* (items) */
    int64_t items;                 /* number of words in the vocabulary */
    const dcme_subwords *subwords; /* NULL for none */
} dcme_corpus;

typedef struct dcme_trainer dcme_trainer;

/* Return how many numbers a table of `items` rows has; rows are padded to dcme_row_stride(items,
 * dim).
 */
void dcme_table_initialize(real *table, int64_t items, int64_t dim, int64_t seed);

/* `input` and `output` are tables with corpus->items rows, aligned to 64 bytes. With subwords, the
 * input table also has the n-gram rows, and both tables have the stride for that number of rows.
 * `neighbors` are two more tables, for left and right neighbors, if the options have word order,
 * which does not support subwords; otherwise NULL. `kernels` names the instruction set; NULL
 * selects the fastest. All arguments must outlive the trainer, which must be closed even if opening
 * it failed. */
dcme_status dcme_trainer_open(dcme_trainer **trainer, const dcme_train_options *options,
                              const dcme_corpus *corpus, real *input, real *output,
                              real *const *neighbors, const char *kernels, dcme_error *error);

/* Return the engine for its epochs, progress and state; see engine/engine.h. The tables are the
 * input rows, then the output rows and, with word order, the rows of left and right neighbors. */
dcme_engine *dcme_trainer_engine(dcme_trainer *trainer);

/* Return the number of clusters of the objective, which is 0 for most objectives. */
int64_t dcme_trainer_clusters(const dcme_trainer *trainer);

/* Write the center of cluster k, a distribution over the words, to alpha (items). Do not call while
 * an epoch runs. */
void dcme_trainer_center(const dcme_trainer *trainer, int64_t k, real *alpha);

void dcme_trainer_close(dcme_trainer *trainer);
