/* The vocabulary: a hash table of byte strings with counts; see table.h for its layout. */
#include "text/table.h"

#include "platform.h"
#include "text/utf8.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 1 << 10, CHUNK_BYTES = 1 << 20, BATCH = 64 };

dcme_status dcme_vocabulary_open(dcme_vocabulary **vocabulary, uint64_t seed, dcme_error *error) {
    dcme_vocabulary *v = calloc(1, sizeof *v);
    *vocabulary = v;
    if (!v)
        return dcme_fail(error, DCME_NO_MEMORY, sizeof *v, "no memory for a vocabulary");
    v->seed = seed;
    return dcme_reserve(v, 1, error);
}

void dcme_vocabulary_close(dcme_vocabulary *v) {
    if (!v)
        return;
    dcme_arena_close(&v->spellings);
    free(v->slots);
    free(v->words);
    free(v->counts);
    free(v);
}

void dcme_vocabulary_clear(dcme_vocabulary *v) {
    DCME_CLEAR(v->slots, v->capacity);
    dcme_arena_close(&v->spellings);
    v->most = dcme_max(v->most, v->types);
    v->types = v->left = 0;
}

int64_t dcme_vocabulary_types(const dcme_vocabulary *v) { return v->types; }

const int64_t *dcme_vocabulary_counts(const dcme_vocabulary *v) { return v->counts; }

static void move_slots(dcme_vocabulary *v, dcme_slot *slots, int64_t capacity) {
    uint64_t mask = (uint64_t)capacity - 1;
    for (int64_t i = 0; i < v->capacity; i++) {
        if (v->slots[i].length == 0)
            continue;
        uint64_t place = v->slots[i].hash & mask;
        while (slots[place].length)
            place = (place + 1) & mask;
        slots[place] = v->slots[i];
    }
}

static dcme_status grow(dcme_vocabulary *v, int64_t capacity) {
    void *words = realloc(v->words, (size_t)capacity / 2 * sizeof *v->words);
    if (!words)
        return DCME_NO_MEMORY;
    v->words = words;
    void *counts = realloc(v->counts, (size_t)capacity / 2 * sizeof *v->counts);
    if (!counts)
        return DCME_NO_MEMORY;
    v->counts = counts;
    size_t bytes = (size_t)capacity * sizeof(dcme_slot);
    if (bytes >= CHUNK_BYTES) /* return the memory of the old arrays before the slots need theirs */
        dcme_release_freed();
    dcme_slot *slots = calloc((size_t)capacity, sizeof *slots);
    if (!slots)
        return DCME_NO_MEMORY;
    dcme_prefer_huge_pages(slots, bytes);
    move_slots(v, slots, capacity);
    free(v->slots);
    v->slots = slots;
    v->capacity = capacity;
    return DCME_OK;
}

static int64_t capacity_for(const dcme_vocabulary *v, int64_t extra) {
    int64_t capacity = v->capacity ? v->capacity : FIRST_CAPACITY;
    while (v->types + extra > capacity / 2)
        capacity *= 2;
    return capacity;
}

int64_t dcme_vocabulary_bytes(const dcme_vocabulary *v, int64_t extra) {
    int64_t capacity = capacity_for(v, extra), bytes = capacity * (int64_t)sizeof *v->slots;
    if (capacity > v->capacity) /* the old slots remain in memory while they are moved */
        bytes += capacity / 2 * (int64_t)sizeof *v->slots;
    int64_t types = dcme_max(v->most, v->types + extra);
    return bytes + v->spellings.bytes - v->left +
           types * (int64_t)(sizeof *v->words + sizeof *v->counts);
}

dcme_status dcme_reserve(dcme_vocabulary *v, int64_t extra, dcme_error *error) {
    int64_t capacity = capacity_for(v, extra);
    if (capacity == v->capacity || grow(v, capacity) == DCME_OK)
        return DCME_OK;
    int64_t bytes = capacity * (int64_t)(sizeof(dcme_slot) + sizeof(dcme_word));
    return dcme_fail(error, DCME_NO_MEMORY, bytes,
                     "no memory for a vocabulary of more than %lld words, which needs %lld MB: use "
                     "fewer --threads or a smaller corpus",
                     (long long)v->types, (long long)(bytes >> 20));
}

/* Copy a spelling to memory that lasts as long as the vocabulary; return NULL if there is not
 * enough memory. */
static const char *keep(dcme_vocabulary *v, const char *word, int64_t length) {
    if (length > v->left) {
        int64_t bytes = dcme_max(length, CHUNK_BYTES);
        char *chunk = dcme_take_unset(&v->spellings, bytes, 1);
        if (!chunk)
            return NULL;
        v->free = chunk, v->left = bytes;
    }
    char *kept = v->free;
    memcpy(kept, word, length);
    v->free += length;
    v->left -= length;
    return kept;
}

