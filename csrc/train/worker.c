/* One thread of training: takes shards, reads sentence batches, learns, publishes counts. */
#include "train/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    worker->trainer = trainer;
    worker->h = dcme_allocate(3 * stride, sizeof *worker->h);
    worker->rows = dcme_allocate(2 * options->window, sizeof *worker->rows);
    if (status != DCME_OK || !worker->h || !worker->rows)
        return dcme_no_memory(error, 2 * (2 * options->window + 8) * stride * (int64_t)sizeof(real),
                              "the buffers of a thread", "lower --threads, --window or --dim");
    worker->gradient = worker->h + stride;
    worker->moved = worker->gradient + stride;
    worker->input_scale = (real)options->input_rate;
    return trainer->objective->thread_open(&worker->thread, trainer->shared, error);
}

void dcme_worker_close(dcme_worker *worker) {
    if (worker->thread)
        worker->trainer->objective->thread_close(worker->thread);
    dcme_sentence_batch_close(&worker->batch);
    dcme_sliding_close(&worker->contexts);
    dcme_sliding_close(&worker->gradients);
    free(worker->h);
    free(worker->rows);
}

void dcme_worker_publish(dcme_worker *worker) {
    dcme_counters *c = worker->counters;
    atomic_store_explicit(&c->trained, worker->trained, memory_order_relaxed);
    atomic_store_explicit(&c->subsampled, worker->subsampled, memory_order_relaxed);
    atomic_store_explicit(&c->without_context, worker->without_context, memory_order_relaxed);
    atomic_store_explicit(&c->losses, worker->loss.count, memory_order_relaxed);
    atomic_store_explicit(&c->loss, worker->loss.sum, memory_order_relaxed);
    atomic_store_explicit(&c->rate, worker->batch.rate, memory_order_relaxed);
}

static void take_shard(dcme_worker *worker, int64_t shard) {
    const dcme_trainer *trainer = worker->trainer;
    uint64_t seed = (uint64_t)trainer->options.seed, epoch = (uint64_t)worker->epoch;
    worker->position = trainer->starts[shard];
    worker->end = trainer->starts[shard + 1];
    worker->subsample_stream = dcme_stream(seed, epoch, (uint64_t)shard, DCME_SUBSAMPLE);
    worker->window_stream = dcme_stream(seed, epoch, (uint64_t)shard, DCME_WINDOW);
    trainer->objective->seed(worker->thread, dcme_stream(seed, epoch, (uint64_t)shard, DCME_NOISE));
}

static int stopped(dcme_trainer *trainer) {
    return atomic_load_explicit(&trainer->stop, memory_order_relaxed);
}

/* Learn batch by batch; where it is stopped, the worker can go on later. */
static void learn_shard(dcme_worker *worker) {
    dcme_trainer *trainer = worker->trainer;
    const dcme_train_options *options = &trainer->options;
    int sliding = options->window_mode != DCME_SHRINK;
    while (worker->position < worker->end && !stopped(trainer)) {
        worker->position = dcme_sentence_batch_read(worker, worker->position, worker->end);
        if (options->model == DCME_SKIPGRAM)
            dcme_learn_skipgram(worker);
        else if (sliding)
            dcme_learn_cbow_sliding(worker);
        else
            dcme_learn_cbow(worker);
        dcme_worker_publish(worker);
        if (!isfinite(worker->loss.sum)) {
            atomic_store(&trainer->diverged, 1);
            atomic_store(&trainer->stop, 1);
        }
    }
}

/* Take shards until there are none, or the trainer stops. */
static void learn(dcme_worker *worker) {
    dcme_trainer *trainer = worker->trainer;
    for (;;) {
        learn_shard(worker);
        if (stopped(trainer))
            return;
        int64_t shard = atomic_fetch_add(&trainer->next_shard, 1);
        if (shard >= trainer->shards)
            return;
        take_shard(worker, shard);
    }
}

void dcme_worker_epoch(dcme_worker *worker, int64_t epoch) {
    const dcme_objective *objective = worker->trainer->objective;
    worker->epoch = epoch;
    learn(worker);
    if (objective->flush)
        objective->flush(worker->thread);
}

void dcme_worker_state(dcme_worker *worker, dcme_state *state) {
    dcme_state_add(state, &worker->position, 1, sizeof worker->position);
    dcme_state_add(state, &worker->end, 1, sizeof worker->end);
    dcme_state_add(state, &worker->subsample_stream, 1, sizeof worker->subsample_stream);
    dcme_state_add(state, &worker->window_stream, 1, sizeof worker->window_stream);
    dcme_state_add(state, &worker->batch.rate, 1, sizeof worker->batch.rate);
    dcme_state_add(state, &worker->loss, 1, sizeof worker->loss);
    dcme_state_add(state, &worker->trained, 1, sizeof worker->trained);
    dcme_state_add(state, &worker->subsampled, 1, sizeof worker->subsampled);
    dcme_state_add(state, &worker->without_context, 1, sizeof worker->without_context);
    if (worker->trainer->objective->thread_state)
        worker->trainer->objective->thread_state(worker->thread, state);
}
