/* The internals of a vocabulary, for the encoder's inner loop.
 *
 * A hash table with open addressing and linear probing. A slot takes 16 bytes: hash, ID and length.
 * The hash of a word of up to 7 bytes is a bijection of its bytes and length, so that equal hashes
 * and lengths mean equal words without comparing the bytes; longer words are compared. Hashes
 * depend on a seed, so that nobody can construct a text in which all words share a slot.
 */
#pragma once

#include "common/arena.h"
#include "text/text.h"

#include <string.h>

typedef struct {
    uint64_t hash;
    uint32_t id;
    uint32_t length; /* capped at UINT32_MAX; 0 if the slot is free */
} dcme_slot;

typedef struct {
    const char *bytes;
    int64_t length;
} dcme_word;

struct dcme_vocabulary {
    dcme_slot *slots;
    int64_t capacity; /* number of slots, a power of two */
    dcme_word *words; /* by id */
    int64_t *counts;  /* by id */
    int64_t types;
    int64_t most;  /* maximum number of word types before dcme_vocabulary_clear() */
    uint64_t seed; /* of the hashes */
    dcme_arena spellings;
    char *free;   /* where the bytes of the next word will be stored */
    int64_t left; /* number of free bytes there */
};

enum { DCME_SHORT = 7 };

/* Load eight bytes in little-endian order. */
static inline uint64_t dcme_load(const char *p) {
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Load n bytes, 1 <= n <= 8, without reading at or after `end`. */
static inline uint64_t dcme_load_tail(const char *p, int64_t n, const char *end) {
    char copy[8] = {0};
    if (end - p >= 8)
        return dcme_load(p) & (~UINT64_C(0) >> (64 - 8 * n));
    memcpy(copy, p, n);
    return dcme_load(copy);
}

/* Mix every bit by a bijection of xor-shifts and odd multipliers. */
static inline uint64_t dcme_hash_mix(uint64_t x) {
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xa0761d6478bd642f);
    return x ^ (x >> 32);
}

static inline uint64_t dcme_hash(uint64_t seed, const char *word, int64_t length, const char *end) {
    if (length <= DCME_SHORT)
        return dcme_hash_mix((dcme_load_tail(word, length, end) | (uint64_t)length << 56) ^ seed);
    uint64_t hash = (uint64_t)length ^ seed;
    for (; length > 8; word += 8, length -= 8)
        hash = dcme_hash_mix(hash ^ dcme_load(word));
    return dcme_hash_mix(hash ^ dcme_load_tail(word, length, end));
}

static inline uint32_t dcme_short_length(int64_t length) {
    return length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
}

/* Compare words of at least eight bytes. For up to 16 bytes, comparing the first and the last eight
 * suffices. */
static inline int dcme_same(const dcme_word *known, const char *word, int64_t length) {
    int64_t rest = length - 8;
    return known->length == length && dcme_load(known->bytes) == dcme_load(word) &&
           dcme_load(known->bytes + rest) == dcme_load(word + rest) &&
           (length <= 16 || memcmp(known->bytes, word, length) == 0);
}

/* Return the slot that holds a word, or the free slot where it belongs. */
static inline dcme_slot *dcme_find(const dcme_vocabulary *v, const char *word, int64_t length,
                                   uint64_t hash) {
    uint64_t mask = (uint64_t)v->capacity - 1;
    for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
        dcme_slot *slot = &v->slots[i];
        if (slot->hash == hash && slot->length == dcme_short_length(length) &&
            (length <= DCME_SHORT || dcme_same(&v->words[slot->id], word, length)))
            return slot;
        if (slot->length == 0)
            return slot;
    }
}

/* Reserve space for `extra` more words; slots found earlier become invalid. */
dcme_status dcme_reserve(dcme_vocabulary *v, int64_t extra, dcme_error *error);

/* Put a new word into the free slot that dcme_find() returned; its space must have been
 * reserved. */
dcme_status dcme_insert(dcme_vocabulary *v, dcme_slot *slot, const char *word, int64_t length,
                        uint64_t hash, dcme_error *error);
