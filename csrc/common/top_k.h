/* Find the heaviest items of a distribution. */
#pragma once

#include "kernels/kernels.h"

/* Write the indices of the `count` heaviest of `items` weights, heaviest first (ties: lower index
 * first); count <= items. The time is O(items + count log count), or more if the weights are in
 * ascending order. */
void dcme_top_k(int32_t *heaviest, int64_t count, const real *weights, int64_t items);
