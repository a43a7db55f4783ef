/* Entries of sparse rows as text. */
#include "documents/documents.h"

#include "vectors/vectors.h"

static char *write_whole(char *out, uint32_t number) {
    char digits[10];
    int n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n)
        *out++ = digits[--n];
    return out;
}

int64_t dcme_write_entries(char *out, const int32_t *columns, const float *values, int64_t n) {
    char *next = out;
    for (int64_t i = 0; i < n; i++) {
        *next++ = ' ';
        next = write_whole(next, (uint32_t)columns[i] + 1);
        *next++ = ':';
        next += dcme_write_number(next, values[i]);
    }
    return next - out;
}
