/* One thread of training: takes shards, reads passages, learns, publishes counts. */
#include "train/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

dcme_status dcme_worker_open(dcme_worker *worker, dcme_trainer *trainer, dcme_error *error) {
    const dcme_train_options *options = &trainer->options;
    int64_t stride = trainer->model.stride;
    int linear = options->window_mode == DCME_LINEAR;
    dcme_status status = dcme_passage_open(&worker->passage);
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
        return dcme_fail(error, DCME_NO_MEMORY, stride, "the buffers of a thread");
    worker->gradient = worker->h + stride;
    worker->moved = worker->gradient + stride;
    worker->input_scale = (real)options->input_rate;
    return trainer->objective->join(&worker->member, trainer->shared, error);
}

void dcme_worker_close(dcme_worker *worker) {
    if (worker->member)
        worker->trainer->objective->leave(worker->member);
    dcme_passage_close(&worker->passage);
    dcme_sliding_close(&worker->contexts);
    dcme_sliding_close(&worker->gradients);
    free(worker->h);
    free(worker->rows);
}

static void publish(dcme_worker *worker) {
    dcme_counters *c = worker->counters;
    atomic_store_explicit(&c->trained, worker->trained, memory_order_relaxed);
    atomic_store_explicit(&c->subsampled, worker->subsampled, memory_order_relaxed);
    atomic_store_explicit(&c->without_context, worker->without_context, memory_order_relaxed);
    atomic_store_explicit(&c->losses, worker->loss.count, memory_order_relaxed);
    atomic_store_explicit(&c->loss, worker->loss.sum, memory_order_relaxed);
    atomic_store_explicit(&c->rate, worker->passage.rate, memory_order_relaxed);
}

static void learn_shard(dcme_worker *worker, int64_t shard) {
    dcme_trainer *trainer = worker->trainer;
    const dcme_train_options *options = &trainer->options;
    uint64_t seed = (uint64_t)options->seed, epoch = (uint64_t)worker->epoch;
    int64_t position = trainer->starts[shard], end = trainer->starts[shard + 1];
    int sliding = options->window_mode != DCME_SHRINK;

    worker->subsample_stream = dcme_stream(seed, epoch, (uint64_t)shard, DCME_SUBSAMPLE);
    worker->window_stream = dcme_stream(seed, epoch, (uint64_t)shard, DCME_WINDOW);
    trainer->objective->begin(worker->member,
                              dcme_stream(seed, epoch, (uint64_t)shard, DCME_NOISE));
    while (position < end && !atomic_load_explicit(&trainer->stop, memory_order_relaxed)) {
        position = dcme_passage_read(worker, position, end);
        if (options->model == DCME_SKIPGRAM)
            dcme_learn_skipgram(worker);
        else if (sliding)
            dcme_learn_cbow_sliding(worker);
        else
            dcme_learn_cbow(worker);
        publish(worker);
        if (!isfinite(worker->loss.sum)) {
            atomic_store(&trainer->diverged, 1);
            atomic_store(&trainer->stop, 1);
        }
    }
}

void dcme_worker_epoch(dcme_worker *worker, int64_t epoch) {
    dcme_trainer *trainer = worker->trainer;
    worker->epoch = epoch;
    for (;;) {
        int64_t shard = atomic_fetch_add(&trainer->next_shard, 1);
        if (shard >= trainer->shards || atomic_load(&trainer->stop))
            return;
        learn_shard(worker, shard);
    }
}
