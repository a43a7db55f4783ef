/* The codes of weights; see class_codes.h. Bounds are to be tight for the many small weights of a
 * row and for the few great ones, so edges are quantiles whose tails shrink about geometrically.
 * The inner ones are found on a sample, the outer ones among the extremes of LANES lanes, every
 * LANES-th class a lane: most of the greatest weights are in different lanes. */
#include "classify/class_codes.h"

#include <stdlib.h>

enum { SAMPLE = 64, LANES = 128, UNIT = 32 }; /* UNIT: classes of 16 bytes of codes */

int64_t dcme_code_stride(int64_t classes) {
    return (classes + 2 * DCME_CODE_PAD - 1) / (2 * DCME_CODE_PAD) * DCME_CODE_PAD;
}

static int ascending(const void *a, const void *b) {
    real x = *(const real *)a, y = *(const real *)b;
    return (x > y) - (x < y);
}

typedef struct {
    real greatest[LANES], lowest[LANES], sample[SAMPLE]; /* sorted */
} summary;

/* 0 if a weight is NaN or infinite, whose product with 0 is NaN. Lanes are independent, so that
 * compilers make vector code of the loop over them. */
static int32_t summarise(summary *s, const real *row, int64_t classes) {
    real zeros[LANES] = {0}, zero = 0;
    for (int k = 0; k < LANES; k++)
        s->greatest[k] = s->lowest[k] = row[k % classes];
    for (int64_t j = 0; j < classes; j += LANES) {
        int64_t n = dcme_min(classes - j, LANES);
        for (int64_t k = 0; k < n; k++) {
            real w = row[j + k];
            s->greatest[k] = w > s->greatest[k] ? w : s->greatest[k];
            s->lowest[k] = w < s->lowest[k] ? w : s->lowest[k];
            zeros[k] += w * 0;
        }
    }
    for (int k = 0; k < LANES; k++)
        zero += zeros[k];
    for (int64_t i = 0; i < SAMPLE; i++)
        s->sample[i] = row[i * classes / SAMPLE];
    qsort(s->sample, SAMPLE, sizeof *s->sample, ascending);
    qsort(s->greatest, LANES, sizeof *s->greatest, ascending);
    qsort(s->lowest, LANES, sizeof *s->lowest, ascending);
    return zero == 0;
}

/* Where edges are taken from: numbers of lanes with lower weights, shares of the sample below, and
 * numbers of lanes with greater weights; -1 ends a list. */
typedef struct {
    int8_t lowest[8];
    double shares[8];
    int8_t greatest[12];
} plan;
static const plan UPPER = {
    {-1}, {.4, .65, .8, .9, .95, .975, -1}, {115, 95, 70, 44, 25, 13, 7, 3, 1, 0, -1}};
static const plan BOTH = {
    {1, 3, 8, 20, 50, 95, -1}, {.25, .5, .75, -1}, {95, 50, 20, 8, 3, 1, 0, -1}};

/* Edges in ascending order; 0 if a weight is not finite. */
static int32_t find_edges(real *edges, const real *row, int64_t classes, const plan *from) {
    summary s;
    real *next = edges;
    if (!summarise(&s, row, classes))
        return 0;
    *next++ = s.lowest[0];
    for (int i = 0; from->lowest[i] >= 0; i++)
        *next++ = s.lowest[from->lowest[i]];
    for (int i = 0; from->shares[i] >= 0; i++)
        *next++ = s.sample[(int)(from->shares[i] * SAMPLE)];
    for (int i = 0; from->greatest[i] >= 0; i++)
        *next++ = s.greatest[LANES - 1 - from->greatest[i]];
    for (int e = 1; e < DCME_EDGES; e++) /* where tails overlap */
        edges[e] = edges[e] > edges[e - 1] ? edges[e] : edges[e - 1];
    return 1;
}

static int32_t code_row(uint8_t *codes, real *edges, const real *row, const dcme_linear *model,
                        const plan *from) {
    real last[UNIT] = {0};
    int64_t left = model->classes % UNIT, whole = model->classes - left;
    if (!find_edges(edges, row, model->classes, from))
        return 0;
    model->kernels->code_weights(codes, row, edges + 1, whole);
    if (left > 0) {
        DCME_COPY(last, row + whole, left);
        model->kernels->code_weights(codes + whole / 2, last, edges + 1, UNIT);
    }
    return 1;
}

int32_t dcme_code_features(const dcme_class_codes *codes, const dcme_linear *model,
                           const int32_t *features, int64_t count, int32_t is_signed) {
    int32_t finite = 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t f = features[i];
        finite &= code_row(codes->codes + f * dcme_code_stride(model->classes),
                           codes->edges + f * DCME_EDGES, model->weights + f * model->stride, model,
                           is_signed ? &BOTH : &UPPER);
    }
    return finite;
}
