/* Composite document vectors: turn the word IDs of documents into sparse rows. A document's vector
 * has one part per topic: the sum over its words of frequency x weight x P(topic | word) x word
 * vector. No words x topics x dim table is needed, only one document's row at a time. The caller
 * drops posteriors near zero. */
#pragma once

#include "dcme.h"
#include "kernels/kernels.h"

#include <stdbool.h>

/* The words. `vectors` has rows of `stride` numbers, dcme_stride(dim), padded with zeros. The
 * posteriors of word w are at starts[w] .. starts[w + 1] - 1. */
typedef struct {
    int64_t words;
    int64_t topics;
    int64_t dim;
    int64_t stride;
    int32_t log_counts;    /* the frequency of a word with count n is 1 + ln n instead of n */
    const float *vectors;  /* (words, stride) */
    const float *weights;  /* (words) */
    const int64_t *starts; /* (words + 1) */
    const int32_t *topic;  /* (starts[words]) */
    const float *share;    /* (starts[words]) */
    const dcme_kernels *kernels;
} dcme_composition;

/* A batch of documents: the `ids` of document i are at starts[i] .. starts[i + 1] - 1. IDs that
 * belong to no word are ignored. */
typedef struct {
    int64_t count;
    const int64_t *starts; /* (count + 1) */
    const uint32_t *ids;   /* (starts[count]) */
} dcme_documents;

/* Write the minimum and the maximum entry of each document's unit vector. A document without known
 * words has a vector of zeros. */
dcme_status dcme_compose_extremes(const dcme_composition *words, const dcme_documents *documents,
                                  float *lowest, float *highest, dcme_error *error);

/* Write each document's vector of unit length, without entries whose absolute value is below
 * `threshold`. Column topic * dim + i is entry i of the topic's part. Row i is at starts[i] ..
 * starts[i + 1] - 1 (`starts`: count + 1) of `columns` and `values`, which have room for count *
 * topics * dim. */
dcme_status dcme_compose_rows(const dcme_composition *words, const dcme_documents *documents,
                              float threshold, int64_t *starts, int32_t *columns, float *values,
                              dcme_error *error);

/* Transpose the `n` rows of a matrix that `rows` lists; they become columns in this order. Row i is
 * at starts[i] .. starts[i + 1] - 1 of `columns`, which are below `width`, and `values`; the result
 * has the same form. `to_starts`, with room for width + 1, must be filled with zeros. The entries
 * of each new row are in ascending order. */
void dcme_transpose(const int32_t *columns, const float *values, const int64_t *starts,
                    const int64_t *rows, int64_t n, int64_t width, int64_t *to_starts,
                    int32_t *to_columns, float *to_values);

/* Copy the entries of the `n` rows that `rows` lists, one row after the other. Row i has the items
 * starts[i] .. starts[i + 1] - 1 of `values`, each of `size` bytes. */
void dcme_copy_rows(const char *values, int64_t size, const int64_t *starts, const int64_t *rows,
                    int64_t n, char *to);

/* Write the squared length of each of the `n` rows. */
void dcme_squared_lengths(const float *values, const int64_t *starts, int64_t n, double *squares);

/* Count the parts of documents, such as the n-grams of their words. The parts of word w are at
 * starts[w] .. starts[w + 1] - 1 of `parts`. Row i of the result, at row_starts[i] ..
 * row_starts[i + 1] - 1 of `columns` and `counts`, has the parts of document i by first appearance.
 * The first `lead` words of a document count twice. `columns` and `counts` have room for all parts
 * of all words, row_starts for documents->count + 1 numbers. `place` has a number for each part,
 * which must be -1. */
void dcme_count_parts(const dcme_documents *documents, const int64_t *starts, const int32_t *parts,
                      int64_t lead, int32_t *place, int64_t *row_starts, int32_t *columns,
                      float *counts);

/* Maximum bytes of one entry in svmlight format. */
enum { DCME_ENTRY_BYTES = 36 };

/* Write n entries as " column:value", with columns numbered from 1, and return the number of bytes.
 */
int64_t dcme_write_entries(char *out, const int32_t *columns, const float *values, int64_t n);

/* Multiply the counts in n rows, or 1 plus their logarithms, by a factor per column. Row i is at
 * starts[i] .. starts[i + 1] - 1 of `columns` and `values`, whose counts are overwritten. Unless
 * `is_second` is NULL, it has one flag per column, and each of the two blocks of columns is scaled
 * to unit length within every row. */
void dcme_weight_counts(float *values, const int32_t *columns, const int64_t *starts, int64_t n,
                        bool is_log, const float *factors, const uint8_t *is_second);

/* Add the inner products of all pairs of columns to the lower triangle of `products`, shape (width,
 * width). Only the n rows that `rows` lists are used; the columns of each row must ascend. */
void dcme_add_products(const int32_t *columns, const float *values, const int64_t *starts,
                       const int64_t *rows, int64_t n, int64_t width, float *products);
