/* Codes of weights: plain loops, which compilers turn into vector code of the instruction set that
 * the file is compiled for. */
#pragma once

#include "kernels.h"

static void code_weights(uint8_t *codes, const real *weights, const real *edges, int64_t classes) {
    for (int64_t first = 0; first < classes; first += 32, codes += 16) {
        int32_t code[32] = {0};
        for (int e = 0; e < 15; e++)
            for (int k = 0; k < 32; k++)
                code[k] += weights[first + k] > edges[e];
        for (int b = 0; b < 16; b++)
            codes[b] = (uint8_t)(code[b] | code[16 + b] << 4);
    }
}
