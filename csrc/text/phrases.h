/* Count pairs of adjacent words in encoded text with bounded memory, and join pairs into single
 * words.
 *
 * Between the two words of a pair there may be up to DCME_RUN_MAX connectors, as in "bank of the
 * west"; these connectors are called the run of the pair and belong to it. The text is passed in
 * pieces; results do not depend on where a piece ends.
 */
#pragma once

#include "text/text.h"

enum { DCME_RUN_MAX = 3 };

/* The role of a word ID: it never occurs in pairs, it may occur in pairs, or it is the connector
 * with this number. */
enum { DCME_ROLE_NONE = 0, DCME_ROLE_SIDE = 255 };

/* The run of connectors between two words: one byte with the number of each, the first connector in
 * the highest byte; 0 if there are none. */
typedef uint32_t dcme_run;

/* A table that maps pairs to numbers: either their counts or the IDs of the joined words. */
typedef struct dcme_pairs dcme_pairs;

/* Open a table of at most `bytes` bytes for the pairs whose hash equals `value` in its low `bits`
 * bits. The table must be closed even if opening it failed. */
dcme_status dcme_pairs_open(dcme_pairs **pairs, int64_t bytes, int32_t bits, uint64_t value,
                            dcme_error *error);
void dcme_pairs_close(dcme_pairs *pairs);
int64_t dcme_pairs_bits(const dcme_pairs *pairs);

/* Count the pairs in the next piece of text. When the table is full, `bits` grows by one, and the
 * pairs whose new bit is one are dropped; another table must count them later. `roles` is indexed
 * by ID. */
dcme_status dcme_pairs_count(dcme_pairs *pairs, const uint32_t *ids, int64_t n,
                             const uint8_t *roles, dcme_error *error);

/* Copy the pairs that were counted at least `least` times, in no particular order; return their
 * number. Arrays may be NULL. */
int64_t dcme_pairs_counted(const dcme_pairs *pairs, int64_t least, uint32_t *left, uint32_t *right,
                           uint32_t *runs, int64_t *counts);

/* Add a pair that is to become the word `joined`; of two equal pairs, the first is kept. */
dcme_status dcme_pairs_add(dcme_pairs *pairs, uint32_t left, uint32_t right, dcme_run run,
                           uint32_t joined, dcme_error *error);

/* Write the next piece of text to `to` (n + DCME_RUN_MAX + 1), and join the added pairs from left
 * to right; return how many IDs were written. `last` means that this is the final piece. */
int64_t dcme_pairs_join(dcme_pairs *pairs, const uint32_t *ids, int64_t n, const uint8_t *roles,
                        int32_t last, uint32_t *to);

/* Write the words with the given IDs to `text`, each followed by a space, or by a newline at the
 * end of a line. The spelling of word i extends from words[offsets[i]] to words[offsets[i + 1]].
 * Return the length; if `text` is NULL, nothing is written. */
int64_t dcme_ids_text(const uint32_t *ids, int64_t n, const char *words, const int64_t *offsets,
                      char *text);
