/* Proposal distributions, for the robust DCME: the distributions of each dual cluster's samples,
 * and its offline update; see dcme.c.
 *
 * Legend: N items, K clusters, alpha_z centre of cluster z, q_z its proposal, b_z biases, nu
 * virtual draws, rho share of the unigram distribution.
 */
#ifndef DCME_PROPOSAL_H
#define DCME_PROPOSAL_H

#include "common/alias.h"
#include "objectives/clusters.h"

/* Data of a cluster in addition to its centre. */
typedef struct {
    dcme_alias *cells; /* (N) q_z outside the top items */
    real *bias;        /* (N) b_zj = log(nu q_zj) - prior_j */
    real mass;         /* of q_z outside the top items */
} dcme_proposal;

typedef struct {
    dcme_clusters clusters;   /* their top items are those of q_z */
    dcme_proposal *proposals; /* (K) */
    real *unigram;            /* (N) */
    real unigram_share;       /* rho */
    real virtual_draws;       /* nu */
} dcme_proposals;

/* `proposals` is all zeros before; close it even if this fails. */
dcme_status dcme_proposals_open(dcme_proposals *proposals, const dcme_model *model,
                                const dcme_train_options *options, real unigram_share,
                                real virtual_draws);
void dcme_proposals_close(dcme_proposals *proposals);

/* q_zj = (1 - rho) alpha_zj + rho unigram_j */
static inline real dcme_proposal_of(const dcme_proposals *proposals, int64_t z, int64_t j) {
    real rho = proposals->unigram_share;
    return (1 - rho) * proposals->clusters.clusters[z].alpha[j] + rho * proposals->unigram[j];
}

/* List what changes in the clusters and their proposals. */
void dcme_proposals_state(dcme_proposals *proposals, dcme_state *state);

/* A new centre at the mean of the contexts summed up, and all that follows from it. `weights` (N)
 * is overwritten. */
void dcme_proposals_move(dcme_proposals *proposals, int64_t z, dcme_cluster_sums *sums,
                         dcme_scratch *scratch, double *weights);

#endif
