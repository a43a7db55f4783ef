/* See tiers.h. All passes go over the output rows in blocks of DCME_ROWS. */
#include "objectives/tiers.h"

#include "objectives/select.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_ITEMS = 2000 };
static const real UNIGRAM = 0.1f; /* share of the unigram distribution in every centre */
static const real STEP_MAX = 0.5; /* nats that an offline step may move a score at the mean */

static dcme_status open_tiers(dcme_tiers *t, const dcme_tiered *s) {
    const dcme_model *model = s->clusters.model;
    t->items = dcme_allocate(model->items, sizeof *t->items);
    t->head = dcme_allocate(s->heads, sizeof *t->head);
    t->is_head = dcme_allocate_zeros(model->items, 1);
    t->noise = dcme_allocate(model->items, sizeof *t->noise);
    t->mean = dcme_allocate_zeros(3 * model->stride, sizeof *t->mean);
    if (!t->items || !t->head || !t->is_head || !t->noise || !t->mean)
        return DCME_NO_MEMORY;
    t->u_head = t->mean + model->stride;
    t->u_tail = t->u_head + model->stride;
    for (int64_t i = 0; i < s->heads; i++)
        t->head[i] = (int32_t)i;
    return DCME_OK;
}

/* Put b, sigma and u of the items `list[0 .. count)`, or of j .. j + count without a list, in line
 * with the rows as they are; top items stay out of u. Returns the sum of their e. */
static real refresh(dcme_tiered *s, int64_t k, const int32_t *list, int64_t j, int64_t count,
                    real *u) {
    const dcme_model *model = s->clusters.model;
    const dcme_cluster *cluster = &s->clusters.clusters[k];
    dcme_tiers *t = &s->tiers[k];
    real *rows[DCME_ROWS] = {NULL}, weights[DCME_ROWS] = {0}, sum = 0;
    for (int64_t i = 0; i < count; i++)
        rows[i] = model->output + (list ? list[i] : j + i) * model->stride;
    model->kernels->dots(weights, t->mean, rows, count, model->stride);
    for (int64_t i = 0; i < count; i++) {
        int64_t word = list ? list[i] : j + i;
        t->items[word].bias = s->log_items + (real)log((double)(DCME_NU * cluster->alpha[word]));
        weights[i] -= t->items[word].bias;
    }
    model->kernels->logistic(weights, weights, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t word = list ? list[i] : j + i;
        t->items[word].sigma = weights[i];
        weights[i] *= DCME_NU * cluster->alpha[word];
        if (cluster->is_top[word] || (!list && t->is_head[word]))
            weights[i] = 0;
        sum += weights[i];
    }
    model->kernels->combine(u, rows, weights, count, model->stride);
    return sum;
}

static void refresh_head(dcme_tiered *s, int64_t k, real *scratch) {
    dcme_tiers *t = &s->tiers[k];
    int64_t stride = s->clusters.model->stride;
    real *rows[2] = {t->u_head, t->u_tail}, along[2], sum = 0;
    memset(scratch, 0, (size_t)stride * sizeof *scratch);
    for (int64_t i = s->clusters.top_items; i < s->heads; i += DCME_ROWS)
        sum += refresh(s, k, t->head + i, 0, s->heads - i < DCME_ROWS ? s->heads - i : DCME_ROWS,
                       scratch);
    memcpy(t->u_head, scratch, (size_t)stride * sizeof *scratch);
    t->e_head = sum;
    s->clusters.model->kernels->dots(along, t->mean, rows, 2, stride);
    t->u_mean = along[0] + along[1];
}

/* Make the first of a head the top items: an item belongs to one tier, and mixing the centre with
 * the unigram distribution may have changed which are heaviest. */
static void settle_top(const dcme_clusters *clusters, int64_t k, const int32_t *head) {
    dcme_cluster *cluster = &clusters->clusters[k];
    for (int64_t q = 0; q < clusters->top_items; q++)
        cluster->is_top[cluster->top[q]] = 0;
    for (int64_t q = 0; q < clusters->top_items; q++) {
        cluster->top[q] = head[q];
        cluster->is_top[head[q]] = 1;
    }
}

