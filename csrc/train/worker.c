/* What a thread of the engine does in training: takes shards, reads sentence batches, learns. */
#include "train/internal.h"

dcme_status dcme_worker_open(dcme_worker *worker, dcme_trainer *trainer, dcme_arena *arena,
                             dcme_error *error) {
    const dcme_train_options *options = &trainer->options;
    const dcme_objective *objective = trainer->objective;
    const dcme_purpose buffers = {"the buffers of a thread", "lower --threads, --window or --dim"};
    int64_t stride = trainer->model.stride, block = options->block;
    int linear = options->window_mode == DCME_LINEAR;
    worker->trainer = trainer;
    dcme_sentence_batch_open(&worker->batch, arena);
    dcme_sliding_open(&worker->contexts, arena, trainer->model.kernels, options->window, linear,
                      stride);
    dcme_sliding_open(&worker->gradients, arena, trainer->model.kernels, options->window, linear,
                      stride);
    dcme_word_window_open(&worker->words, arena, trainer->corpus.subwords, trainer->corpus.items,
                          options->window, stride);
    worker->h = dcme_take(arena, block * stride, sizeof *worker->h);
    worker->gradient = dcme_take(arena, block * stride, sizeof *worker->gradient);
    worker->moved = dcme_take(arena, stride, sizeof *worker->moved);
    worker->rows = dcme_take(arena, 2 * options->window, sizeof *worker->rows);
    worker->input_scale = (real)options->input_rate;
    dcme_save(arena, &worker->subsample_stream, 1, sizeof worker->subsample_stream, 0);
    dcme_save(arena, &worker->window_stream, 1, sizeof worker->window_stream, 0);
    worker->thread = dcme_take(arena, 1, objective->thread_size);
    dcme_status status = dcme_arena_check(arena, buffers, error);
    if (status == DCME_OK) {
        objective->thread_open(worker->thread, arena, trainer->shared);
        status = dcme_arena_check(arena, objective->own, error);
    }
    return status;
}

static void take_shard(void *argument, int64_t shard, int64_t *begin, int64_t *end) {
    dcme_worker *worker = argument;
    const dcme_trainer *trainer = worker->trainer;
    uint64_t seed = (uint64_t)trainer->options.seed, epoch = (uint64_t)trainer->engine.epoch;
    *begin = trainer->starts[shard];
    *end = trainer->starts[shard + 1];
    worker->subsample_stream = dcme_stream(seed, epoch, (uint64_t)shard, DCME_SUBSAMPLE);
    worker->window_stream = dcme_stream(seed, epoch, (uint64_t)shard, DCME_WINDOW);
    trainer->objective->seed(worker->thread, dcme_stream(seed, epoch, (uint64_t)shard, DCME_NOISE));
}

static int64_t learn_batch(void *argument, int64_t position, int64_t end) {
    dcme_worker *worker = argument;
    const dcme_train_options *options = &worker->trainer->options;
    position = dcme_sentence_batch_read(worker, position, end);
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
    .take = take_shard,
    .step = learn_batch,
    .flush = flush,
};
