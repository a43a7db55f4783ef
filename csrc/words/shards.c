/* Divides the corpus into shards of whole sentences, the units that threads process. */
#include "words/internal.h"

static int64_t shard_size(int64_t length) {
    return dcme_min(dcme_max(length / DCME_SHARDS_WANTED, DCME_SHARD_MIN), DCME_SHARD_MAX);
}

/* A shard ends with the sentence in which it reaches `size`; longer sentences are cut. */
static int64_t cut(int64_t *starts, const dcme_corpus *corpus, int64_t size) {
    int64_t shards = 0, begin = 0, sentence = 0;
    for (int64_t i = 1; i <= corpus->length; i++) {
        int is_end = i == corpus->length;
        if (!(corpus->ids[i - 1] & DCME_SENTENCE_END) && i - sentence < size && !is_end)
            continue;
        sentence = i;
        if (i - begin < size && !is_end)
            continue;
        if (starts)
            starts[shards] = begin;
        shards++;
        begin = i;
    }
    return shards;
}

/* Whether every ID belongs to a word, because IDs index rows. */
int dcme_has_words_only(const dcme_corpus *corpus) {
    uint32_t largest = 0;
    for (int64_t i = 0; i < corpus->length; i++) {
        uint32_t word = corpus->ids[i] & ~DCME_SENTENCE_END;
        largest = word > largest ? word : largest;
    }
    return largest < corpus->items;
}

int64_t *dcme_shards_cut(dcme_engine *engine, const dcme_corpus *corpus) {
    int64_t size = shard_size(corpus->length);
    engine->units = cut(NULL, corpus, size);
    int64_t *starts = dcme_take(&engine->arena, engine->units + 1, sizeof *starts);
    if (!starts)
        return NULL;
    cut(starts, corpus, size);
    starts[engine->units] = corpus->length;
    for (int64_t i = 0; i < engine->units; i++)
        engine->longest = dcme_max(engine->longest, starts[i + 1] - starts[i]);
    return starts;
}
