/* Dual-clustering maximum entropy to the letter: Algorithm 1 of Wang, Wang & Zhai (AAAI 2017).
 *
 * Online, for context h and target i:
 *     z = argmax_k u_k . h + H_k                                                 (9, 11)
 *     the direction of h is v_i - u_z                                            (18)
 *     v_i += rate h                                                              (17a)
 *     v_j -= rate alpha_zj h for the top Q items j of z, and u_z moves along     (17b)
 * Offline, once z has seen beta N instances:
 *     v_j -= alpha_zj (sum of rate h) for all other items j                      (17b)
 *     alpha_z = softmax(V mean of h), then u_z, H_z, top Q; start anew           (15)
 *
 * Nothing holds the rows back in directions that no cluster mean has, so this form diverges at
 * rates above some thousandths; dcme.c is the form to use.
 */
#include "objectives/clusters.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    dcme_clusters *clusters;
    dcme_pending *pending; /* (K) */
    real *scores;          /* (K) */
    real *mean;            /* (stride) */
    real *scratch;         /* for dcme_cluster_move() */
} member_state;

static void close_shared(void *shared) {
    dcme_clusters_close(shared);
    free(shared);
}

static dcme_status open_shared(void **shared, const dcme_model *model,
                               const dcme_train_options *options, dcme_error *error) {
    dcme_clusters *clusters = dcme_allocate_zeros(1, sizeof *clusters);
    if (!clusters || dcme_clusters_open(clusters, model, options) != DCME_OK) {
        if (clusters)
            close_shared(clusters);
        return dcme_clusters_fail(error, model, options);
    }
    *shared = clusters;
    return DCME_OK;
}

static void leave(void *member) {
    member_state *me = member;
    if (!me)
        return;
    dcme_pending_close(me->pending, me->clusters->count);
    free(me->scores);
    free(me->mean);
    free(me->scratch);
    free(me);
}

static dcme_status join(void **member, void *shared, dcme_error *error) {
    dcme_clusters *clusters = shared;
    member_state *me = dcme_allocate_zeros(1, sizeof *me);
    dcme_status status = DCME_NO_MEMORY;
    if (me) {
        me->clusters = clusters;
        me->scores = dcme_allocate(clusters->count, sizeof *me->scores);
        me->mean = dcme_allocate(clusters->model->stride, sizeof *me->mean);
        me->scratch = dcme_allocate(dcme_scratch_length(clusters->model), sizeof *me->scratch);
        status = dcme_pending_open(&me->pending, clusters->count, clusters->model->stride);
    }
    if (status != DCME_OK || !me->scores || !me->mean || !me->scratch) {
        leave(me);
        return dcme_no_memory(error, dcme_member_bytes(clusters), "a thread's cluster sums",
                              "lower --threads, --clusters or --max-vocab");
    }
    *member = me;
    return DCME_OK;
}

static void begin(void *member, uint64_t stream) {
    (void)member, (void)stream; /* nothing is drawn */
}

static void announce(void *member, int32_t target) {
    const dcme_model *model = ((member_state *)member)->clusters->model;
    dcme_prefetch(model->output + target * model->stride, model->stride);
}

/* v_j -= alpha_zj step for every item but the top ones, then a new centre. */
static void update_offline(member_state *me, int64_t z) {
    dcme_clusters *clusters = me->clusters;
    const dcme_model *model = clusters->model;
    dcme_cluster *cluster = &clusters->clusters[z];
    dcme_pending *pending = &me->pending[z];
    real *rows[DCME_ROWS], weights[DCME_ROWS];
    if (!dcme_cluster_take(cluster))
        return; /* another thread is at it: try again with the next instance */
    for (int64_t j = 0; j < model->items; j += DCME_ROWS) {
        int64_t n = dcme_output_rows(model, j, rows);
        for (int64_t i = 0; i < n; i++)
            weights[i] = cluster->is_top[j + i] ? 0 : -cluster->alpha[j + i];
        model->kernels->push(rows, weights, pending->step, n, model->stride);
    }
    memset(me->mean, 0, (size_t)model->stride * sizeof *me->mean);
    model->kernels->axpy(me->mean, 1 / (real)pending->count, pending->h, model->stride);
    dcme_cluster_move(clusters, z, me->mean, me->scratch);
    dcme_cluster_release(cluster);
    dcme_pending_clear(pending, model);
}

static void step(void *member, const dcme_instance *instance, dcme_loss *loss) {
    member_state *me = member;
    dcme_clusters *clusters = me->clusters;
    const dcme_model *model = clusters->model;
    const dcme_kernels *kernels = model->kernels;
    int64_t stride = model->stride, z = dcme_clusters_decode(clusters, instance->h, me->scores);
    const dcme_cluster *cluster = &clusters->clusters[z];
    real *target = model->output + instance->target * stride, *u = clusters->u_rows[z], follow = 0;

    if (dcme_loss_wanted(loss)) { /* -Q_t of (8) */
        real score;
        kernels->dots(&score, instance->h, &target, 1, stride);
        dcme_loss_add(loss, (double)(me->scores[z] - score - clusters->prior[instance->target]));
    }
    memcpy(instance->gradient, target, (size_t)stride * sizeof *target);
    kernels->axpy(instance->gradient, -1, u, stride);
    kernels->axpy(target, instance->rate, instance->h, stride);
    for (int64_t q = 0; q < clusters->top_items; q++) {
        int32_t j = cluster->top[q];
        real alpha = cluster->alpha[j];
        kernels->axpy(model->output + j * stride, -instance->rate * alpha, instance->h, stride);
        follow += alpha * ((j == instance->target) - alpha);
    }
    if (clusters->top_items > 0)
        kernels->axpy(u, instance->rate * follow, instance->h, stride);
    dcme_pending_add(&me->pending[z], model, instance->h);
    model->kernels->axpy(me->pending[z].step, instance->rate, instance->h, model->stride);
    if ((double)me->pending[z].count >= clusters->threshold)
        update_offline(me, z);
}

static void shared_state_of(void *shared, dcme_state *state) { dcme_clusters_state(shared, state); }

static void member_state_of(void *member, dcme_state *state) {
    member_state *me = member;
    dcme_pending_state(me->pending, me->clusters->count, me->clusters->model->stride, state);
}

static void centre_of(const void *shared, int64_t k, real *alpha) {
    dcme_clusters_centre(shared, k, alpha);
}

const dcme_objective dcme_objective_dcme_paper = {
    "dcme", open_shared,     close_shared,    join,      leave, begin, announce,
    step,   shared_state_of, member_state_of, centre_of,
};
