/* The most probable classes without the scores of all: upper bounds of the scores from weights in
 * codes of four bits, and the scores of those classes only whose bounds reach the best ones.
 *
 * A row of codes belongs to a feature f. With its edges e_0 < e_1 <= ... <= e_16, code c of a class
 * says e_c <= w_fj <= e_c+1 for its weight, and e_0 and e_16 are the smallest and the greatest
 * weight.
 */
#pragma once

#include "classify/classify.h"

enum { DCME_CODES = 16, DCME_EDGES = DCME_CODES + 1 }; /* of a row */

typedef struct {
    uint8_t *codes; /* (features + 1, dcme_code_stride(classes)); see kernels/kernels.h */
    real *edges;    /* (features + 1, DCME_EDGES) */
} dcme_class_codes;

/* Bytes of a row of codes. */
int64_t dcme_code_stride(int64_t classes);

/* Fill the rows of `count` features, of which the bias is the last; 0 if a weight is NaN or
 * infinite. The bounds are tight for positive values of the features, where they are `is_signed`
 * less so for values of both signs. */
int32_t dcme_code_features(const dcme_class_codes *codes, const dcme_linear *model,
                           const int32_t *features, int64_t count, int32_t is_signed);

/* Write the `count` most probable classes of the documents begin <= d < end to best[(d - begin) *
 * count ...]: those that dcme_classify_scores() and a sort would give, of equal scores the lowest
 * number. `numbers` (classes) are the numbers of the model's columns. The features of these
 * documents and the bias have been coded. *scored = the number of scores that were computed.
 * count <= classes. DCME_DIVERGED if one of them is not finite. */
dcme_status dcme_best_classes(int32_t *best, int64_t count, int64_t *scored,
                              const dcme_class_codes *codes, const dcme_linear *model,
                              const int32_t *numbers, const dcme_sparse_rows *documents,
                              int64_t begin, int64_t end, dcme_error *error);
