/* See proposal.h. */
#include "objectives/proposal.h"

#include <math.h>

/* All that follows from a new center: top items, biases and the table to draw from. `q` (N) is
 * overwritten. */
static void renew(dcme_proposals *p, int64_t z, real *q, dcme_proposal_scratch *own) {
    dcme_cluster *cluster = &p->clusters.clusters[z];
    dcme_proposal *proposal = &p->proposals[z];
    int64_t items = p->clusters.model->items;
    double mass = 0;
    for (int64_t j = 0; j < items; j++)
        q[j] = dcme_proposal_of(p, z, j);
    dcme_cluster_choose_top(cluster, q, items, p->clusters.top_items);
    for (int64_t j = 0; j < items; j++) {
        mass += own->weights[j] = cluster->is_top[j] ? 0 : q[j];
        proposal->bias[j] = (real)log(p->virtual_draws * q[j]) - p->clusters.prior[j];
    }
    proposal->mass = (real)mass;
    if (mass > 0 && dcme_alias_build(own->cells, own->weights, own->order, items))
        own->cells = atomic_exchange(&proposal->cells, own->cells);
}

void dcme_proposal_scratch_open(dcme_proposal_scratch *own, dcme_arena *arena, int64_t items) {
    DCME_TAKE(arena, own->weights, items);
    DCME_TAKE(arena, own->order, items);
    DCME_TAKE(arena, own->cells, items);
}

static void fill_unigram(dcme_proposals *p, double *weights, double power) {
    const dcme_model *model = p->clusters.model;
    double total = dcme_noise_weights(weights, model->counts, model->items, power);
    for (int64_t j = 0; j < model->items; j++)
        p->unigram[j] = (real)(weights[j] / total);
}

void dcme_proposals_open(dcme_proposals *p, dcme_arena *arena, const dcme_model *model,
                         const dcme_train_options *options, real unigram_share,
                         real virtual_draws) {
    int64_t items = model->items;
    dcme_proposal_scratch own;
    dcme_arena scratch = {0};
    real *q = dcme_take(&scratch, items, sizeof *q);
    dcme_proposal_scratch_open(&own, &scratch, items);
    dcme_clusters_open(&p->clusters, arena, model, options);
    DCME_TAKE(arena, p->proposals, options->clusters);
    DCME_TAKE(arena, p->unigram, items);
    p->unigram_share = unigram_share;
    p->virtual_draws = virtual_draws;
    for (int64_t z = 0; p->proposals && z < options->clusters; z++) {
        dcme_proposal *proposal = &p->proposals[z];
        atomic_init(&proposal->cells, dcme_take(arena, items, sizeof(dcme_alias)));
        dcme_save(arena, NULL, &proposal->cells, items, sizeof(dcme_alias), items, "cells");
        DCME_TAKE_SAVED(arena, proposal->bias, items, 0);
        DCME_SAVE(arena, proposal->mass);
    }
    dcme_arena_join(arena, &scratch);
    if (arena->status == DCME_OK)
        fill_unigram(p, own.weights, options->noise_power);
    for (int64_t z = 0; arena->status == DCME_OK && z < options->clusters; z++) {
        own.cells = p->proposals[z].cells;
        renew(p, z, q, &own);
    }
    dcme_arena_close(&scratch);
}

void dcme_proposals_move(dcme_proposals *p, int64_t z, dcme_cluster_sums *sums,
                         dcme_scratch *scratch, dcme_proposal_scratch *own) {
    dcme_cluster_move(&p->clusters, z, sums, NULL, scratch);
    renew(p, z, scratch->scores, own);
    dcme_cluster_sums_clear(sums, p->clusters.model);
}
