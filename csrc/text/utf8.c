/* Check and repair UTF-8 according to table 3-7 of the Unicode standard. This happens once for each
 * distinct word. */
#include "text/utf8.h"

#include <string.h>

/* Return the length of the sequence that starts with this byte, or 0 if no sequence can. */
static int64_t sequence_length(uint8_t lead) {
    if (lead < 0x80)
        return lead != 0; /* NUL is valid UTF-8, but it is rejected in text */
    if (lead < 0xc2)
        return 0;
    if (lead < 0xe0)
        return 2;
    if (lead < 0xf0)
        return 3;
    return lead < 0xf5 ? 4 : 0;
}

/* Whether `second` may follow `lead`: this excludes overlong forms, surrogates and characters above
 * U+10FFFF. */
static int may_follow(uint8_t lead, uint8_t second) {
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
}

int64_t dcme_utf8_length(const uint8_t *text, int64_t left) {
    int64_t length = sequence_length(text[0]);
    if (length == 0)
        return -1;
    for (int64_t i = 1; i < length; i++) {
        if (i == left)
            return -i;
        if (i == 1 ? !may_follow(text[0], text[1]) : (text[i] & 0xc0) != 0x80)
            return -i;
    }
    return length;
}

int64_t dcme_utf8_valid(const char *text, int64_t length) {
    const uint8_t *bytes = (const uint8_t *)text;
    int64_t i = 0;
    while (i < length) {
        int is_ascii = bytes[i] - 1u < 0x7f; /* ASCII bytes need no call */
        int64_t step = is_ascii ? 1 : dcme_utf8_length(bytes + i, length - i);
        if (step < 0)
            break;
        i += step;
    }
    return i;
}

int64_t dcme_utf8_replace(const char *text, int64_t length, char *out) {
    const uint8_t *bytes = (const uint8_t *)text;
    int64_t written = 0;
    for (int64_t i = 0; i < length;) {
        int64_t step = dcme_utf8_length(bytes + i, length - i);
        if (step > 0)
            memcpy(out + written, text + i, step);
        else
            memcpy(out + written, "\xef\xbf\xbd", DCME_REPLACEMENT_BYTES);
        written += step > 0 ? step : DCME_REPLACEMENT_BYTES;
        i += step > 0 ? step : -step;
    }
    return written;
}
