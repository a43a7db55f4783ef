/* Entropy coding of the levels and numbers of small models. */
#pragma once

#include "common/arena.h"
#include "dcme.h"

/* Encode (decoding = 0) or decode `bytes`. Encoding writes at most `room` bytes and sets *size to
 * those that it needs; decoding reads `room` bytes. The input of encoding is not written to. A
 * decoder returns DCME_BAD_FORMAT where bytes are damaged in a way that shows. */

/* Signed levels by row, none 0. Decoding fills starts, columns and levels, which have room for
 * `entries`; it needs rows, classes, entries and kinds, which are contexts below 32. */
typedef struct {
    int64_t rows, classes, entries;
    int64_t *starts;  /* (rows + 1) */
    int32_t *columns; /* (entries) */
    int8_t *levels;   /* (entries) -127 to 127 */
    const uint8_t *kinds;
} dcme_level_rows;

dcme_status dcme_code_levels(int decoding, uint8_t *bytes, int64_t room, int64_t *size,
                             const dcme_level_rows *levels, dcme_error *error);

/* n numbers of `bits` bits, at most 8; with 0 of any length up to 32, small ones being cheap. */
dcme_status dcme_code_numbers(int decoding, uint8_t *bytes, int64_t room, int64_t *size,
                              uint32_t *numbers, int64_t n, int32_t bits, dcme_error *error);
