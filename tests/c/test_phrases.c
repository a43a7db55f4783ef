/* Counting and joining pairs, against slow ways, on random text in pieces of exact size; and each
 * allocation fails once: see test_memory.c.
 *
 * Compile it with all of csrc; include path csrc. Meant for the sanitizers. Returns 0 on success.
 */
#define dcme_system_allocate allocate_aligned
#include "platform.c"
#undef dcme_system_allocate

#include "text/phrases.h"

#include <stdio.h>
#include <string.h>

enum { TOKENS = 60000, TYPES = 2000, WORDS = 90, PIECES = 300 };

static uint32_t ids[TOKENS];
static uint8_t roles[TYPES];
static int64_t left = -1; /* allocations until one fails */

void *dcme_system_allocate(size_t bytes) { return left-- == 0 ? NULL : allocate_aligned(bytes); }

static uint32_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static void make_text(uint32_t types) {
    uint64_t random = 1;
    for (int i = 0; i < TOKENS; i++)
        ids[i] = next_random(&random) % types | (next_random(&random) % 9 ? 0 : DCME_SENTENCE_END);
    for (int i = 0; i < TYPES; i++)
        roles[i] = i % 7 == 3 ? DCME_ROLE_NONE : i % 5 == 1 ? (uint8_t)(i % 3 + 1) : DCME_ROLE_SIDE;
}

/* Count all pairs in tables of `bytes`; the sum of a hash of each pair and its count. */
static dcme_status count(int64_t bytes, int *reads, uint64_t *sum, dcme_error *error) {
    static uint32_t sides[3][TOKENS];
    static int64_t counts[TOKENS];
    struct {
        int32_t bits;
        uint64_t value;
    } waiting[64] = {{0, 0}};
    dcme_status status = DCME_OK;
    for (int n = 1; n > 0 && status == DCME_OK; ++*reads) {
        int32_t bits = waiting[--n].bits;
        uint64_t value = waiting[n].value;
        dcme_pairs *pairs = NULL;
        status = dcme_pairs_open(&pairs, bytes, bits, value, error);
        for (int i = 0; i < PIECES && status == DCME_OK; i++)
            status =
                dcme_pairs_count(pairs, ids + i * (TOKENS / PIECES), TOKENS / PIECES, roles, error);
        if (status == DCME_OK) {
            for (; bits < dcme_pairs_bits(pairs); bits++, n++) {
                waiting[n].bits = bits + 1;
                waiting[n].value = value | UINT64_C(1) << bits;
            }
            int64_t found = dcme_pairs_counted(pairs, 1, sides[0], sides[1], sides[2], counts);
            for (int64_t i = 0; i < found; i++)
                *sum += (sides[0][i] * UINT64_C(0x9e3779b97f4a7c15) ^ sides[1][i] * UINT64_C(77) ^
                         (uint64_t)sides[2][i] << 40) *
                        (uint64_t)counts[i];
        }
        dcme_pairs_close(pairs);
    }
    return status;
}

static int check_counts(void) {
    uint64_t whole = 0, parts = 0;
    int once = 0, often = 0;
    make_text(TYPES);
    int good = count(INT64_C(1) << 30, &once, &whole, NULL) == DCME_OK &&
               count(1, &often, &parts, NULL) == DCME_OK && once == 1 && often > 4 &&
               whole == parts;
    for (int64_t at = 0; good; at++) {
        dcme_error error = {0};
        int reads = 0;
        uint64_t sum = 0;
        left = at;
        dcme_status status = count(1, &reads, &sum, &error);
        if (status == DCME_OK && left >= 0)
            break;
        good = status == DCME_NO_MEMORY && strstr(error.message, "use a smaller --memory");
    }
    left = -1;
    printf("phrases: counts in 1 and %d reads, %s\n", often, good ? "equal" : "differ");
    return good;
}

/* The pair (a, b) is joined where (a + b) % 3 is 0, with any connectors: word a. */
static dcme_status add_pairs(dcme_pairs *pairs) {
    dcme_status status = DCME_OK;
    for (uint32_t a = 0; a < WORDS; a++)
        for (uint32_t b = (3 - a % 3) % 3; b < WORDS; b += 3)
            for (dcme_run run = 0; run < 4 && status == DCME_OK; run++)
                status = dcme_pairs_add(pairs, a, b, run, a, NULL);
    return status;
}

/* Join by looking ahead, with at most one connector between the words of a pair. */
static int64_t join_slowly(uint32_t *to) {
    int64_t n = 0;
    for (int64_t i = 0; i < TOKENS;) {
        int64_t end = i + 1;
        if (roles[ids[i] & ~DCME_SENTENCE_END] == DCME_ROLE_SIDE && !(ids[i] >> 31))
            end += end < TOKENS && roles[ids[end] & ~DCME_SENTENCE_END] < DCME_ROLE_SIDE &&
                   roles[ids[end] & ~DCME_SENTENCE_END] != DCME_ROLE_NONE && !(ids[end] >> 31);
        else
            end = TOKENS;
        uint32_t word = end < TOKENS ? ids[end] & ~DCME_SENTENCE_END : 0;
        if (end < TOKENS && roles[word] == DCME_ROLE_SIDE && (ids[i] + word) % 3 == 0) {
            to[n++] = ids[i] | (ids[end] & DCME_SENTENCE_END);
            i = end + 1;
        } else {
            to[n++] = ids[i++];
        }
    }
    return n;
}

static int check_joins(void) {
    enum { PIECE = TOKENS / PIECES };
    static uint32_t expected[TOKENS], joined[TOKENS + DCME_RUN_MAX + 1];
    dcme_pairs *pairs = NULL;
    make_text(WORDS);
    int64_t n = 0, wanted = join_slowly(expected);
    int good = dcme_pairs_open(&pairs, 0, 0, 0, NULL) == DCME_OK && add_pairs(pairs) == DCME_OK;
    for (int i = 0; i < PIECES && good; i++) {
        uint32_t *to = malloc((PIECE + DCME_RUN_MAX + 1) * sizeof *to);
        good = to != NULL;
        int64_t written =
            good ? dcme_pairs_join(pairs, ids + i * PIECE, PIECE, roles, i + 1 == PIECES, to) : 0;
        good = good && n + written <= TOKENS;
        if (good)
            memcpy(joined + n, to, (size_t)written * sizeof *to);
        n += written;
        free(to);
    }
    good = good && n == wanted && memcmp(joined, expected, (size_t)n * sizeof *joined) == 0;
    printf("phrases: %lld tokens joined to %lld, %s\n", (long long)TOKENS, (long long)n,
           good ? "equal" : "differs");
    dcme_pairs_close(pairs);
    return good;
}

int main(void) { return check_counts() & check_joins() ? 0 : 1; }
