/* Random numbers: SplitMix64 (Steele, Lea & Flood 2014), one stream per purpose.
 *
 * A stream is one number that grows by a constant; its values are hashes of that number. A draw
 * therefore does not wait for the previous one, and a stream takes 8 bytes. Streams are named by
 * (seed, epoch, shard, purpose): the numbers do not depend on threads, buffers or time.
 */
#pragma once

#include <stdint.h>

enum { DCME_SUBSAMPLE = 1, DCME_WINDOW, DCME_NOISE, DCME_INITIAL, DCME_CENTER, DCME_ORDER };

static inline uint64_t dcme_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t dcme_random(uint64_t *stream) {
    return dcme_mix(*stream += 0x9e3779b97f4a7c15u);
}

static inline uint64_t dcme_stream(uint64_t seed, uint64_t epoch, uint64_t shard,
                                   uint64_t purpose) {
    return dcme_mix(dcme_mix(dcme_mix(dcme_mix(seed) + epoch) + shard) + purpose);
}

/* Map the upper half of a random number to a number below `limit` (< 2^32). */
static inline int64_t dcme_below(uint64_t random, int64_t limit) {
    return (int64_t)(((random >> 32) * (uint64_t)limit) >> 32);
}
