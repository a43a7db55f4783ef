/* Vose's construction of the alias table (Vose 1991). */
#include "common/alias.h"

#include <math.h>

/* Convert a share, 0 <= p <= 1, to a threshold. If the cell is its own alias, the threshold need
 * not be exact.
 */
static uint32_t threshold_of(double p) {
    double scaled = p * 4294967296.0;
    return scaled >= 4294967295.0 ? UINT32_MAX : (uint32_t)scaled;
}

int dcme_alias_build(dcme_alias *cells, double *weights, int32_t *order, int64_t count) {
    double total = 0, *share = weights;
    for (int64_t i = 0; i < count; i++)
        total += weights[i];
    if (!(total > 0) || !isfinite(total))
        return 0;
    int64_t small = 0,
            large = count; /* `order` begins with the small cells and ends with the large ones */
    for (int64_t i = 0; i < count; i++) {
        share[i] = weights[i] / total * count;
        cells[i].other = (int32_t)i;
        cells[i].threshold = UINT32_MAX;
        order[share[i] < 1 ? small++ : --large] = (int32_t)i;
    }
    while (small > 0 && large < count) {
        int32_t poor = order[--small], rich = order[large];
        cells[poor].threshold = threshold_of(share[poor]);
        cells[poor].other = rich;
        share[rich] -= 1 - share[poor];
        if (share[rich] < 1) { /* the cell is small now: move it */
            large++;
            order[small++] = rich;
        }
    }
    return 1;
}
