/* The encoder against one that processes single bytes, on random blocks of exact size.
 *
 * Compile it with all of csrc; include path csrc. Meant for the sanitizers, which see a read or a
 * write beyond the block. Returns 0 on success.
 */
#include "common/random.h"
#include "text/table.h"
#include "text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4000, LONGEST = 700, BYTES = 20 };

static const char ALPHABET[BYTES + 1] = "ab  \n\t\r\v\fxyzxyz\xc3\xa9\xe2\x8e\x1f";

static int separates(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Number a block's words as dcme_encode() should, by dcme_vocabulary_add(); return the tokens. */
static int64_t encode_slowly(dcme_vocabulary *v, const char *text, int64_t length, uint32_t *ids) {
    int64_t tokens = 0;
    for (int64_t i = 0; i < length;) {
        int64_t start = i;
        while (i < length && !separates(text[i]))
            i++;
        if (i > start &&
            dcme_vocabulary_add(v, text + start, i - start, 1, &ids[tokens], NULL) == DCME_OK)
            tokens++;
        while (i < length && separates(text[i]))
            if (text[i++] == '\n' && tokens)
                ids[tokens - 1] |= DCME_SENTENCE_END;
    }
    return tokens;
}

/* Return whether both give the same ids for a block; buffers have exactly the required size. */
static int same(dcme_vocabulary *fast, dcme_vocabulary *slow, uint64_t *random) {
    int64_t length = dcme_below(dcme_random(random), LONGEST), room = (length + 1) / 2;
    int64_t density = 4 + dcme_below(dcme_random(random), BYTES - 3);
    char *text = dcme_allocate(length, 1);
    uint32_t *ids = dcme_allocate(room, sizeof *ids), *expected = dcme_allocate(room, sizeof *ids);
    dcme_encoded block = {0};
    int equal = text && ids && expected;
    for (int64_t i = 0; equal && i < length; i++)
        text[i] = ALPHABET[BYTES - 1 - dcme_below(dcme_random(random), density)];
    if (equal) {
        int64_t tokens = encode_slowly(slow, text, length, expected);
        equal = dcme_encode(fast, text, length, DCME_REFUSE_NUL, ids, &block, NULL) == DCME_OK &&
                block.tokens == tokens &&
                memcmp(ids, expected, (size_t)tokens * sizeof *ids) == 0 &&
                dcme_vocabulary_types(fast) == dcme_vocabulary_types(slow);
    }
    dcme_free(text);
    dcme_free(ids);
    dcme_free(expected);
    return equal;
}

/* Words of 16 bytes whose hashes with seed 0 have equal low bits; how many have so with another. */
static int collisions(uint64_t seed) {
    enum { WORDS = 500, MASK = 0xfff };
    char word[16] = "AAAAAAAA";
    int equal = 0;
    uint64_t last = 0, first = dcme_hash(0, word, 8, word + 16) & MASK;
    for (int found = 0; found < WORDS; last++) {
        memcpy(word + 8, &last, sizeof last);
        if ((dcme_hash(0, word, 16, word + 16) & MASK) != first)
            continue;
        found++;
        equal += (dcme_hash(seed, word, 16, word + 16) & MASK) == first;
    }
    return equal;
}

int main(void) {
    dcme_vocabulary *fast = NULL, *slow = NULL;
    uint64_t random = 1;
    int blocks = 0, equal = dcme_vocabulary_open(&fast, 1, NULL) == DCME_OK &&
                            dcme_vocabulary_open(&slow, 2, NULL) == DCME_OK;
    while (equal && blocks < BLOCKS) {
        equal = same(fast, slow, &random);
        blocks += equal;
    }
    if (equal)
        equal = memcmp(dcme_vocabulary_counts(fast), dcme_vocabulary_counts(slow),
                       (size_t)dcme_vocabulary_types(fast) * sizeof(int64_t)) == 0;
    printf("encoder: %d of %d blocks, %s\n", blocks, BLOCKS, equal ? "equal" : "differs");
    dcme_vocabulary_close(fast);
    dcme_vocabulary_close(slow);
    if (collisions(1) > 10 || collisions(2) > 10) {
        printf("encoder: words of one slot share a slot with another seed, too\n");
        return 1;
    }
    return !equal;
}
