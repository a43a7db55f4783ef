/* Shared by the files of this folder: the trainer, its workers and their sentence batches. */
#pragma once

#include "common/random.h"
#include "objectives/objective.h"
#include "train/sliding.h"
#include "train/train.h"

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
    void *thread;                              /* the objective's part */
    uint64_t subsample_stream, window_stream;
    dcme_sentence_batch batch;
    real *h, *gradient;               /* (block, stride) each: of the targets of a block */
    real **rows;                      /* input rows of a batch's words, one missing */
    dcme_sliding contexts, gradients; /* of fixed windows */
    dcme_word_window words;           /* with subwords */
} dcme_worker;

struct dcme_trainer {
    dcme_engine engine;
    dcme_train_options options;
    dcme_corpus corpus;
    dcme_model model;
    const dcme_objective *objective;
    void *shared;    /* the objective's part */
    uint32_t *keep;  /* (items) a word is kept if 32 random bits are not above this */
    int64_t *starts; /* (units + 1) first id of each shard */
};

/* shards.c: whether every id is a word's; and the first id of each of the engine's units, NULL if
 * there is not enough memory */
int dcme_has_words_only(const dcme_corpus *corpus);
int64_t *dcme_shards_cut(dcme_engine *engine, const dcme_corpus *corpus);

/* cbow.c, skipgram.c and subwords.c: learn from a worker's batch. */
void dcme_learn_cbow(dcme_worker *worker);
void dcme_learn_cbow_sliding(dcme_worker *worker);
void dcme_learn_cbow_subwords(dcme_worker *worker);
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

/* Name the target at position i to the objective, some steps ahead. */
static inline void dcme_prefetch_target(dcme_worker *worker, int64_t i) {
    if (i < worker->batch.length)
        worker->trainer->objective->prefetch(worker->thread, worker->batch.words[i]);
}

static inline void dcme_prefetch_first(dcme_worker *worker) {
    for (int64_t i = 0; i < DCME_AHEAD; i++)
        dcme_prefetch_target(worker, i);
}

/* Learn a target by a context vector; its direction is then in the worker's gradient. */
static inline void dcme_learn_target(dcme_worker *worker, int32_t target, real rate,
                                     const real *h) {
    dcme_instance instance = {.target = target, .rate = rate, .h = h, .gradient = worker->gradient};
    worker->trainer->objective->step(worker->thread, &instance, &worker->done->loss);
}
