/* Valid UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
#pragma once

#include <stdint.h>

/* Length of U+FFFD in UTF-8; each U+FFFD replaces at least one byte. */
enum { DCME_REPLACEMENT_BYTES = 3 };

/* Return the length in bytes of the UTF-8 sequence at `text`, or minus the length if it is broken.
 * `left` > 0 bytes of text remain; NUL counts as broken. */
int64_t dcme_utf8_length(const uint8_t *text, int64_t left);

/* Return whether a byte separates words. */
static inline int dcme_is_separator(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Return the length of the valid UTF-8 at the start of the text, which is `length` if all of it is
 * valid. */
int64_t dcme_utf8_valid(const char *text, int64_t length);

/* Write `text` (length) to `out` (3 * length) with U+FFFD for each maximal broken piece, as the
 * Unicode standard advises (chapter 3.9); return the length written. */
int64_t dcme_utf8_replace(const char *text, int64_t length, char *out);
