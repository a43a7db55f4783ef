/* Valid UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
#pragma once

#include <stdint.h>

/* The bytes of U+FFFD, which take the place of at least one byte. */
enum { DCME_REPLACEMENT_BYTES = 3 };

/* Return the bytes of the sequence at `text`, of which `left` > 0 bytes are left, or minus the
 * bytes of the broken piece there; NUL is broken. */
int64_t dcme_utf8_length(const uint8_t *text, int64_t left);

/* Whether a byte separates words, and where the first one is that does; `length` without any. */
static inline int dcme_is_separator(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static inline int64_t dcme_first_separator(const char *text, int64_t length) {
    int64_t i = 0;
    while (i < length && !dcme_is_separator(text[i]))
        i++;
    return i;
}

/* Return how many bytes from the start are valid: `length` when all are. */
int64_t dcme_utf8_valid(const char *text, int64_t length);

/* Write `text` (length) to `out` (3 * length) with U+FFFD for each maximal broken piece, as the
 * Unicode standard advises (chapter 3.9); return the length written. */
int64_t dcme_utf8_replace(const char *text, int64_t length, char *out);
