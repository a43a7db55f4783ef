/* Character n-grams of words (Bojanowski et al. 2017): their hash buckets, numbered as in fastText,
 * or their IDs in a vocabulary. */
#pragma once

#include "text/text.h"

typedef struct {
    int64_t shortest, longest; /* characters, at least 1 */
    uint32_t buckets;          /* at least 1 */
} dcme_ngrams;

/* Write the bucket of each n-gram of <word> to `out`, which may be NULL; return their number.
 * </s>, which stands for the end of a line in fastText, has no n-grams. */
int64_t dcme_ngrams_of(const dcme_ngrams *ngrams, const char *word, int64_t length, int32_t *out);

/* Write a space and the word, without characters after the first `most`, in angle brackets to
 * `out`, which has room for length + 3 bytes; return the number of bytes written. */
int64_t dcme_mark_word(const char *word, int64_t length, int64_t most, char *out);

/* Write the IDs of the n-grams of a word to `out`, and their number to `count`. `word` is marked
 * as by dcme_mark_word; the spelling of each n-gram in the vocabulary
 * also begins with a space. The bytes of `word` are changed during the call, and then restored.
 * Unless `learns` is set, n-grams that are not in the vocabulary are omitted. Bytes after the word
 * can be read up to `end`. `out` has room for length (longest - shortest + 1) numbers; `buckets`
 * has no effect. */
dcme_status dcme_ngrams_number(dcme_vocabulary *vocabulary, const dcme_ngrams *ngrams, char *word,
                               int64_t length, const char *end, int32_t learns, int32_t *out,
                               int64_t *count, dcme_error *error);
