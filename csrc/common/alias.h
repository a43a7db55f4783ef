/* Walker's alias method: draw from any distribution over n items in constant time. */
#pragma once

#include "common/random.h"
#include "dcme.h"

/* One cell: if a random number below 2^32 is less than `threshold`, the cell itself is drawn,
 * otherwise `other`. */
typedef struct {
    uint32_t threshold;
    int32_t other;
} dcme_alias;

/* Fill `cells` (count) so that item i is drawn in proportion to weights[i] >= 0. If the sum of the
 * weights is not finite or not above 0, return 0 and write nothing. `weights` and `order` (count)
 * are overwritten. */
int dcme_alias_build(dcme_alias *cells, double *weights, int32_t *order, int64_t count);

/* Return the item drawn from a cell, which is dcme_below(random, count) and can be prefetched. */
static inline int32_t dcme_alias_pick(const dcme_alias *cells, int64_t cell, uint64_t random) {
    int32_t self =
        -((uint32_t)random < cells[cell].threshold); /* no branch: it would be unpredictable */
    return (int32_t)(((int32_t)cell & self) | (cells[cell].other & ~self));
}
