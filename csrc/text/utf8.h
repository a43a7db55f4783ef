/* What is UTF-8 and what is not: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef DCME_TEXT_UTF8_H
#define DCME_TEXT_UTF8_H

#include <stdint.h>

/* The bytes of U+FFFD, which take the place of at least one byte. */
enum { DCME_REPLACEMENT_BYTES = 3 };

/* Return the bytes of the sequence at `text`, of which `left` > 0 bytes are left, or minus the
 * bytes of the broken piece there; NUL is broken. */
int64_t dcme_utf8_length(const uint8_t *text, int64_t left);

/* Return how many bytes from the start are valid: `length` when all are. */
int64_t dcme_utf8_valid(const char *text, int64_t length);

/* Write `text` (length) to `out` (3 * length) with U+FFFD for each maximal broken piece, as the
 * Unicode standard advises (chapter 3.9); return the length written. */
int64_t dcme_utf8_replace(const char *text, int64_t length, char *out);

#endif
