/* Documents of instances by feature, which the full gradient X^T E is summed by: made once for all
 * gradients. Instances are taken DCME_PIECE at a time: the errors of a strip of classes stay in the
 * last cache, and most of the gradient is read and written once a piece, so not too often.
 */
#ifndef DCME_BY_FEATURE_H
#define DCME_BY_FEATURE_H

#include "classify/classify.h"

#include <stdint.h>

enum { DCME_PIECE = 16384 };

/* Piece i has the columns first[i] <= c < first[i + 1], ascending by feature; column c has the
 * values from starts[c] to starts[c + 1], ascending by instance. */
struct dcme_by_feature {
    dcme_arena arena;
    int64_t count;       /* instances */
    int64_t features;    /* of the documents, without the bias */
    int64_t *first;      /* (pieces + 1) */
    int32_t *feature;    /* (columns) */
    int64_t *starts;     /* (columns + 1) */
    uint16_t *instances; /* (values) number within the piece */
    real *values;
};

static inline int64_t dcme_pieces(int64_t instances) {
    return (instances + DCME_PIECE - 1) / DCME_PIECE;
}

#endif
