/* Counting pairs of random text in one table and in many; and each allocation fails once: see
 * test_memory.c. Joining is compared with its definition in test_phrases.py.
 *
 * Compile it with all of csrc; include path csrc. Meant for the sanitizers. Returns 0 on success.
 */
#define dcme_system_allocate allocate_aligned
#include "platform.c"
#undef dcme_system_allocate

#include "common/random.h"
#include "text/phrases.h"

#include <stdio.h>
#include <string.h>

enum { TOKENS = 60000, TYPES = 2000, PIECES = 300 };

static uint32_t ids[TOKENS];
static uint8_t roles[TYPES];
static int64_t left = -1; /* allocations until one fails */

void *dcme_system_allocate(size_t bytes) { return left-- == 0 ? NULL : allocate_aligned(bytes); }

static void make_text(void) {
    uint64_t random = 1;
    for (int i = 0; i < TOKENS; i++)
        ids[i] = (uint32_t)dcme_below(dcme_random(&random), TYPES) |
                 (dcme_random(&random) % 9 ? 0 : DCME_SENTENCE_END);
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
    make_text();
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

int main(void) { return check_counts() ? 0 : 1; }
