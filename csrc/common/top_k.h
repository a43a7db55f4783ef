/* The heaviest items of a distribution. */
#pragma once

#include "kernels/kernels.h"

/* Write the numbers of the `count` heaviest of `items` weights, heaviest first (of equal ones the
 * lower number); count <= items. Costs items + count log count, more where weights ascend. */
void dcme_top_k(int32_t *heaviest, int64_t count, const real *weights, int64_t items);
