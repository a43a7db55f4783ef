/* Words whose vector is the mean of several rows: their own and the rows of their character n-grams
 * (Bojanowski et al. 2017).
 *
 * A word's vector is computed once where it enters the window, is moved by each target, and its
 * rows are moved once, where it leaves: a mean moves by the sum added to each of its rows, as
 * fastText adds the direction of a word to all of them, undivided.
 */
#pragma once

#include "common/arena.h"
#include "common/token.h"
#include "kernels/kernels.h"

/* The n-grams of each word. Their rows are behind the rows of the words in the input table. */
typedef struct {
    const int64_t *starts; /* (items + 1) n-grams of word i: starts[i] .. starts[i + 1] - 1 */
    const int32_t *ngrams; /* (starts[items]) numbers below `buckets` */
    int64_t buckets;       /* rows of n-grams */
} dcme_subwords;

/* Vectors of the words in a window. */
typedef struct {
    int64_t slots;  /* the vector at position p of a sentence is in slot p % slots */
    real *vectors;  /* (slots, stride) */
    real *before;   /* (slots, stride) as they were computed */
    real **rows;    /* rows of one word */
    real *weights;  /* (slots) of the words of a context */
    real **context; /* (slots) their vectors */
} dcme_word_window;

/* Whether each number of an n-gram has a row. */
int dcme_subwords_valid(const dcme_subwords *subwords, int64_t items);

/* Nothing without subwords. */
void dcme_word_window_open(dcme_word_window *window, dcme_arena *arena,
                           const dcme_subwords *subwords, int64_t items, int64_t half_window,
                           int64_t stride);
