/* Composite document vectors: word numbers in, sparse rows out.
 *
 * A document's vector has a part for each topic: the sum over its words of
 * frequency x weight x P(topic | word) x vector of the word. No table words x topics x dim is
 * needed: only the row of a document is in memory. The caller drops posteriors near zero.
 */
#pragma once

#include "dcme.h"
#include "kernels/kernels.h"

/* The words. `vectors` has rows of `stride` numbers, dcme_stride(dim), padded with zeros.
 * The posteriors of word w are at starts[w] .. starts[w + 1] - 1. */
typedef struct {
    int64_t words;
    int64_t topics;
    int64_t dim;
    int64_t stride;
    int32_t log_counts;    /* frequency is 1 + ln n of the count n, not n */
    const float *vectors;  /* (words, stride) */
    const float *weights;  /* (words) */
    const int64_t *starts; /* (words + 1) */
    const int32_t *topic;  /* (starts[words]) */
    const float *share;    /* (starts[words]) */
    const dcme_kernels *kernels;
} dcme_composition;

/* Some documents: the `ids` of document i are at starts[i] .. starts[i + 1] - 1. An id that is not
 * of a word is ignored. */
typedef struct {
    int64_t count;
    const int64_t *starts; /* (count + 1) */
    const uint32_t *ids;   /* (starts[count]) */
} dcme_documents;

/* The lowest and the highest number of each document's vector, which has unit length, or is zero
 * where no word is known. */
dcme_status dcme_compose_extremes(const dcme_composition *words, const dcme_documents *documents,
                                  float *lowest, float *highest, dcme_error *error);

/* Each document's vector of unit length, without zeros and numbers nearer to zero than `threshold`.
 * Column topic * dim + i is number i of the topic's part. Row i is at starts[i] .. starts[i + 1] -
 * 1
 * (`starts`: count + 1) of `columns` and `values`, which have room for count * topics * dim. */
dcme_status dcme_compose_rows(const dcme_composition *words, const dcme_documents *documents,
                              float threshold, int64_t *starts, int32_t *columns, float *values,
                              dcme_error *error);

/* The most bytes that one entry takes in svmlight's format. */
enum { DCME_ENTRY_BYTES = 36 };

/* Write " column:value" for n entries, columns counted from 1; returns the bytes written. */
int64_t dcme_write_entries(char *out, const int32_t *columns, const float *values, int64_t n);
