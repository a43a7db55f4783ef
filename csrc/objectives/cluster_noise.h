/* Noise by cluster, for the robust DCME: what each cluster draws, and its offline update; see
 * dcme.c.
 *
 * Legend: beta_zj share of item j in cluster z's noise, b_zj its bias, nu virtual draws.
 */
#ifndef DCME_CLUSTER_NOISE_H
#define DCME_CLUSTER_NOISE_H

#include "objectives/clusters.h"
#include "train/alias.h"

/* What a cluster has beside its centre, whose alpha holds beta. */
typedef struct {
    dcme_alias *cells; /* (N) beta_z outside the top items */
    real *bias;        /* (N) b_zj = log(nu beta_zj) - prior_j */
    real mass;         /* of beta_z outside the top items */
} dcme_cluster_noise;

typedef struct {
    dcme_clusters clusters;
    dcme_cluster_noise *noise; /* (K) */
    real *unigram;             /* (N) */
    real virtual_draws;        /* nu */
} dcme_noisy_clusters;

/* `noisy` is all zeros before; close it even if this fails. */
dcme_status dcme_noisy_open(dcme_noisy_clusters *noisy, const dcme_model *model,
                            const dcme_train_options *options);
void dcme_noisy_close(dcme_noisy_clusters *noisy);

/* Write the centre of cluster k, which its noise has a share of, to alpha (N). */
void dcme_noisy_centre(const dcme_noisy_clusters *noisy, int64_t k, real *alpha);

/* List what changes in the clusters and their noise. */
void dcme_noisy_state(dcme_noisy_clusters *noisy, dcme_state *state);

/* A new centre at the mean of the pending contexts, and all that follows from it. `weights` (N) is
 * overwritten. */
void dcme_noisy_move(dcme_noisy_clusters *noisy, int64_t k, dcme_pending *pending,
                     dcme_workshop *workshop, double *weights);

#endif
