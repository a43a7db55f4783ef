/* See cluster_noise.h. */
#include "objectives/cluster_noise.h"

#include "objectives/noise.h"
#include "objectives/select.h"

#include <math.h>
#include <stdlib.h>

/* Share of the unigram distribution in every cluster's noise. The centre, softmax at a mean
 * context, is close to the geometric mean of its contexts' distributions and has next to nothing
 * of the words that only some of them expect; noise must have some of every word. */
static const real UNIGRAM = 0.9f;
enum { VIRTUAL = 2 }; /* virtual draws for each draw */

/* All that follows from a new centre: beta, top items, biases and the table to draw from. */
static dcme_status renew(dcme_noisy_clusters *s, int64_t k, double *weights) {
    dcme_cluster *cluster = &s->clusters.clusters[k];
    dcme_cluster_noise *noise = &s->noise[k];
    int64_t items = s->clusters.model->items;
    double mass = 0;
    for (int64_t j = 0; j < items; j++)
        cluster->alpha[j] = (1 - UNIGRAM) * cluster->alpha[j] + UNIGRAM * s->unigram[j];
    dcme_cluster_choose_top(cluster, items, s->clusters.top_items);
    for (int64_t j = 0; j < items; j++) {
        mass += weights[j] = cluster->is_top[j] ? 0 : cluster->alpha[j];
        noise->bias[j] =
            (real)log((double)(s->virtual_draws * cluster->alpha[j])) - s->clusters.prior[j];
    }
    noise->mass = (real)mass;
    return mass > 0 ? dcme_alias_build(noise->cells, weights, items) : DCME_OK;
}

static void fill_unigram(dcme_noisy_clusters *s, double power, double *weights) {
    const dcme_model *model = s->clusters.model;
    double total = dcme_noise_weights(weights, model->counts, model->items, power);
    for (int64_t j = 0; j < model->items; j++)
        s->unigram[j] = (real)(weights[j] / total);
}

static dcme_status open_noise(dcme_noisy_clusters *s, int64_t k, double *weights) {
    int64_t items = s->clusters.model->items;
    s->noise[k].cells = dcme_allocate(items, sizeof *s->noise[k].cells);
    s->noise[k].bias = dcme_allocate(items, sizeof *s->noise[k].bias);
    return s->noise[k].cells && s->noise[k].bias ? renew(s, k, weights) : DCME_NO_MEMORY;
}

dcme_status dcme_noisy_open(dcme_noisy_clusters *s, const dcme_model *model,
                            const dcme_train_options *options) {
    double *weights = dcme_allocate(model->items, sizeof *weights);
    dcme_status status = dcme_clusters_open(&s->clusters, model, options);
    s->noise = dcme_allocate_zeros(options->clusters, sizeof *s->noise);
    s->unigram = dcme_allocate(model->items, sizeof *s->unigram);
    s->virtual_draws = (real)(VIRTUAL * (options->negative > 0 ? options->negative : 1));
    if (!weights || !s->noise || !s->unigram)
        status = DCME_NO_MEMORY;
    if (status == DCME_OK)
        fill_unigram(s, options->noise_power, weights);
    for (int64_t k = 0; status == DCME_OK && k < options->clusters; k++)
        status = open_noise(s, k, weights);
    free(weights);
    return status;
}

void dcme_noisy_close(dcme_noisy_clusters *s) {
    for (int64_t k = 0; s->noise && k < s->clusters.count; k++) {
        free(s->noise[k].cells);
        free(s->noise[k].bias);
    }
    dcme_clusters_close(&s->clusters);
    free(s->noise);
    free(s->unigram);
}

void dcme_noisy_centre(const dcme_noisy_clusters *s, int64_t k, real *alpha) {
    double total = 0;
    for (int64_t j = 0; j < s->clusters.model->items; j++) {
        real centre = s->clusters.clusters[k].alpha[j] - UNIGRAM * s->unigram[j];
        total += alpha[j] = centre > 0 ? centre : 0; /* rounding may leave less than nothing */
    }
    for (int64_t j = 0; j < s->clusters.model->items; j++)
        alpha[j] = (real)(alpha[j] / total);
}

void dcme_noisy_state(dcme_noisy_clusters *s, dcme_state *state) {
    int64_t items = s->clusters.model->items;
    dcme_clusters_state(&s->clusters, state);
    for (int64_t k = 0; k < s->clusters.count; k++) {
        dcme_cluster_noise *noise = &s->noise[k];
        dcme_state_add(state, noise->cells, items, sizeof *noise->cells);
        dcme_state_add(state, noise->bias, items, sizeof *noise->bias);
        dcme_state_add(state, &noise->mass, 1, sizeof noise->mass);
    }
}

void dcme_noisy_move(dcme_noisy_clusters *s, int64_t k, dcme_pending *pending,
                     dcme_workshop *workshop, double *weights) {
    dcme_cluster_move(&s->clusters, k, pending, NULL, workshop);
    /* the table to draw from stays the old one if memory is short */
    renew(s, k, weights);
    dcme_pending_clear(pending, s->clusters.model);
}
