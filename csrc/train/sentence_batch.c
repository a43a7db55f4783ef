/* Reads sentences, drops frequent words at random, and lays out what is left for learning. */
#include "train/internal.h"

#include <stdlib.h>

/* A shard shorter than twice DCME_SHARD_MAX holds any sentence; see shards.c. */
enum { CAPACITY = DCME_BATCH_WORDS + 2 * DCME_SHARD_MAX };

dcme_status dcme_sentence_batch_open(dcme_sentence_batch *batch) {
    batch->words = dcme_allocate(CAPACITY, sizeof *batch->words);
    batch->begin = dcme_allocate(CAPACITY, sizeof *batch->begin);
    batch->end = dcme_allocate(CAPACITY, sizeof *batch->end);
    return batch->words && batch->begin && batch->end ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_sentence_batch_close(dcme_sentence_batch *batch) {
    free(batch->words);
    free(batch->begin);
    free(batch->end);
}

/* Linear in the share of all training that lies behind this position of this epoch. */
static real rate_at(const dcme_trainer *trainer, double position) {
    const dcme_train_options *o = &trainer->options;
    double behind = position / ((double)trainer->corpus.length * o->epochs);
    double rate = o->lr * (1 - behind);
    return (real)(rate > o->min_lr ? rate : o->min_lr);
}

/* Append the kept words of one sentence; return the position after it. */
static int64_t read_sentence(dcme_worker *worker, int64_t position, int64_t end) {
    const dcme_trainer *trainer = worker->trainer;
    dcme_sentence_batch *batch = &worker->batch;
    int64_t begin = batch->length, length = begin;
    uint32_t id;
    do {
        id = trainer->corpus.ids[position++];
        uint32_t word = id & ~DCME_SENTENCE_END;
        if (trainer->keep &&
            (uint32_t)(dcme_random(&worker->subsample_stream) >> 32) > trainer->keep[word])
            worker->subsampled++;
        else
            batch->words[length++] = (int32_t)word;
    } while (!(id & DCME_SENTENCE_END) && position < end);
    if (length - begin == 1) {
        worker->without_context++;
        length = begin;
    }
    for (int64_t i = begin; i < length; i++) {
        batch->begin[i] = (int32_t)begin;
        batch->end[i] = (int32_t)length;
    }
    batch->length = length;
    return position;
}

int64_t dcme_sentence_batch_read(dcme_worker *worker, int64_t position, int64_t end) {
    const dcme_trainer *trainer = worker->trainer;
    worker->batch.length = 0;
    worker->batch.rate =
        rate_at(trainer, (double)worker->epoch * (double)trainer->corpus.length + (double)position);
    while (position < end && worker->batch.length < DCME_BATCH_WORDS)
        position = read_sentence(worker, position, end);
    return position;
}
