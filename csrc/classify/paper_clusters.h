/* Dual clusters of a linear classifier as in the paper; whose parts tests call.
 *
 * As for word vectors (../objectives/clusters.h), with a sparse x for the context vector h and the
 * weights W by feature for the rows V: E_alpha_k[s] = u_k . x with u_k = W alpha_k (10). All u_k
 * lie side by side by feature, so that one pass over the features of a document gives the K
 * products, as one pass over W gives scores.
 *
 * Legend: C classes, F features with the bias, K clusters, Q top classes, alpha center, H entropy.
 */
#pragma once

#include "classify/class_objective.h"
#include "objectives/center.h"

typedef struct {
    const dcme_problem *problem;
    int64_t count, top_items; /* K; Q, at most C */
    double threshold;         /* beta C, instances that make a cluster's sums full */
    int64_t features;         /* F */
    int64_t stride;           /* of a row of u */
    real *u;                  /* (F, stride) u_k in column k */
    real *entropy;            /* (stride) H(alpha_k) */
    dcme_cluster *clusters;   /* (K) */
} dcme_paper_clusters;

/* One thread's sums over the instances of one cluster since its last offline update. */
typedef struct {
    int64_t count;
    real weight; /* sum of the instances' weights v */
    real *sums;  /* (F, 2) sum of v x and sum of rate v x, side by side */
} dcme_paper_sums;

void dcme_paper_sums_add(dcme_paper_sums *sums, const dcme_batch *batch, int64_t i, real rate);

/* values (stride) = u_k . x + H_k of instance i (9). */
void dcme_paper_clusters_bounds(const dcme_paper_clusters *paper, dcme_batch *batch, int64_t i,
                                real *values);

/* W -= (sum of rate x) weights' for the features in the sums, and scores (C's stride) = W' mean of
 * x afterwards. */
void dcme_paper_sums_apply(const dcme_paper_sums *sums, const dcme_paper_clusters *paper,
                           const real *weights, real *scores);

/* alpha_k = softmax(scores) (14), then H_k, the top classes and u_k. */
void dcme_paper_clusters_move(dcme_paper_clusters *paper, int64_t k, real *scores);
