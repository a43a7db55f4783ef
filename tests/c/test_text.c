/* Words of one slot of a table are in others with another seed. The encoder is compared with plain
 * Python in test_encode.py, and reads blocks of exact size in fuzz_text.c.
 *
 * Compile it with all of csrc; include path csrc. Returns 0 on success.
 */
#include "text/table.h"

#include <stdio.h>
#include <string.h>

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
    int shared = collisions(1) > 10 || collisions(2) > 10;
    if (shared)
        printf("words of one slot share a slot with another seed, too\n");
    return shared;
}
