/* Scales entries of sparse rows, and writes them as text. */
#include "documents/documents.h"

#include "common/integer.h"
#include "vectors/vectors.h"

#include <math.h>

int64_t dcme_write_entries(char *out, const int32_t *columns, const float *values, int64_t n) {
    char *next = out;
    for (int64_t i = 0; i < n; i++) {
        *next++ = ' ';
        next = dcme_write_integer(next, (int64_t)columns[i] + 1);
        *next++ = ':';
        next += dcme_write_number(next, values[i]);
    }
    return next - out;
}

void dcme_scale_blocks(float *values, const int32_t *columns, const int64_t *starts, int64_t n,
                       const uint8_t *is_second) {
    for (int64_t row = 0; row < n; row++) {
        double lengths[2] = {0, 0};
        for (int64_t i = starts[row]; i < starts[row + 1]; i++)
            lengths[is_second[columns[i]] != 0] += values[i] * (double)values[i];
        for (int block = 0; block < 2; block++)
            lengths[block] = lengths[block] > 0 ? sqrt(lengths[block]) : 1;
        for (int64_t i = starts[row]; i < starts[row + 1]; i++)
            values[i] = (float)(values[i] / lengths[is_second[columns[i]] != 0]);
    }
}
