/* Count pairs of adjacent words in encoded text, in bounded memory, and join pairs into one word.
 *
 * Between the two words of a pair there may be up to DCME_RUN_MAX connectors, as in "bank of the
 * west"; they are part of the pair as its run. The text comes in pieces; results do not depend on
 * where they end.
 */
#pragma once

#include "text/text.h"

enum { DCME_RUN_MAX = 3 };

/* The role of a word ID: not in pairs, in pairs, or a connector of this number. */
enum { DCME_ROLE_NONE = 0, DCME_ROLE_SIDE = 255 };

/* Connectors between two words: their numbers, one byte each, the first one highest; 0 if none. */
typedef uint32_t dcme_run;

/* A table of pairs, each with a number: its count, or the ID of the joined word. */
typedef struct dcme_pairs dcme_pairs;

/* Open a table of at most `bytes` for the pairs whose hash has `value` in its low `bits`. The table
 * must be closed even if opening it failed. */
dcme_status dcme_pairs_open(dcme_pairs **pairs, int64_t bytes, int32_t bits, uint64_t value,
                            dcme_error *error);
void dcme_pairs_close(dcme_pairs *pairs);
int64_t dcme_pairs_bits(const dcme_pairs *pairs);

/* Count the pairs in the next piece of text. When the table is full, `bits` grows by one, and pairs
 * with a one in that bit are dropped, to be counted in another table. `roles` is indexed by ID. */
dcme_status dcme_pairs_count(dcme_pairs *pairs, const uint32_t *ids, int64_t n,
                             const uint8_t *roles, dcme_error *error);

/* Copy the pairs that were counted at least `least` times, in any order; returns their number.
 * Arrays may be NULL. */
int64_t dcme_pairs_counted(const dcme_pairs *pairs, int64_t least, uint32_t *left, uint32_t *right,
                           uint32_t *runs, int64_t *counts);

/* Add a pair that is to become the word `joined`; of two equal pairs, the first is kept. */
dcme_status dcme_pairs_add(dcme_pairs *pairs, uint32_t left, uint32_t right, dcme_run run,
                           uint32_t joined, dcme_error *error);

/* Write the next piece of text to `to` (n + DCME_RUN_MAX + 1), with the added pairs joined from
 * left to right; returns how many IDs were written. `last` means that no piece follows. */
int64_t dcme_pairs_join(dcme_pairs *pairs, const uint32_t *ids, int64_t n, const uint8_t *roles,
                        int32_t last, uint32_t *to);

/* Write the words of IDs to `text`, each followed by a space, or by a newline at a line's end.
 * Word i is spelled by words[offsets[i]] to words[offsets[i + 1]]. Returns the length; if `text`
 * is NULL, nothing is written. */
int64_t dcme_ids_text(const uint32_t *ids, int64_t n, const char *words, const int64_t *offsets,
                      char *text);
