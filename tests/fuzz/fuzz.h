/* The interface of a fuzz target. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *bytes;
    size_t size;
} fuzz_token;

#define FUZZ_TOKEN(text) {text, sizeof(text) - 1}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Initial inputs, and tokens to insert. */
extern const fuzz_token fuzz_seeds[], fuzz_tokens[];
extern const int fuzz_seed_count, fuzz_token_count;

/* An assertion for every input; a violation is a crash. */
#define FUZZ_REQUIRE(condition)                                                                    \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)

#endif
