/* Find the heaviest items of a distribution. */
#pragma once

#include "kernels/kernels.h"

/* Write the indices of the `count` heaviest of `items` weights, heaviest first (ties: lower index
 * first); count <= items. Takes time items + count log count, more if weights ascend. */
void dcme_top_k(int32_t *heaviest, int64_t count, const real *weights, int64_t items);
