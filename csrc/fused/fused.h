/* Fused features (Suzuki & Nagata, AAAI 2014): levels of numbers, and sums over documents.
 *
 * Levels are clusters of weighted numbers on a line, one of them at 0. Statistics are sums of
 * integers over documents, so that they have the same bits whatever the order and the number of
 * threads.
 */
#pragma once

#include "classify/classify.h"
#include "dcme.h"

/* ---- levels ---- */

/* Optimal clusters of n numbers in ascending order, with weights above 0: minimizes the sum of
 * weights[i] (numbers[i] - center)^2. There is one more cluster, the first, whose center is 0.
 * Cluster i of `count` gets the numbers ends[i] .. ends[i + 1] - 1, and the first one
 * 0 .. ends[0] - 1; a cluster may be empty. Divide and conquer over the layers of the dynamic
 * programme, whose arguments of the minimum ascend: O(count n log n). */
dcme_status dcme_cluster_numbers(const double *numbers, const double *weights, int64_t n,
                                 int32_t count, int64_t *ends, double *cost, dcme_error *error);

/* sums[b] += weight, moments[b] += weight x number, squares[b] += weight x number^2 for the bin b =
 * (number - low) x scale of each number, cut to 0 .. bins - 1. */
void dcme_bin_numbers(const double *numbers, const double *weights, int64_t n, double low,
                      double scale, int64_t bins, double *sums, double *moments, double *squares);

/* levels[i] = named[j], where j of the `count` ascending borders are at most numbers[i]; returns
 * the sum of weights[i] (numbers[i] - values[j])^2. `named` and `values` have count + 1. */
double dcme_assign_levels(const double *numbers, const double *weights, int64_t n,
                          const double *borders, int32_t count, const int8_t *named,
                          const double *values, int8_t *levels);

/* ---- statistics ---- */

enum { DCME_UNIT = 65536 }; /* probabilities and values of features are multiples of 1 / 65,536 */

/* Sums over documents d with features x and probabilities p, all in units:
 * joint[f][c] = sum x_df p_dc, counts[f] = sum x_df, prior[c] = sum p_dc. */
typedef struct {
    int64_t features, classes;
    int64_t *joint;  /* (features, classes) */
    int64_t *counts; /* (features) */
    int64_t *prior;  /* (classes) */
    const dcme_kernels *kernels;
} dcme_statistics;

/* Add the documents, whose log_probabilities are (count, classes); probabilities below `cut` count
 * as 0. No value of a document is negative. The sums have the same bits with any number of threads.
 */
dcme_status dcme_add_statistics(dcme_statistics *statistics, const dcme_sparse_rows *documents,
                                const double *log_probabilities, double cut, int32_t threads,
                                dcme_error *error);

/* -1 if rows can be added: features ascend from 0 below `features`, values from 0 below `largest`,
 * starts ascend within 0 .. starts[count]. Otherwise -2 for a value, or the number of a document.
 */
int64_t dcme_check_statistics(const dcme_sparse_rows *documents, int64_t features, float largest,
                              int32_t threads);

/* ---- coding ---- */

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

/* n words without NUL, sorted, of `length` bytes in all: front coding, then characters by the three
 * before. */
dcme_status dcme_code_words(int decoding, uint8_t *bytes, int64_t room, int64_t *size,
                            uint8_t *text, int64_t *offsets, int64_t n, int64_t length,
                            dcme_error *error);
