/* Shared by the files of this folder: the trainer, its workers and their sentence batches. hot.c is
 * the loop; fixed_windows.c, skipgram.c and subwords.c find contexts in other ways. */
#pragma once

#include "common/random.h"
#include "objectives/blocks.h"
#include "objectives/dcme.h"
#include "objectives/draws.h"
#include "words/sliding.h"
#include "words/train.h"

/* Minimum length of a shard other than the last, and maximum length of a sentence: a longer line is
 * cut for training. Small corpora have smaller shards, so that every thread has some. */
enum { DCME_SHARD_MAX = 32768, DCME_SHARD_MIN = 512, DCME_SHARDS_WANTED = 64 };

/* A batch ends with the first sentence that gives it at least this many words. */
enum { DCME_BATCH_WORDS = 1024 };

/* Subsampled sentences, one after the other. */
typedef struct {
    int64_t length;
    int32_t *words; /* (length) */
    int32_t *begin; /* (length) where the word's sentence begins in `words` */
    int32_t *end;   /* (length) and ends */
    real rate;      /* learning rate, of output rows */
} dcme_sentence_batch;

typedef struct {
    _Alignas(DCME_LINE) dcme_trainer *trainer; /* no other worker in its cache lines */
    dcme_done *done;                           /* the engine's */
    uint64_t subsample_stream, window_stream;
    dcme_sentence_batch batch;
    dcme_draws draws;
    dcme_blocks blocks; /* of a run with blocks */
    dcme_paper paper;   /* of a run of DCME */
    real **drawn;       /* rows of a draw, and room for the context */
    real *scores;       /* of these */
    real *errors;
    real *h, *gradient;               /* (DCME_BLOCK_MAX, stride) each: of the targets of a block */
    real *rates;                      /* of these rows */
    real *steps;                      /* of the rows of a context */
    real **rows;                      /* input rows of a batch's words, one missing */
    dcme_sliding contexts, gradients; /* of fixed windows */
    dcme_word_window words;           /* with subwords */
} dcme_worker;

struct dcme_trainer {
    dcme_engine engine;
    dcme_train_options options;
    dcme_corpus corpus;
    dcme_model model;
    dcme_noise noise;       /* of ns and nce */
    dcme_tree tree;         /* of hs */
    dcme_clusters clusters; /* of dcme */
    uint32_t *keep;         /* (items) a word is kept if 32 random bits are not above this */
    int64_t *starts;        /* (units + 1) first id of each shard */
};

/* shards.c: whether every id is a word's; and the first id of each of the engine's units, NULL if
 * there is not enough memory */
int dcme_has_words_only(const dcme_corpus *corpus);
int64_t *dcme_shards_cut(dcme_engine *engine, const dcme_corpus *corpus);

/* hot.c */
int64_t dcme_learn_batch(void *worker, int64_t position, int64_t end);
void dcme_draw_ahead(dcme_worker *worker, int64_t i); /* rows of the target at position i */
/* Learn the oldest draw, which is of this target, by a context vector, and leave the direction in
 * which that should move in `gradient`. */
void dcme_learn_target(dcme_worker *worker, int32_t target, const real *h, real *gradient);
/* The same for `count` targets from position i on, all of a block, with contexts in the worker's h.
 */
void dcme_learn_targets(dcme_worker *worker, int64_t i, int64_t count);

/* The others: learn from a worker's batch. */
void dcme_learn_fixed_windows(dcme_worker *worker);
void dcme_learn_subwords(dcme_worker *worker);
void dcme_learn_skipgram(dcme_worker *worker); /* with subwords or without */

/* subwords.c: a word enters the window and leaves it; its vector meanwhile */
void dcme_word_enter(dcme_worker *worker, int64_t position);
void dcme_word_leave(dcme_worker *worker, int64_t position);
real *dcme_word_vector(const dcme_worker *worker, int64_t position);
void dcme_word_prefetch(dcme_worker *worker, int64_t position);

/* worker.c: the work of the engine's threads, whose units are shards */
extern const dcme_work dcme_train_work;

/* The positions from .. to - 1 of a window, the target's among them. */
typedef struct {
    int64_t from, to;
} dcme_span;

/* The window at position i, whose half is drawn for `shrink`. */
static inline dcme_span dcme_window_at(dcme_worker *worker, int64_t i) {
    const dcme_train_options *options = &worker->trainer->options;
    int64_t half = options->window, begin = worker->batch.begin[i], end = worker->batch.end[i];
    if (options->window_mode == DCME_SHRINK)
        half = 1 + dcme_below(dcme_random(&worker->window_stream), half);
    return (dcme_span){dcme_max(i - half, begin), dcme_min(i + half + 1, end)};
}

/* A context's weights sum to `total`: the part of its direction for each of its input rows. */
static inline real dcme_input_weight(const dcme_worker *worker, real total) {
    return worker->trainer->options.gradient == DCME_EXACT ? 1 / total : 1;
}

static inline void dcme_prefetch_first(dcme_worker *worker) {
    for (int64_t i = 0; i < DCME_AHEAD; i++)
        dcme_draw_ahead(worker, i);
}

static inline void dcme_prefetch_input(const dcme_worker *worker, int64_t i) {
    const dcme_model *model = &worker->trainer->model;
    if (i < worker->batch.length)
        dcme_prefetch(model->input + worker->batch.words[i] * model->stride, model->stride);
}
