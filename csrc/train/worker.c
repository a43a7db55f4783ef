/* What a thread of the engine does in training: takes shards, reads sentence batches, learns. */
#include "train/internal.h"

#include <stdlib.h>

dcme_status dcme_worker_open(dcme_worker *worker, dcme_trainer *trainer, dcme_error *error) {
    const dcme_train_options *options = &trainer->options;
    int64_t stride = trainer->model.stride;
    int linear = options->window_mode == DCME_LINEAR;
    dcme_status status = dcme_sentence_batch_open(&worker->batch);
    if (status == DCME_OK)
        status = dcme_sliding_open(&worker->contexts, trainer->model.kernels, options->window,
                                   linear, stride);
    if (status == DCME_OK)
        status = dcme_sliding_open(&worker->gradients, trainer->model.kernels, options->window,
                                   linear, stride);
    if (status == DCME_OK)
        status = dcme_word_window_open(&worker->words, trainer->corpus.subwords,
                                       trainer->corpus.items, options->window, stride);
    worker->trainer = trainer;
    worker->h = dcme_allocate((2 * options->block + 1) * stride, sizeof *worker->h);
    worker->rows = dcme_allocate(2 * options->window, sizeof *worker->rows);
    if (status != DCME_OK || !worker->h || !worker->rows) {
        int64_t windows = 2 * (2 * options->window + 9) * stride * (int64_t)sizeof(real);
        return dcme_no_memory(error, dcme_sentence_batch_bytes() + windows,
                              "the buffers of a thread", "lower --threads, --window or --dim");
    }
    worker->gradient = worker->h + options->block * stride;
    worker->moved = worker->gradient + options->block * stride;
    worker->input_scale = (real)options->input_rate;
    return trainer->objective->thread_open(&worker->thread, trainer->shared, error);
}

void dcme_worker_close(dcme_worker *worker) {
    if (worker->thread)
        worker->trainer->objective->thread_close(worker->thread);
    dcme_sentence_batch_close(&worker->batch);
    dcme_sliding_close(&worker->contexts);
    dcme_sliding_close(&worker->gradients);
    dcme_word_window_close(&worker->words);
    free(worker->h);
    free(worker->rows);
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

static void learn_with_subwords(dcme_worker *worker) {
    if (worker->trainer->options.model == DCME_SKIPGRAM)
        dcme_learn_skipgram_subwords(worker);
    else
        dcme_learn_cbow_subwords(worker);
}

static int64_t learn_batch(void *argument, int64_t position, int64_t end) {
    dcme_worker *worker = argument;
    const dcme_train_options *options = &worker->trainer->options;
    position = dcme_sentence_batch_read(worker, position, end);
    if (worker->trainer->corpus.subwords)
        learn_with_subwords(worker);
    else if (options->model == DCME_SKIPGRAM)
        dcme_learn_skipgram(worker);
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

static void list_trainer_state(void *job, dcme_state *state) {
    dcme_trainer *trainer = job;
    if (trainer->objective->shared_state)
        trainer->objective->shared_state(trainer->shared, state);
}

static void list_worker_state(void *argument, dcme_state *state) {
    dcme_worker *worker = argument;
    dcme_state_add(state, &worker->subsample_stream, 1, sizeof worker->subsample_stream);
    dcme_state_add(state, &worker->window_stream, 1, sizeof worker->window_stream);
    if (worker->trainer->objective->thread_state)
        worker->trainer->objective->thread_state(worker->thread, state);
}

const dcme_work dcme_train_work = {
    .take = take_shard,
    .step = learn_batch,
    .flush = flush,
    .job_state = list_trainer_state,
    .worker_state = list_worker_state,
};
