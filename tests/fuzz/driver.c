/* Feeds a fuzz target mutated inputs, and keeps those that reach new code: a small libFuzzer for
 * compilers without one. Prints how many inputs were run; an input that crashes is left in
 * TARGET.crash.
 *
 *     PROGRAM INPUTS SEED
 *
 * Linked with one target, which defines LLVMFuzzerTestOneInput() and the seeds to start from; the
 * code under test is compiled with -fsanitize-coverage=trace-pc, the driver is not.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4096, KEPT = 4096, MAP = 1 << 16, CHANGES = 6 };

typedef struct {
    uint8_t *bytes;
    size_t size;
} input;

static input kept[KEPT], current;
static size_t kept_count;
static uint8_t reached[MAP], seen[MAP];
static uintptr_t before;
static const char *program;

void __sanitizer_cov_trace_pc(void);
void __asan_set_death_callback(void (*callback)(void));

/* An edge of the program: the previous place and this one. */
void __sanitizer_cov_trace_pc(void) {
    uintptr_t place = (uintptr_t)__builtin_return_address(0);
    place ^= place >> 16;
    reached[(place ^ before) % MAP] = 1;
    before = place >> 1;
}

static void save_crash(void) {
    char name[512];
    snprintf(name, sizeof name, "%s.crash", program);
    FILE *file = fopen(name, "wb");
    if (file) {
        fwrite(current.bytes, 1, current.size, file);
        fclose(file);
    }
}

static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(uint64_t *random, size_t limit) {
    return limit ? next_random(random) % limit : 0;
}

/* Replace `gone` bytes at `at` by `size` others, as far as there is room. */
static void splice(size_t at, size_t gone, const uint8_t *bytes, size_t size) {
    if (current.size - gone + size > LONGEST)
        return;
    memmove(current.bytes + at + size, current.bytes + at + gone, current.size - at - gone);
    if (size)
        memmove(current.bytes + at, bytes, size);
    current.size += size - gone;
}

static void mutate(uint64_t *random) {
    size_t at = below(random, current.size + 1), rest = current.size - at;
    const fuzz_token *token = &fuzz_tokens[below(random, (size_t)fuzz_token_count)];
    const input *other = &kept[below(random, kept_count)];
    size_t from = below(random, other->size), length = below(random, other->size - from + 1);
    uint8_t byte = (uint8_t)next_random(random);
    switch (below(random, 6)) {
    case 0:
        if (rest)
            current.bytes[at] ^= (uint8_t)(1 << below(random, 8));
        break;
    case 1:
        splice(at, rest > 0, &byte, 1);
        break;
    case 2:
        splice(at, below(random, rest < 16 ? rest + 1 : 16), NULL, 0);
        break;
    case 3:
        splice(at, 0, (const uint8_t *)token->bytes, token->size);
        break;
    case 4:
        splice(at, 0, other->bytes + from, length % 64);
        break;
    default:
        splice(at, rest, other->bytes + from, length);
    }
}

/* Run the target; return whether it reached a new edge. */
static int run_current(void) {
    uint8_t *exact =
        malloc(current.size ? current.size : 1); /* so that the sanitizer sees its end */
    int news = 0;
    if (!exact)
        abort();
    memcpy(exact, current.bytes, current.size);
    memset(reached, 0, sizeof reached);
    before = 0;
    LLVMFuzzerTestOneInput(exact, current.size);
    free(exact);
    for (size_t i = 0; i < MAP; i++) {
        news |= reached[i] & ~seen[i];
        seen[i] |= reached[i];
    }
    return news;
}

static void keep_current(void) {
    if (kept_count == KEPT)
        return;
    kept[kept_count].bytes = malloc(current.size + 1);
    if (!kept[kept_count].bytes)
        abort();
    memcpy(kept[kept_count].bytes, current.bytes, current.size);
    kept[kept_count++].size = current.size;
}

int main(int count, char **arguments) {
    long inputs = count > 1 ? atol(arguments[1]) : 100000;
    uint64_t random = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    program = arguments[0];
    current.bytes = malloc(LONGEST);
    if (!current.bytes)
        return 1;
    __asan_set_death_callback(save_crash);
    for (int i = 0; i < fuzz_seed_count; i++) {
        current.size = fuzz_seeds[i].size;
        memcpy(current.bytes, fuzz_seeds[i].bytes, current.size);
        run_current();
        keep_current();
    }
    for (long i = 0; i < inputs; i++) {
        const input *start = &kept[below(&random, kept_count)];
        current.size = start->size;
        memcpy(current.bytes, start->bytes, start->size);
        for (size_t change = 1 + below(&random, CHANGES); change > 0; change--)
            mutate(&random);
        if (run_current())
            keep_current();
    }
    long edges = 0;
    for (size_t i = 0; i < MAP; i++)
        edges += seen[i];
    printf("%s: %ld inputs, %zu kept, %ld edges, no crash\n", program, inputs, kept_count, edges);
    for (size_t i = 0; i < kept_count; i++)
        free(kept[i].bytes);
    free(current.bytes);
    return 0;
}
