/* Words whose vectors are means of several rows: their own row and the rows of their character
 * n-grams (Bojanowski et al. 2017). A word's vector is computed once, when it enters the window;
 * each target updates it; and the rows of the word are updated once, when the word leaves the
 * window. Each row moves by the whole sum of these updates, as in fastText. */
#pragma once

#include "common/arena.h"
#include "common/token.h"
#include "kernels/kernels.h"

/* The n-grams of each word. Their rows follow the words' rows in the input table. */
typedef struct {
    const int64_t *starts; /* (items + 1) n-grams of word i: starts[i] .. starts[i + 1] - 1 */
    const int32_t *ngrams; /* (starts[items]) numbers below `buckets` */
    int64_t buckets;       /* number of n-gram rows */
} dcme_subwords;

/* The vectors of the words in a window. */
typedef struct {
    int64_t slots;  /* the vector at position p of a sentence is in slot p % slots */
    real *vectors;  /* (slots, stride) */
    real *before;   /* (slots, stride) the vectors as they were computed */
    real **rows;    /* rows of one word */
    real *weights;  /* (slots) weights of the words in a context */
    real **context; /* (slots) their vectors */
} dcme_word_window;

/* Whether every n-gram number has a row. */
int dcme_subwords_valid(const dcme_subwords *subwords, int64_t items);

/* Does nothing without subwords. */
void dcme_word_window_open(dcme_word_window *window, dcme_arena *arena,
                           const dcme_subwords *subwords, int64_t items, int64_t half_window,
                           int64_t stride);