dcme_status dcme_insert(dcme_vocabulary *v, dcme_slot *slot, const char *word, int64_t length,
                        uint64_t hash, dcme_error *error) {
    if (v->types == DCME_TYPES_MAX)
        return dcme_fail(error, DCME_NO_MEMORY, v->types * sizeof *v->words,
                         "the corpus has more than %lld distinct words: split it",
                         (long long)DCME_TYPES_MAX);
    const char *kept = keep(v, word, length);
    if (!kept)
        return dcme_fail(error, DCME_NO_MEMORY, length, "no memory for a word of %lld bytes",
                         (long long)length);
    v->words[v->types] = (dcme_word){kept, length};
    v->counts[v->types] = 0;
    *slot = (dcme_slot){hash, (uint32_t)v->types, dcme_short_length(length)};
    v->types++;
    return DCME_OK;
}

/* Add a word; its space must have been reserved. */
static dcme_status add(dcme_vocabulary *v, const char *word, int64_t length, uint64_t hash,
                       int64_t count, uint32_t *id, dcme_error *error) {
    dcme_slot *slot = dcme_find(v, word, length, hash);
    if (slot->length == 0)
        DCME_TRY(dcme_insert(v, slot, word, length, hash, error));
    if (v->counts[slot->id] > INT64_MAX - count)
        return dcme_fail(error, DCME_BAD_FORMAT, count, "a word's counts add up to more than 2^63");
    v->counts[slot->id] += count;
    *id = slot->id;
    return DCME_OK;
}

dcme_status dcme_vocabulary_add(dcme_vocabulary *v, const char *word, int64_t length, int64_t count,
                                uint32_t *id, dcme_error *error) {
    if (length < 1)
        return dcme_fail(error, DCME_BAD_ARGUMENT, length, "a word has no bytes");
    DCME_TRY(dcme_reserve(v, 1, error));
    return add(v, word, length, dcme_hash(v->seed, word, length, word + length), count, id, error);
}

int64_t dcme_vocabulary_find(const dcme_vocabulary *v, const char *word, int64_t length) {
    if (length < 1)
        return -1;
    uint64_t hash = dcme_hash(v->seed, word, length, word + length);
    const dcme_slot *slot = dcme_find(v, word, length, hash);
    return slot->length ? (int64_t)slot->id : -1;
}

void dcme_vocabulary_offsets(const dcme_vocabulary *v, const int64_t *order, int64_t n,
                             int64_t *offsets) {
    offsets[0] = 0;
    for (int64_t i = 0; i < n; i++)
        offsets[i + 1] = offsets[i] + v->words[order[i]].length;
}

void dcme_vocabulary_copy(const dcme_vocabulary *v, const int64_t *order, int64_t n, char *text) {
    for (int64_t i = 0; i < n; i++) {
        dcme_word word = v->words[order[i]];
        memcpy(text, word.bytes, word.length);
        text += word.length;
    }
}

/* Add a word that is not UTF-8, after replacing its broken bytes by U+FFFD. */
static dcme_status add_replaced(dcme_vocabulary *v, dcme_word word, int64_t count, uint32_t *id,
                                dcme_error *error) {
    char *spelling = dcme_allocate(word.length, DCME_REPLACEMENT_BYTES);
    if (!spelling)
        return dcme_fail(error, DCME_NO_MEMORY, word.length, "no memory for a word of %lld bytes",
                         (long long)word.length);
    int64_t length = dcme_utf8_replace(word.bytes, word.length, spelling);
    dcme_status status = dcme_vocabulary_add(v, spelling, length, count, id, error);
    dcme_free(spelling);
    return status;
}

/* Add word i of another vocabulary, given its hash. If the word is here already, it need not be
 * checked for valid UTF-8. */
static dcme_status merge_word(dcme_vocabulary *v, const dcme_vocabulary *other, int64_t i,
                              uint64_t hash, dcme_encoding_errors errors, uint32_t *map,
                              dcme_repairs *repairs, dcme_error *error) {
    dcme_word word = other->words[i];
    int64_t count = other->counts[i];
    if (dcme_find(v, word.bytes, word.length, hash)->length ||
        dcme_utf8_valid(word.bytes, word.length) == word.length)
        return add(v, word.bytes, word.length, hash, count, &map[i], error);
    if (errors == DCME_REPLACE) {
        repairs->replaced += count;
        return add_replaced(v, word, count, &map[i], error);
    }
    repairs->skipped += count;
    map[i] = DCME_NONE;
    return DCME_OK;
}

/* Like the encoder, compute all hashes of a batch first, so that the slots are being prefetched
 * before they are read. */
dcme_status dcme_vocabulary_merge(dcme_vocabulary *v, const dcme_vocabulary *other, int64_t first,
                                  int64_t last, dcme_encoding_errors errors, uint32_t *map,
                                  dcme_repairs *repairs, dcme_error *error) {
    uint64_t hashes[BATCH];
    for (int64_t i = first; i < last; i += BATCH) {
        int64_t n = dcme_min(last - i, BATCH);
        DCME_TRY(dcme_reserve(v, n, error));
        for (int64_t k = 0; k < n; k++) {
            const dcme_word *word = &other->words[i + k];
            hashes[k] = dcme_hash(v->seed, word->bytes, word->length, word->bytes + word->length);
            __builtin_prefetch(&v->slots[hashes[k] & (v->capacity - 1)]);
        }
        for (int64_t k = 0; k < n; k++)
            DCME_TRY(merge_word(v, other, i + k, hashes[k], errors, map, repairs, error));
    }
    return DCME_OK;
}
