/* Writes a target's seeds to libFuzzer's corpus folder, the last argument. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    for (int i = 0; i < fuzz_seed_count + fuzz_token_count; i++) {
        const fuzz_token *seed =
            i < fuzz_seed_count ? &fuzz_seeds[i] : &fuzz_tokens[i - fuzz_seed_count];
        char name[512];
        snprintf(name, sizeof name, "%s/seed%d", (*arguments)[*count - 1], i);
        FILE *file = fopen(name, "wb");
        if (!file || fwrite(seed->bytes, 1, seed->size, file) != seed->size || fclose(file) != 0)
            abort();
    }
    return 0;
}
