/* Write lines of the form "word count", which is the format of vocabulary files. */
#include "text/text.h"

#include "common/integer.h"

int64_t dcme_counts_format(const char *text, const int64_t *offsets, const int64_t *counts,
                           int64_t n, char *lines) {
    char *to = lines;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = offsets[i + 1] - offsets[i];
        memcpy(to, text + offsets[i], length);
        to += length;
        *to++ = ' ';
        to = dcme_write_integer(to, counts[i]);
        *to++ = '\n';
    }
    return to - lines;
}
