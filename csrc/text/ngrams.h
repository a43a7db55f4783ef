/* Hash buckets of the character n-grams of words (Bojanowski et al. 2017), numbered as in fastText.
 */
#pragma once

#include "dcme.h"

typedef struct {
    int64_t shortest, longest; /* characters, at least 1 */
    uint32_t buckets;          /* at least 1 */
} dcme_ngrams;

/* Write the bucket of each n-gram of <word> to `out`, which may be NULL; return their number.
 * </s>, which stands for the end of a line in fastText, has no n-grams. */
int64_t dcme_ngrams_of(const dcme_ngrams *ngrams, const char *word, int64_t length, int32_t *out);
