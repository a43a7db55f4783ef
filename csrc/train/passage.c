/* Reads sentences, drops frequent words at random, and lays out what is left for learning. */
#include "train/internal.h"

#include <stdlib.h>

/* A shard shorter than twice DCME_SHARD_MAX holds any sentence; see shards.c. */
enum { CAPACITY = DCME_PASSAGE + 2 * DCME_SHARD_MAX };

dcme_status dcme_passage_open(dcme_passage *passage) {
    passage->words = dcme_allocate(CAPACITY, sizeof *passage->words);
    passage->begin = dcme_allocate(CAPACITY, sizeof *passage->begin);
    passage->end = dcme_allocate(CAPACITY, sizeof *passage->end);
    return passage->words && passage->begin && passage->end ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_passage_close(dcme_passage *passage) {
    free(passage->words);
    free(passage->begin);
    free(passage->end);
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
    dcme_passage *passage = &worker->passage;
    int64_t begin = passage->length, length = begin;
    uint32_t id;
    do {
        id = trainer->corpus.ids[position++];
        uint32_t word = id & ~DCME_LAST;
        if (trainer->keep &&
            (uint32_t)(dcme_random(&worker->subsample_stream) >> 32) > trainer->keep[word])
            worker->subsampled++;
        else
            passage->words[length++] = (int32_t)word;
    } while (!(id & DCME_LAST) && position < end);
    if (length - begin == 1) {
        worker->without_context++;
        length = begin;
    }
    for (int64_t i = begin; i < length; i++) {
        passage->begin[i] = (int32_t)begin;
        passage->end[i] = (int32_t)length;
    }
    passage->length = length;
    return position;
}

int64_t dcme_passage_read(dcme_worker *worker, int64_t position, int64_t end) {
    const dcme_trainer *trainer = worker->trainer;
    worker->passage.length = 0;
    worker->passage.rate =
        rate_at(trainer, (double)worker->epoch * (double)trainer->corpus.length + (double)position);
    while (position < end && worker->passage.length < DCME_PASSAGE)
        position = read_sentence(worker, position, end);
    return position;
}