/* All that follows from a new centre and a new mean. */
static dcme_status renew(dcme_tiered *s, int64_t k, double *noise, real *scratch) {
    const dcme_model *model = s->clusters.model;
    const dcme_cluster *cluster = &s->clusters.clusters[k];
    dcme_tiers *t = &s->tiers[k];
    double mass = 0;
    real sum = 0;
    for (int64_t i = 0; i < s->heads; i++)
        t->is_head[t->head[i]] = 0;
    for (int64_t j = 0; j < model->items; j++)
        cluster->alpha[j] = (1 - UNIGRAM) * cluster->alpha[j] + UNIGRAM * s->unigram[j];
    dcme_select_heaviest(t->head, s->heads, cluster->alpha, model->items);
    for (int64_t i = 0; i < s->heads; i++)
        t->is_head[t->head[i]] = 1;
    settle_top(&s->clusters, k, t->head);
    for (int64_t j = 0; j < model->items; j++)
        mass += noise[j] = cluster->is_top[j] ? 0 : cluster->alpha[j];
    t->mass = (real)mass;
    memset(scratch, 0, (size_t)model->stride * sizeof *scratch);
    for (int64_t j = 0; j < model->items; j += DCME_ROWS)
        sum += refresh(s, k, NULL, j, model->items - j < DCME_ROWS ? model->items - j : DCME_ROWS,
                       scratch);
    memcpy(t->u_tail, scratch, (size_t)model->stride * sizeof *scratch);
    t->e_tail = sum;
    refresh_head(s, k, scratch);
    return mass > 0 ? dcme_alias_build(t->noise, noise, model->items) : DCME_OK;
}

