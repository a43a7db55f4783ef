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

/* Initial inputs and what to insert into them; the last one has no bytes. */
extern const fuzz_token fuzz_seeds[];

/* An assertion for every input; a violation is a crash. */
#define FUZZ_REQUIRE(condition)                                                                    \
    do {                                                                                           \
        if (!(condition))                                                                          \
            __builtin_trap();                                                                      \
    } while (0)

#endif
