/* Proposal distributions, for the robust DCME: the distributions of each dual cluster's samples,
 * and its offline update; see dcme.c.
 *
 * Legend: N items, K clusters, alpha_z center of cluster z, q_z its proposal, b_z biases, nu
 * virtual draws, rho share of the unigram distribution.
 */
#pragma once

#include "common/alias.h"
#include "objectives/clusters.h"

/* Data of a cluster in addition to its center. */
typedef struct {
    dcme_alias *_Atomic cells; /* (N) q_z outside the top items: rewritten after two more
                                  moves; each entry is always an item */
    real *bias;                /* (N) b_zj = log(nu q_zj) - prior_j */
    real mass;                 /* of q_z outside the top items */
} dcme_proposal;

/* Memory for a new proposal. */
typedef struct {
    double *weights;   /* (N) */
    int32_t *order;    /* (N) */
    dcme_alias *cells; /* (N) where the next table to draw from is written */
} dcme_proposal_scratch;

typedef struct {
    dcme_clusters clusters;   /* their top items are the heaviest of q_z */
    dcme_proposal *proposals; /* (K) */
    real *unigram;            /* (N) */
    real unigram_share;       /* rho */
    real virtual_draws;       /* nu */
} dcme_proposals;

void dcme_proposals_open(dcme_proposals *proposals, dcme_arena *arena, const dcme_model *model,
                         const dcme_train_options *options, real unigram_share, real virtual_draws);
void dcme_proposal_scratch_open(dcme_proposal_scratch *scratch, dcme_arena *arena, int64_t items);

/* q_zj = (1 - rho) alpha_zj + rho unigram_j */
static inline real dcme_proposal_of(const dcme_proposals *proposals, int64_t z, int64_t j) {
    real rho = proposals->unigram_share;
    return (1 - rho) * proposals->clusters.clusters[z].alpha[j] + rho * proposals->unigram[j];
}

/* A new center at the mean of the contexts summed up, and all that follows from it. */
void dcme_proposals_move(dcme_proposals *proposals, int64_t z, dcme_cluster_sums *sums,
                         dcme_scratch *scratch, dcme_proposal_scratch *own);
