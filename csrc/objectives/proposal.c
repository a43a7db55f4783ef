/* See proposal.h. */
#include "objectives/proposal.h"

#include "objectives/noise.h"

#include <math.h>
#include <stdlib.h>

/* All that follows from a new centre: top items, biases and the table to draw from. `q` and
 * `weights` (N) are overwritten. */
static dcme_status renew(dcme_proposals *p, int64_t z, real *q, double *weights) {
    dcme_cluster *cluster = &p->clusters.clusters[z];
    dcme_proposal *proposal = &p->proposals[z];
    int64_t items = p->clusters.model->items;
    double mass = 0;
    for (int64_t j = 0; j < items; j++)
        q[j] = dcme_proposal_of(p, z, j);
    dcme_cluster_choose_top(cluster, q, items, p->clusters.top_items);
    for (int64_t j = 0; j < items; j++) {
        mass += weights[j] = cluster->is_top[j] ? 0 : q[j];
        proposal->bias[j] = (real)log((double)(p->virtual_draws * q[j])) - p->clusters.prior[j];
    }
    proposal->mass = (real)mass;
    return mass > 0 ? dcme_alias_build(proposal->cells, weights, items) : DCME_OK;
}

static dcme_status open_proposal(dcme_proposals *p, int64_t z, real *q, double *weights) {
    int64_t items = p->clusters.model->items;
    dcme_proposal *proposal = &p->proposals[z];
    proposal->cells = dcme_allocate(items, sizeof *proposal->cells);
    proposal->bias = dcme_allocate(items, sizeof *proposal->bias);
    return proposal->cells && proposal->bias ? renew(p, z, q, weights) : DCME_NO_MEMORY;
}

static dcme_status open_all(dcme_proposals *p, const dcme_train_options *options, real *q,
                            double *weights) {
    const dcme_model *model = p->clusters.model;
    double total = dcme_noise_weights(weights, model->counts, model->items, options->noise_power);
    dcme_status status = DCME_OK;
    for (int64_t j = 0; j < model->items; j++)
        p->unigram[j] = (real)(weights[j] / total);
    for (int64_t z = 0; status == DCME_OK && z < options->clusters; z++)
        status = open_proposal(p, z, q, weights);
    return status;
}

dcme_status dcme_proposals_open(dcme_proposals *p, const dcme_model *model,
                                const dcme_train_options *options, real unigram_share,
                                real virtual_draws) {
    double *weights = dcme_allocate(model->items, sizeof *weights);
    real *q = dcme_allocate(model->items, sizeof *q);
    dcme_status status = dcme_clusters_open(&p->clusters, model, options);
    p->proposals = dcme_allocate_zeros(options->clusters, sizeof *p->proposals);
    p->unigram = dcme_allocate(model->items, sizeof *p->unigram);
    p->unigram_share = unigram_share;
    p->virtual_draws = virtual_draws;
    if (!weights || !q || !p->proposals || !p->unigram)
        status = DCME_NO_MEMORY;
    if (status == DCME_OK)
        status = open_all(p, options, q, weights);
    free(weights), free(q);
    return status;
}

void dcme_proposals_close(dcme_proposals *p) {
    for (int64_t z = 0; p->proposals && z < p->clusters.count; z++) {
        free(p->proposals[z].cells);
        free(p->proposals[z].bias);
    }
    dcme_clusters_close(&p->clusters);
    free(p->proposals);
    free(p->unigram);
}

void dcme_proposals_state(dcme_proposals *p, dcme_state *state) {
    int64_t items = p->clusters.model->items;
    dcme_clusters_state(&p->clusters, state);
    for (int64_t z = 0; z < p->clusters.count; z++) {
        dcme_proposal *proposal = &p->proposals[z];
        dcme_state_add(state, proposal->cells, items, sizeof *proposal->cells);
        dcme_state_add(state, proposal->bias, items, sizeof *proposal->bias);
        dcme_state_add(state, &proposal->mass, 1, sizeof proposal->mass);
    }
}

void dcme_proposals_move(dcme_proposals *p, int64_t z, dcme_cluster_sums *sums,
                         dcme_scratch *scratch, double *weights) {
    dcme_cluster_move(&p->clusters, z, sums, NULL, scratch);
    /* the table to draw from stays the old one if memory is short */
    renew(p, z, scratch->scores, weights);
    dcme_cluster_sums_clear(sums, p->clusters.model);
}
