/* See ngrams.h. */
#include "text/ngrams.h"

/* The 32-bit FNV-1a hash (Fowler, Noll and Vo). */
static const uint32_t START = 2166136261u, PRIME = 16777619u;

/* fastText, and therefore its files, sign-extends each byte. */
static uint32_t extend(uint32_t hash, char byte) {
    return (hash ^ (uint32_t)(int32_t)(int8_t)byte) * PRIME;
}

/* Return a byte of "<word>". */
static char byte_at(const char *word, int64_t length, int64_t i) {
    return i == 0 ? '<' : i == length + 1 ? '>' : word[i - 1];
}

/* Whether a byte continues a UTF-8 character. */
static int continues(char byte) { return ((uint8_t)byte & 0xc0) == 0x80; }

int64_t dcme_ngrams_of(const dcme_ngrams *ngrams, const char *word, int64_t length, int32_t *out) {
    int64_t found = 0, end = length + 2;
    if (length == 4 && memcmp(word, "</s>", 4) == 0)
        return 0;
    for (int64_t i = 0; i < end; i++) {
        uint32_t hash = START;
        if (continues(byte_at(word, length, i)))
            continue;
        for (int64_t j = i, n = 1; j < end && n <= ngrams->longest; n++) {
            do
                hash = extend(hash, byte_at(word, length, j++));
            while (j < end && continues(byte_at(word, length, j)));
            if (n < ngrams->shortest || (n == 1 && (i == 0 || j == end)))
                continue; /* too short, or < or > alone */
            if (out)
                out[found] = (int32_t)(hash % ngrams->buckets);
            found++;
        }
    }
    return found;
}
