/* Declarations shared by this folder's files: the trainer, its workers and their sentence batches.
 * hot.c is the main loop; fixed_windows.c, skipgram.c and subwords.c compute contexts in other
 * ways. */
#pragma once

#include "common/random.h"
#include "objectives/blocks.h"
#include "objectives/dcme.h"
#include "objectives/draws.h"
#include "words/sliding.h"
#include "words/train.h"

/* Minimum length of a shard other than the last, and maximum length of a sentence: longer lines are
 * cut for training. Small corpora have smaller shards, so that every thread has some shards. */
enum { DCME_SHARD_MAX = 32768, DCME_SHARD_MIN = 512, DCME_SHARDS_WANTED = 64 };

/* A batch ends with the sentence at which it reaches this number of words. */
enum { DCME_BATCH_WORDS = 1024 };

/* Subsampled sentences, one after the other. */
typedef struct {
    int64_t length;
    int32_t *words; /* (length) */
    int32_t *begin; /* (length) start of the word's sentence in `words` */
    int32_t *end;   /* (length) end of that sentence */
    real rate;      /* learning rate of the output rows */
} dcme_sentence_batch;

/* The vectors of the words in a window, used with subwords. */
typedef struct {
    int64_t slots;  /* the vector at position p of a sentence is in slot p % slots */
    real *vectors;  /* (slots, stride) */
    real *before;   /* (slots, stride) the vectors as they were computed */
    real **rows;    /* rows of one word */
    real *weights;  /* (slots) weights of the words in a context */
    real **context; /* (slots) their vectors */
} dcme_word_window;

typedef struct {
    _Alignas(DCME_LINE) dcme_trainer *trainer; /* no two workers share a cache line */
    dcme_done *done;                           /* read by the engine */
    uint64_t subsample_stream, window_stream;
    dcme_sentence_batch batch;
    dcme_draws draws;
    dcme_blocks blocks; /* used with blocks */
    dcme_paper paper;   /* used by DCME */
    real **drawn;       /* rows of a draw, and space for the context */
    real *scores;       /* their scores */
    real *errors;
    real *h, *gradient; /* (DCME_BLOCK_MAX, stride) each, for the targets of a block */
    real *rates;        /* pointers to their rows */
    real *steps;        /* weights of the rows in a context */
    real **rows;        /* input rows of the words in a batch, except the target's row */
    dcme_sliding contexts, gradients; /* used with fixed windows */
    dcme_word_window words;           /* used with subwords */
} dcme_worker;

struct dcme_trainer {
    dcme_engine engine;
    dcme_train_options options;
    dcme_corpus corpus;
    dcme_model model;
    dcme_noise noise;       /* used by ns and nce */
    dcme_tree tree;         /* used by hs */
    dcme_clusters clusters; /* used by dcme */
    uint32_t *keep;         /* (items) a word is kept if 32 random bits do not exceed this */
    int64_t *starts;        /* (units + 1) position of each shard's first token */
};

/* Defined in shards.c: return whether every ID belongs to a word; return the position of the first
 * token of each unit, or NULL if there is not enough memory. */
int dcme_has_words_only(const dcme_corpus *corpus);
int64_t *dcme_shards_cut(dcme_engine *engine, const dcme_corpus *corpus);

/* hot.c */
int64_t dcme_learn_batch(void *worker, int64_t position, int64_t end);
/* Draw and prefetch the rows for the target at position i. */
void dcme_draw_ahead(dcme_worker *worker, int64_t i);
/* Train on the oldest draw, which belongs to this target, with a context vector, and write the
 * direction in which the context vector should move to `gradient`. */
void dcme_learn_target(dcme_worker *worker, int32_t target, const real *h, real *gradient);
/* Train on `count` targets in one block, starting at position i. Their contexts are in h of the
 * worker. */
void dcme_learn_targets(dcme_worker *worker, int64_t i, int64_t count);

/* Train on the batch of a worker with one of the other kinds of context. */
void dcme_learn_fixed_windows(dcme_worker *worker);
void dcme_learn_subwords(dcme_worker *worker);
void dcme_learn_skipgram(dcme_worker *worker); /* both with and without subwords */

/* Defined in subwords.c: return whether every n-gram number has a row; open a window, which does
 * nothing without subwords. */
int dcme_subwords_valid(const dcme_subwords *subwords, int64_t items);
void dcme_word_window_open(dcme_word_window *window, dcme_arena *arena,
                           const dcme_subwords *subwords, int64_t items, int64_t half_window,
                           int64_t stride);
/* Let a word enter or leave the window, and return its vector while it is there. */
void dcme_word_enter(dcme_worker *worker, int64_t position);
void dcme_word_leave(dcme_worker *worker, int64_t position);
real *dcme_word_vector(const dcme_worker *worker, int64_t position);
void dcme_word_prefetch(dcme_worker *worker, int64_t position);

/* Defined in worker.c: the callbacks for the engine, with shards as units. */
extern const dcme_work dcme_train_work;

/* The positions from .. to - 1 of a window, including the target's. */
typedef struct {
    int64_t from, to;
} dcme_span;

/* Return the window at position i, whose width is random for `shrink`. */
static inline dcme_span dcme_window_at(dcme_worker *worker, int64_t i) {
    const dcme_train_options *options = &worker->trainer->options;
    int64_t half = options->window, begin = worker->batch.begin[i], end = worker->batch.end[i];
    if (options->window_mode == DCME_SHRINK)
        half = 1 + dcme_below(dcme_random(&worker->window_stream), half);
    return (dcme_span){dcme_max(i - half, begin), dcme_min(i + half + 1, end)};
}

/* Return the share of the direction of a context that each of its input rows receives. The weights
 * in the context add up to `total`. */
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
