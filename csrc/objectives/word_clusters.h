/* The dual clusters of DCME (Wang, Wang & Zhai, AAAI 2017).
 *
 * The dual bound log sum_j exp(s_j) = max over mu of { mu . s + H(mu) } (5) is evaluated at one of
 * K cluster centers, mu = alpha_k, each a distribution over the N items. For scores s_j = v_j . h +
 * prior_j the value costs one product with u_k = sum_j alpha_kj v_j (11); the prior contributes a
 * constant for each center.
 *
 * Threads share the centers without waiting for each other. Each thread has its own sums
 * (dcme_cluster_sums). A thread whose sums for a cluster are full locks the cluster while it
 * updates it; meanwhile, other threads use their next best cluster instead.
 *
 * Legend: N items, K clusters, Q top items, alpha center, u = V alpha, H entropy, h context vector.
 */
#pragma once

#include "objectives/dual_center.h"
#include "objectives/noise.h"

typedef struct {
    const dcme_model *model;
    int64_t count, top_items; /* K; Q, at most N */
    double threshold; /* beta N, the number of instances that triggers a cluster's offline update */
    real *u;          /* (K, stride) u_k = V alpha_k */
    real *prior;      /* (N) log prior of the scores */
    real *entropy;    /* (K) H(alpha_k) + alpha_k . prior */
    real **u_rows;    /* (K) */
    dcme_center *clusters; /* (K) */
} dcme_clusters;

/* One thread's sums over the instances of a cluster since its last offline update. */
typedef struct {
    int64_t count;
    double weight; /* sum of the instances' weights */
    real *h;       /* (stride) sum of weight h */
} dcme_cluster_sums;

/* One thread's memory for computing centers. */
typedef struct {
    real *scores; /* (N) */
    real *mean;   /* (stride) */
    real *u;      /* (stride) */
} dcme_scratch;

/* Initialize the centers with the unigram distribution plus random noise, so that they differ. */
void dcme_clusters_open(dcme_clusters *clusters, dcme_arena *arena, const dcme_model *model,
                        const dcme_train_options *options);

/* Return the maximum loss when all vectors are zero. */
double dcme_clusters_untrained_loss(const dcme_clusters *clusters);

/* Allocate one thread's sums, one per cluster. */
dcme_cluster_sums *dcme_cluster_sums_open(dcme_arena *arena, const dcme_clusters *clusters);
void dcme_cluster_sums_add(dcme_cluster_sums *sums, const dcme_model *model, const real *h,
                           real weight);
void dcme_cluster_sums_clear(dcme_cluster_sums *sums, const dcme_model *model);

/* Write the center of cluster k to alpha (N). */
void dcme_clusters_center(const dcme_clusters *clusters, int64_t k, real *alpha);

/* Return argmax_k u_k . h + H_k + alpha_k . prior (9) over the clusters that no thread is updating;
 * see dcme_center_best(). Afterwards, `scores` (K) holds the values. */
int64_t dcme_clusters_decode(const dcme_clusters *clusters, const real *h, real *scores);

void dcme_scratch_open(dcme_scratch *scratch, dcme_arena *arena, const dcme_model *model);

/* v_j -= alpha_kj h for all but the top items (17b), where h is the sum; then set alpha_k =
 * softmax(V h + prior) (15) with the mean h, and compute u_k, H_k and the top items. Other threads
 * may read the cluster meanwhile: each number of the center is replaced atomically, and the list of
 * top items that a reader holds stays valid. */
void dcme_cluster_move(dcme_clusters *clusters, int64_t k, const dcme_cluster_sums *sums,
                       dcme_scratch *scratch);
