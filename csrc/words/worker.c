/* The memory, the shard and the random-number streams of each engine thread. */
#include "words/internal.h"

/* Each sentence is part of one shard, which is shorter than 2 * DCME_SHARD_MAX; see shards.c. */
enum { CAPACITY = DCME_BATCH_WORDS + 2 * DCME_SHARD_MAX };

static void open_batch(dcme_sentence_batch *batch, dcme_arena *arena) {
    DCME_TAKE_UNSET(arena, batch->words, CAPACITY);
    DCME_TAKE_UNSET(arena, batch->begin, CAPACITY);
    DCME_TAKE_UNSET(arena, batch->end, CAPACITY);
}

/* Open the memory that the objective needs in each thread. */
static void open_objective(dcme_worker *worker, dcme_arena *arena) {
    dcme_trainer *trainer = worker->trainer;
    const dcme_train_options *options = &trainer->options;
    int64_t most = dcme_max(options->negative + 1, trainer->tree.longest);
    worker->draws.noise = &trainer->noise;
    worker->draws.tree = &trainer->tree;
    dcme_draws_open(&worker->draws, arena, &trainer->model, options);
    DCME_TAKE(arena, worker->drawn, most + 1);
    DCME_TAKE(arena, worker->scores, dcme_stride(most + 1));
    DCME_TAKE(arena, worker->errors, dcme_stride(most + 1));
    DCME_TAKE(arena, worker->h, DCME_BLOCK_MAX * trainer->model.stride);
    DCME_TAKE(arena, worker->gradient, DCME_BLOCK_MAX * trainer->model.stride);
    if (options->block > 1)
        dcme_blocks_open(&worker->blocks, arena, &worker->draws, worker->h, worker->gradient);
    else if (options->objective == DCME_DCME)
        dcme_paper_open(&worker->paper, arena, &trainer->clusters, options->threads);
}

static dcme_status open_worker(void *job, void *argument, dcme_thread *thread, dcme_error *error) {
    const dcme_purpose buffers = {"the memory of a thread",
                                  "lower --threads, --window, --dim or --clusters"};
    dcme_trainer *trainer = job;
    dcme_worker *worker = argument;
    dcme_arena *arena = &thread->arena;
    const dcme_model *model = &trainer->model;
    int64_t window = trainer->options.window;
    worker->trainer = trainer;
    worker->done = &thread->done;
    open_batch(&worker->batch, arena);
    dcme_sliding_open(&worker->contexts, arena, model->kernels, window, model->size);
    dcme_sliding_open(&worker->gradients, arena, model->kernels, window, model->size);
    dcme_word_window_open(&worker->words, arena, trainer->corpus.subwords, model->items, window,
                          model->stride);
    DCME_TAKE_UNSET(arena, worker->rows, CAPACITY);
    DCME_TAKE_UNSET(arena, worker->rates, CAPACITY);
    DCME_TAKE(arena, worker->steps, 2 * window);
    DCME_SAVE(arena, worker->subsample_stream);
    DCME_SAVE(arena, worker->window_stream);
    open_objective(worker, arena);
    return dcme_arena_check(arena, buffers, error);
}

static void start_shard(void *argument, int64_t shard, int64_t *begin, int64_t *end) {
    dcme_worker *worker = argument;
    const dcme_trainer *trainer = worker->trainer;
    uint64_t seed = trainer->options.seed, epoch = trainer->engine.epoch;
    *begin = trainer->starts[shard];
    *end = trainer->starts[shard + 1];
    worker->subsample_stream = dcme_stream(seed, epoch, shard, DCME_SUBSAMPLE);
    worker->window_stream = dcme_stream(seed, epoch, shard, DCME_WINDOW);
    dcme_draws_seed(&worker->draws, dcme_stream(seed, epoch, shard, DCME_NOISE));
    dcme_blocks_seed(&worker->blocks);
}

static void flush(void *argument) {
    dcme_worker *worker = argument;
    dcme_replicas_end(&worker->draws.replicas);
}

const dcme_work dcme_train_work = {
    .open = open_worker,
    .worker_size = sizeof(dcme_worker),
    .start_unit = start_shard,
    .learn = dcme_learn_batch,
    .flush = flush,
};
