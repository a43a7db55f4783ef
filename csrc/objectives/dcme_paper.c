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
 * Several threads gather the moves of top items and of u_z, see late.h.
 *
 * Nothing holds the rows back in directions that no cluster mean has, so this form diverges at
 * rates above some thousandths; dcme.c is the form to use.
 */
#include "objectives/clusters.h"
#include "objectives/late.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    dcme_clusters clusters;
    int32_t threads;
} shared_state;

typedef struct {
    dcme_clusters *clusters;
    dcme_pending *pending; /* (K) */
    dcme_late *late;       /* (K), or NULL for a single thread, which moves top items at once */
    real *owed;            /* (K, stride) what u_k moves by with them */
    real *scores;          /* (K) */
    real *mean;            /* (stride) */
    real *scratch;         /* for dcme_cluster_move() */
} member_state;

static void close_shared(void *shared) {
    dcme_clusters_close(&((shared_state *)shared)->clusters);
    free(shared);
}

static dcme_status open_shared(void **shared, const dcme_model *model,
                               const dcme_train_options *options, dcme_error *error) {
    shared_state *s = dcme_allocate_zeros(1, sizeof *s);
    if (!s || dcme_clusters_open(&s->clusters, model, options) != DCME_OK) {
        if (s)
            close_shared(s);
        return dcme_clusters_fail(error, model, options);
    }
    s->threads = options->threads;
    *shared = s;
    return DCME_OK;
}

static void leave(void *member) {
    member_state *me = member;
    if (!me)
        return;
    dcme_pending_close(me->pending, me->clusters->count);
    dcme_late_close(me->late, me->clusters->count);
    free(me->owed);
    free(me->scores);
    free(me->mean);
    free(me->scratch);
    free(me);
}

static dcme_status open_member(member_state *me, shared_state *s) {
    const dcme_clusters *c = me->clusters = &s->clusters;
    int64_t stride = c->model->stride;
    me->scores = dcme_allocate(c->count, sizeof *me->scores);
    me->mean = dcme_allocate(stride, sizeof *me->mean);
    me->scratch = dcme_allocate(dcme_scratch_length(c->model), sizeof *me->scratch);
    if (s->threads > 1 && c->top_items > 0) {
        me->owed = dcme_allocate_zeros(c->count * stride, sizeof *me->owed);
        if (!me->owed || dcme_late_open(&me->late, c->count, c->top_items, stride) != DCME_OK)
            return DCME_NO_MEMORY;
    }
    if (!me->scores || !me->mean || !me->scratch)
        return DCME_NO_MEMORY;
    return dcme_pending_open(&me->pending, c->count, stride);
}

static dcme_status join(void **member, void *shared, dcme_error *error) {
    member_state *me = dcme_allocate_zeros(1, sizeof *me);
    if (!me || open_member(me, shared) != DCME_OK) {
        leave(me);
        return dcme_no_memory(error, dcme_member_bytes(&((shared_state *)shared)->clusters),
                              "a thread's cluster sums",
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

/* (17b) for the top items, and u_z with them. Threads gather those moves, see late.h. */
static void move_tops(member_state *me, int64_t z, const dcme_instance *instance) {
    const dcme_clusters *clusters = me->clusters;
    const dcme_model *model = clusters->model;
    const dcme_cluster *cluster = &clusters->clusters[z];
    const int32_t *top = cluster->top;
    dcme_late *late = me->late ? &me->late[z] : NULL;
    int64_t stride = model->stride;
    real follow = 0;
    if (late) {
        dcme_late_begin(late, model, top, clusters->top_items);
        top = late->words;
    }
    for (int64_t q = 0; q < clusters->top_items; q++) {
        real alpha = cluster->alpha[top[q]];
        real *row = late ? late->moves + q * stride : model->output + top[q] * stride;
        model->kernels->axpy(row, -instance->rate * alpha, instance->h, stride);
        follow += alpha * ((top[q] == instance->target) - alpha);
    }
    real *u = late ? me->owed + z * stride : clusters->u_rows[z];
    model->kernels->axpy(u, instance->rate * follow, instance->h, stride);
    if (!late)
        return;
    dcme_late_end(late, model, clusters->top_items);
    if (late->count == 0) {
        model->kernels->axpy(clusters->u_rows[z], 1, u, stride);
        memset(u, 0, (size_t)stride * sizeof *u);
    }
}

static void step(void *member, const dcme_instance *instance, dcme_loss *loss) {
    member_state *me = member;
    dcme_clusters *clusters = me->clusters;
    const dcme_model *model = clusters->model;
    const dcme_kernels *kernels = model->kernels;
    int64_t stride = model->stride, z = dcme_clusters_decode(clusters, instance->h, me->scores);
    real *target = model->output + instance->target * stride;

    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY)) { /* -Q_t of (8) */
        real score;
        kernels->dots(&score, instance->h, &target, 1, stride);
        dcme_loss_add(loss, (double)(me->scores[z] - score - clusters->prior[instance->target]));
    }
    memcpy(instance->gradient, target, (size_t)stride * sizeof *target);
    kernels->axpy(instance->gradient, -1, clusters->u_rows[z], stride);
    kernels->axpy(target, instance->rate, instance->h, stride);
    if (clusters->top_items > 0)
        move_tops(me, z, instance);
    dcme_pending_add(&me->pending[z], model, instance->h);
    model->kernels->axpy(me->pending[z].step, instance->rate, instance->h, model->stride);
    if ((double)me->pending[z].count >= clusters->threshold)
        update_offline(me, z);
}

static void shared_state_of(void *shared, dcme_state *state) {
    dcme_clusters_state(&((shared_state *)shared)->clusters, state);
}

static void member_state_of(void *member, dcme_state *state) {
    member_state *me = member;
    const dcme_clusters *c = me->clusters;
    int64_t stride = c->model->stride;
    dcme_pending_state(me->pending, c->count, stride, state);
    dcme_late_state(me->late, c->count, c->top_items, stride, state);
    if (me->owed)
        dcme_state_add(state, me->owed, c->count * stride, sizeof *me->owed);
}

static void centre_of(const void *shared, int64_t k, real *alpha) {
    dcme_clusters_centre(&((const shared_state *)shared)->clusters, k, alpha);
}

const dcme_objective dcme_objective_dcme_paper = {
    "dcme", open_shared,     close_shared,    join,      leave, begin, announce,
    step,   shared_state_of, member_state_of, centre_of,
};
