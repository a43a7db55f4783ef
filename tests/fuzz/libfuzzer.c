/* Writes a target's seeds to libFuzzer's corpus folder, the last argument. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerInitialize(int *count, char ***arguments);

int LLVMFuzzerInitialize(int *count, char ***arguments) {
    for (const fuzz_token *seed = fuzz_seeds; seed->bytes; seed++) {
        char name[512];
        snprintf(name, sizeof name, "%s/seed%d", (*arguments)[*count - 1],
                 (int)(seed - fuzz_seeds));
        FILE *file = fopen(name, "wb");
        if (!file || fwrite(seed->bytes, 1, seed->size, file) != seed->size || fclose(file) != 0)
            abort();
    }
    return 0;
}
