/* The training by a thread of the engine: it takes shards, reads sentences, drops frequent words at
 * random, and learns from the others. */
#include "train/internal.h"

/* A shard shorter than twice DCME_SHARD_MAX holds any sentence; see shards.c. */
enum { CAPACITY = DCME_BATCH_WORDS + 2 * DCME_SHARD_MAX };

static void open_batch(dcme_sentence_batch *batch, dcme_arena *arena) {
    DCME_TAKE_UNSET(arena, batch->words, CAPACITY);
    DCME_TAKE_UNSET(arena, batch->begin, CAPACITY);
    DCME_TAKE_UNSET(arena, batch->end, CAPACITY);
}

/* Append the kept words of one sentence; return the position after it. Which words are kept is not
 * a branch: it would be unpredictable. */
static int64_t read_sentence(dcme_worker *worker, int64_t position, int64_t end) {
    const dcme_trainer *trainer = worker->trainer;
    dcme_sentence_batch *batch = &worker->batch;
    const uint32_t *ids = trainer->corpus.ids, *keep = trainer->keep;
    int64_t begin = batch->length, length = begin, first = position;
    uint64_t stream = worker->subsample_stream;
    uint32_t id;
    do {
        id = ids[position++];
        uint32_t word = id & ~DCME_SENTENCE_END;
        batch->words[length] = (int32_t)word;
        length += !keep || (uint32_t)(dcme_random(&stream) >> 32) <= keep[word];
    } while (!(id & DCME_SENTENCE_END) && position < end);
    if (keep)
        worker->subsample_stream = stream;
    worker->done->subsampled += position - first - (length - begin);
    if (length - begin == 1) {
        worker->done->without_context++;
        length = begin;
    }
    for (int64_t i = begin; i < length; i++) {
        batch->begin[i] = (int32_t)begin;
        batch->end[i] = (int32_t)length;
    }
    batch->length = length;
    return position;
}

/* Read sentences from id `position` on until the batch is full or `end` is reached. */
static int64_t read_batch(dcme_worker *worker, int64_t position, int64_t end) {
    const dcme_engine *engine = &worker->trainer->engine;
    worker->batch.length = 0;
    worker->batch.rate = (real)dcme_learning_rate(&engine->schedule, engine->epoch, position);
    worker->done->rate = worker->batch.rate;
    while (position < end && worker->batch.length < DCME_BATCH_WORDS)
        position = read_sentence(worker, position, end);
    return position;
}

static dcme_status open_worker(void *job, void *argument, dcme_thread *thread, dcme_error *error) {
    dcme_trainer *trainer = job;
    dcme_worker *worker = argument;
    dcme_arena *arena = &thread->arena;
    const dcme_train_options *options = &trainer->options;
    const dcme_objective *objective = trainer->objective;
    const dcme_purpose buffers = {"the memory of a thread",
                                  "lower --threads, --window, --dim or --clusters"};
    int64_t stride = trainer->model.stride, block = options->block;
    worker->trainer = trainer;
    worker->done = &thread->done;
    open_batch(&worker->batch, arena);
    dcme_sliding_open(&worker->contexts, arena, trainer->model.kernels, options->window,
                      trainer->model.size);
    dcme_sliding_open(&worker->gradients, arena, trainer->model.kernels, options->window,
                      trainer->model.size);
    dcme_word_window_open(&worker->words, arena, trainer->corpus.subwords, trainer->corpus.items,
                          options->window, stride);
    DCME_TAKE(arena, worker->h, block * stride);
    DCME_TAKE(arena, worker->gradient, block * stride);
    DCME_TAKE_UNSET(arena, worker->rows, CAPACITY);
    DCME_SAVE(arena, worker->subsample_stream);
    DCME_SAVE(arena, worker->window_stream);
    worker->thread = dcme_take(arena, 1, objective->thread_size);
    DCME_TRY(dcme_arena_check(arena, buffers, error));
    objective->thread_open(worker->thread, arena, trainer->shared);
    return dcme_arena_check(arena, buffers, error);
}

static void take_shard(void *argument, int64_t shard, int64_t *begin, int64_t *end) {
    dcme_worker *worker = argument;
    const dcme_trainer *trainer = worker->trainer;
    uint64_t seed = trainer->options.seed, epoch = trainer->engine.epoch;
    *begin = trainer->starts[shard];
    *end = trainer->starts[shard + 1];
    worker->subsample_stream = dcme_stream(seed, epoch, shard, DCME_SUBSAMPLE);
    worker->window_stream = dcme_stream(seed, epoch, shard, DCME_WINDOW);
    trainer->objective->seed(worker->thread, dcme_stream(seed, epoch, shard, DCME_NOISE));
}

static int64_t learn_batch(void *argument, int64_t position, int64_t end) {
    dcme_worker *worker = argument;
    const dcme_train_options *options = &worker->trainer->options;
    position = read_batch(worker, position, end);
    if (options->model == DCME_SKIPGRAM)
        dcme_learn_skipgram(worker);
    else if (worker->trainer->corpus.subwords)
        dcme_learn_cbow_subwords(worker);
    else if (options->window_mode == DCME_SHRINK)
        dcme_learn_cbow(worker);
    else
        dcme_learn_cbow_sliding(worker);
    worker->done->trained += worker->batch.length;
    return position;
}

static void flush(void *argument) {
    dcme_worker *worker = argument;
    if (worker->trainer->objective->flush)
        worker->trainer->objective->flush(worker->thread);
}

const dcme_work dcme_train_work = {
    .open = open_worker,
    .worker_size = sizeof(dcme_worker),
    .take = take_shard,
    .step = learn_batch,
    .flush = flush,
};
