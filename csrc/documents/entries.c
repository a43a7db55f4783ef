/* Writes entries of sparse rows as text. */
#include "documents/documents.h"

#include "common/integer.h"
#include "vectors/vectors.h"

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
