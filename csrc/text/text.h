/* Convert text to numbers: a vocabulary of byte strings, an encoder for blocks of text, and the
 * renumbering of cached IDs.
 *
 * A word is a run of bytes between separators, which are exactly 0x20 \t \n \r \v \f; \n ends a
 * line. Nothing here reads files: the caller splits its text into blocks that end in a separator,
 * and keeps the IDs.
 */
#pragma once

#include "common/token.h"
#include "dcme.h"

/* The value in a map of IDs for a word that has no ID. */
#define DCME_NONE UINT32_MAX
/* The maximum number of words, because IDs have 31 bits. */
#define DCME_TYPES_MAX INT64_C(0x7fffffff)

/* Distinct words with their counts; a word's ID is its position in the order of first appearance.
 */
typedef struct dcme_vocabulary dcme_vocabulary;

/* An unpredictable `seed` protects against text that was designed to make hashes collide; results
 * do not depend on it. The vocabulary must be closed even if opening it failed. */
dcme_status dcme_vocabulary_open(dcme_vocabulary **vocabulary, uint64_t seed, dcme_error *error);
void dcme_vocabulary_close(dcme_vocabulary *vocabulary);

/* Remove all words, but keep the memory. */
void dcme_vocabulary_clear(dcme_vocabulary *vocabulary);
int64_t dcme_vocabulary_types(const dcme_vocabulary *vocabulary);
const int64_t *dcme_vocabulary_counts(const dcme_vocabulary *vocabulary);

/* Return the peak memory while up to `extra` more words are added, not counting the spellings of
 * these words. */
int64_t dcme_vocabulary_bytes(const dcme_vocabulary *vocabulary, int64_t extra);

/* Add `count` to the count of a word, which may be new, and write its ID to `id`. */
dcme_status dcme_vocabulary_add(dcme_vocabulary *vocabulary, const char *word, int64_t length,
                                int64_t count, uint32_t *id, dcme_error *error);

/* Return the ID of a word, or -1. */
int64_t dcme_vocabulary_find(const dcme_vocabulary *vocabulary, const char *word, int64_t length);

/* Write to `offsets` (n + 1) where each word starts if the words with the IDs `order` (n) are
 * concatenated. */
void dcme_vocabulary_offsets(const dcme_vocabulary *vocabulary, const int64_t *order, int64_t n,
                             int64_t *offsets);

/* Concatenate the words with the IDs `order` (n) in `text` (offsets[n]). */
void dcme_vocabulary_copy(const dcme_vocabulary *vocabulary, const int64_t *order, int64_t n,
                          char *text);

/* What to do with words that are not UTF-8: the values of --encoding-errors, in the same order. */
typedef enum { DCME_STRICT = 0, DCME_REPLACE, DCME_SKIP } dcme_encoding_errors;

typedef struct {
    int64_t replaced; /* number of tokens with replaced bytes */
    int64_t skipped;  /* number of skipped tokens */
} dcme_repairs;

/* Add the words `first` to `last` - 1 of another vocabulary with their counts. map[i] becomes the
 * ID in this vocabulary of word i of the other, or DCME_NONE if that word is skipped. */
dcme_status dcme_vocabulary_merge(dcme_vocabulary *vocabulary, const dcme_vocabulary *other,
                                  int64_t first, int64_t last, dcme_encoding_errors errors,
                                  uint32_t *map, dcme_repairs *repairs, dcme_error *error);

/* The result of dcme_encode() for a block of text. */
typedef struct {
    int64_t tokens;
    int64_t newlines;
    int32_t newline_first; /* a line ends before the first token */
    int64_t bad;           /* offset of the rejected byte, or -1 */
} dcme_encoded;

/* Words that an encoder rejects: none, words with NUL bytes, or these and words that are not
 * UTF-8. */
typedef enum { DCME_REFUSE_NONE, DCME_REFUSE_NUL, DCME_REFUSE_BROKEN } dcme_refusal;

/* Count the words of a block that neither starts nor ends within a word. Unless `ids` ((length + 1)
 * / 2) is NULL, write the ID of each word to it, with DCME_SENTENCE_END for the last word of a
 * line. If a word is rejected, return DCME_BAD_ENCODING and set block->bad. */
dcme_status dcme_encode(dcme_vocabulary *vocabulary, const char *text, int64_t length,
                        dcme_refusal refuse, uint32_t *ids, dcme_encoded *block, dcme_error *error);

/* The features of a text: its words, its first `lead` words a second time, all n-grams of 2 to
 * `everywhere` words, and longer n-grams of up to `longest` words among the first `lead` words. */
typedef struct {
    int64_t lead, everywhere, longest;
} dcme_gram_lengths;

/* Return the maximum number of features in a text of this many bytes. */
int64_t dcme_grams_most(const dcme_gram_lengths *lengths, int64_t bytes);

/* Count the features of n texts that are in the vocabulary. Text i extends from offsets[i] to
 * offsets[i + 1]; the words of an n-gram are joined by spaces. Row i has entries starts[i] to
 * starts[i + 1], by ascending ID. Each text has room for dcme_grams_most() entries. */
dcme_status dcme_count_grams(const dcme_vocabulary *vocabulary, const dcme_gram_lengths *lengths,
                             const char *text, const int64_t *offsets, int64_t n, int64_t *starts,
                             int32_t *columns, float *counts, dcme_error *error);

/* The state of a renumbering; see dcme_renumber_start(). */
typedef struct {
    int64_t lines; /* number of lines with at least one token, kept or dropped */
    uint32_t held; /* last kept word of the current line so far, or DCME_NONE */
    int32_t open;  /* the current line has had a token */
} dcme_renumbering;

void dcme_renumber_start(dcme_renumbering *state);

/* Continue with the next `ids` (n): write map[id] of each to `to` (n + 1), except where this is
 * DCME_NONE; return how many were written. `newline` means that a line ends before the first of
 * them. A word is written once it is known whether it ends its line, so the output lags behind by
 * one word. */
int64_t dcme_renumber(dcme_renumbering *state, uint32_t *to, const uint32_t *ids, int64_t n,
                      const uint32_t *map, int32_t newline);

/* Maximum length of the count in a line, including the space before it and the newline after it. */
enum { DCME_COUNT_MAX = 22 };

/* Write n lines "word count" to `lines` (offsets[n] + n * DCME_COUNT_MAX); return their total
 * length. */
int64_t dcme_counts_format(const char *text, const int64_t *offsets, const int64_t *counts,
                           int64_t n, char *lines);