dcme_status dcme_workshop_open(dcme_workshop *workshop, const dcme_model *model) {
    workshop->noise = dcme_allocate(model->items, sizeof *workshop->noise);
    workshop->scratch = dcme_allocate(dcme_scratch_length(model), sizeof *workshop->scratch);
    return workshop->noise && workshop->scratch ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_workshop_close(dcme_workshop *workshop) {
    free(workshop->noise);
    free(workshop->scratch);
}

static void fill_unigram(dcme_tiered *s) {
    const dcme_model *model = s->clusters.model;
    double total = 0;
    for (int64_t j = 0; j < model->items; j++)
        total += (double)model->counts[j];
    for (int64_t j = 0; j < model->items; j++)
        s->unigram[j] = (real)((double)model->counts[j] / total);
}

dcme_status dcme_tiered_open(dcme_tiered *s, const dcme_model *model,
                             const dcme_train_options *options) {
    dcme_workshop workshop;
    dcme_status status = dcme_workshop_open(&workshop, model);
    if (dcme_clusters_open(&s->clusters, model, options) != DCME_OK)
        status = DCME_NO_MEMORY;
    s->tiers = dcme_allocate_zeros(options->clusters, sizeof *s->tiers);
    s->unigram = dcme_allocate(model->items, sizeof *s->unigram);
    s->heads = model->items < HEAD_ITEMS ? model->items : HEAD_ITEMS;
    if (s->heads < s->clusters.top_items)
        s->heads = s->clusters.top_items;
    s->log_items = (real)log((double)model->items);
    if (!s->tiers || !s->unigram)
        status = DCME_NO_MEMORY;
    if (status == DCME_OK)
        fill_unigram(s);
    for (int64_t k = 0; status == DCME_OK && k < options->clusters; k++) {
        status = open_tiers(&s->tiers[k], s);
        if (status == DCME_OK)
            status = renew(s, k, workshop.noise, workshop.scratch);
    }
    dcme_workshop_close(&workshop);
    return status;
}

void dcme_tiered_close(dcme_tiered *s) {
    for (int64_t k = 0; s->tiers && k < s->clusters.count; k++) {
        dcme_tiers *t = &s->tiers[k];
        free(t->items), free(t->head), free(t->is_head), free(t->noise), free(t->mean);
    }
    dcme_clusters_close(&s->clusters);
    free(s->tiers);
    free(s->unigram);
}

void dcme_tiered_state(dcme_tiered *s, dcme_state *state) {
    const dcme_model *model = s->clusters.model;
    dcme_clusters_state(&s->clusters, state);
    for (int64_t k = 0; k < s->clusters.count; k++) {
        dcme_tiers *t = &s->tiers[k];
        dcme_state_add(state, t->items, model->items, sizeof *t->items);
        dcme_state_add(state, t->head, s->heads, sizeof *t->head);
        dcme_state_add(state, t->is_head, model->items, sizeof *t->is_head);
        dcme_state_add(state, t->noise, model->items, sizeof *t->noise);
        dcme_state_add(state, t->mean, 3 * model->stride, sizeof *t->mean); /* and both u */
        dcme_state_add(state, &t->mass, 1, sizeof t->mass);
        dcme_state_add(state, &t->e_head, 1, sizeof t->e_head);
        dcme_state_add(state, &t->e_tail, 1, sizeof t->e_tail);
        dcme_state_add(state, &t->u_mean, 1, sizeof t->u_mean);
    }
}

/* Weight of an item in an offline step along `step`, so small that its score at the mean moves by
 * STEP_MAX at most: stale weights times many instances must not throw a row far. */
static real offline_weight(const dcme_tiered *s, int64_t k, int64_t word, real along) {
    real e = DCME_NU * s->clusters.clusters[k].alpha[word] * s->tiers[k].items[word].sigma;
    real moved = along < 0 ? -along * e : along * e;
    return moved > STEP_MAX ? -e * STEP_MAX / moved : -e;
}

static real along_mean(const dcme_tiered *s, int64_t k, real *step) {
    real along;
    s->clusters.model->kernels->dots(&along, s->tiers[k].mean, &step, 1, s->clusters.model->stride);
    return along;
}

void dcme_tiered_step_head(dcme_tiered *s, int64_t k, dcme_pending *pending, real *scratch) {
    const dcme_model *model = s->clusters.model;
    real *rows[DCME_ROWS], weights[DCME_ROWS], along = along_mean(s, k, pending->step);
    for (int64_t i = s->clusters.top_items; i < s->heads; i += DCME_ROWS) {
        int64_t n = s->heads - i < DCME_ROWS ? s->heads - i : DCME_ROWS;
        for (int64_t r = 0; r < n; r++) {
            int32_t word = s->tiers[k].head[i + r];
            rows[r] = model->output + word * model->stride;
            weights[r] = offline_weight(s, k, word, along);
        }
        model->kernels->push(rows, weights, pending->step, n, model->stride);
    }
    dcme_pending_clear(pending, model);
    refresh_head(s, k, scratch);
}

void dcme_tiered_step_tail(dcme_tiered *s, int64_t k, const dcme_pending *pending) {
    const dcme_model *model = s->clusters.model;
    real *rows[DCME_ROWS], weights[DCME_ROWS], *step = pending->step;
    real along = along_mean(s, k, step);
    for (int64_t j = 0; j < model->items; j += DCME_ROWS) {
        int64_t n = dcme_output_rows(model, j, rows);
        for (int64_t r = 0; r < n; r++)
            weights[r] = s->tiers[k].is_head[j + r] ? 0 : offline_weight(s, k, j + r, along);
        model->kernels->push(rows, weights, step, n, model->stride);
    }
}

void dcme_tiered_move(dcme_tiered *s, int64_t k, dcme_pending *pending, dcme_workshop *workshop) {
    const dcme_model *model = s->clusters.model;
    real *mean = s->tiers[k].mean;
    memset(mean, 0, (size_t)model->stride * sizeof *mean);
    model->kernels->axpy(mean, 1 / (real)pending->count, pending->h, model->stride);
    dcme_cluster_move(&s->clusters, k, mean, workshop->scratch);
    /* the alias table stays the old one if memory is short */
    renew(s, k, workshop->noise, workshop->scratch);
    dcme_pending_clear(pending, model);
}
