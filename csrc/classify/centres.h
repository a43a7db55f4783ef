/* Dual clusters of a linear classifier as in the paper; used by dcme_paper.c.
 *
 * As for word vectors (../objectives/clusters.h), with a sparse x for the context vector h and the
 * weights W by feature for the rows V: E_alpha_k[s] = u_k . x with u_k = W alpha_k (10). All u_k
 * lie side by side by feature, so that one pass over the features of a document gives the K
 * products, as one pass over W gives scores.
 *
 * Legend: C classes, F features with the bias, K clusters, Q top classes, alpha centre, H entropy.
 */
#ifndef DCME_CLASSIFY_CENTRES_H
#define DCME_CLASSIFY_CENTRES_H

#include "classify/objective.h"
#include "objectives/centre.h"

typedef struct {
    const dcme_problem *problem;
    int64_t count, top_items; /* K; Q, at most C */
    double threshold;         /* beta C, instances that make a cluster's sums full */
    int64_t features;         /* F */
    int64_t stride;           /* of a row of u */
    real *u;                  /* (F, stride) u_k in column k */
    real *entropy;            /* (stride) H(alpha_k) */
    dcme_cluster *clusters;   /* (K) */
} dcme_centres;

/* One thread's sums over the instances of one cluster since its last offline update. */
typedef struct {
    int64_t count;
    real *sums; /* (F, 2) sum of x and sum of rate x, side by side */
} dcme_sums;

/* Centres start as the unigram distribution, each disturbed at random. `centres` is all zeros
 * before; close it even if this fails. */
dcme_status dcme_centres_open(dcme_centres *centres, const dcme_problem *problem);
void dcme_centres_close(dcme_centres *centres);

dcme_status dcme_sums_open(dcme_sums **sums, int64_t clusters, int64_t features);
void dcme_sums_close(dcme_sums *sums, int64_t clusters);
void dcme_sums_add(dcme_sums *sums, const dcme_batch *batch, int64_t i, real rate);
void dcme_sums_clear(dcme_sums *sums, int64_t features);

/* values (stride) = u_k . x + H_k of instance i (9). */
void dcme_centres_bounds(const dcme_centres *centres, dcme_batch *batch, int64_t i, real *values);

/* W -= (sum of rate x) weights' for the features in the sums, and scores (C's stride) = W' mean of
 * x thereafter. */
void dcme_sums_apply(const dcme_sums *sums, const dcme_centres *centres, const real *weights,
                     real *scores);

/* alpha_k = softmax(scores) (14), then H_k, the top classes and u_k. */
void dcme_centres_move(dcme_centres *centres, int64_t k, real *scores);

#endif
