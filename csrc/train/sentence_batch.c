/* Reads sentences, drops frequent words at random, and stores the rest for learning. */
#include "train/internal.h"

/* A shard shorter than twice DCME_SHARD_MAX holds any sentence; see shards.c. */
enum { CAPACITY = DCME_BATCH_WORDS + 2 * DCME_SHARD_MAX };

void dcme_sentence_batch_open(dcme_sentence_batch *batch, dcme_arena *arena) {
    batch->words = dcme_take_unset(arena, CAPACITY, sizeof *batch->words);
    batch->begin = dcme_take_unset(arena, CAPACITY, sizeof *batch->begin);
    batch->end = dcme_take_unset(arena, CAPACITY, sizeof *batch->end);
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

int64_t dcme_sentence_batch_read(dcme_worker *worker, int64_t position, int64_t end) {
    const dcme_engine *engine = &worker->trainer->engine;
    worker->batch.length = 0;
    worker->batch.rate = (real)dcme_learning_rate(&engine->schedule, engine->epoch, position);
    worker->done->rate = worker->batch.rate;
    while (position < end && worker->batch.length < DCME_BATCH_WORDS)
        position = read_sentence(worker, position, end);
    return position;
}
