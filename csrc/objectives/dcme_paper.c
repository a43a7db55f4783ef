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
 * where the mean weighs h by its rate, which hardly changes meanwhile: one sum does for both.
 *
 * Several threads gather the moves of top items and of u_z: as late.h does, but the top items of a
 * cluster all move by its sum of rate h, so that there is one row to add to.
 *
 * Nothing holds the rows back in directions that no cluster mean has, so this form diverges at
 * rates above some thousandths; dcme.c is the form to use.
 */
#include "objectives/clusters.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    dcme_clusters clusters;
    int32_t threads;
} shared_state;

/* Instances of a cluster whose moves of top items a thread makes together. */
enum { GATHERED = 8 };

/* Those moves, of one thread and one cluster. */
typedef struct {
    int64_t count; /* instances so far */
    int32_t *top;  /* (Q) top items when the first came */
    real *alpha;   /* (Q) and their shares */
    real *step;    /* (stride) sum of rate h */
    real *u_step;  /* (stride) what u_k moves by */
} gathered;

typedef struct {
    dcme_clusters *clusters;
    dcme_pending *pending; /* (K) */
    gathered *gathered;    /* (K), or NULL for a single thread, which moves top items at once */
    real **rows;           /* (Q + 1) that move by an instance's h, */
    real *weights;         /* (Q + 1) times these */
    real *scores;          /* (K) */
    dcme_workshop workshop;
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

static void close_gathered(gathered *all, int64_t clusters) {
    for (int64_t k = 0; all && k < clusters; k++) {
        free(all[k].top);
        free(all[k].alpha);
        free(all[k].step);
    }
    free(all);
}

static dcme_status open_gathered(gathered **all, const dcme_clusters *clusters) {
    int64_t stride = clusters->model->stride;
    gathered *g = *all = dcme_allocate_zeros(clusters->count, sizeof *g);
    for (int64_t k = 0; g && k < clusters->count; k++) {
        g[k].top = dcme_allocate_zeros(clusters->top_items, sizeof *g[k].top);
        g[k].alpha = dcme_allocate_zeros(clusters->top_items, sizeof *g[k].alpha);
        g[k].step = dcme_allocate_zeros(2 * stride, sizeof *g[k].step);
        if (!g[k].top || !g[k].alpha || !g[k].step)
            return DCME_NO_MEMORY;
        g[k].u_step = g[k].step + stride;
    }
    return g ? DCME_OK : DCME_NO_MEMORY;
}

static void leave(void *member) {
    member_state *me = member;
    if (!me)
        return;
    dcme_pending_close(me->pending, me->clusters->count);
    close_gathered(me->gathered, me->clusters->count);
    free(me->rows);
    free(me->weights);
    free(me->scores);
    dcme_workshop_close(&me->workshop);
    free(me);
}

static dcme_status open_member(member_state *me, shared_state *s) {
    const dcme_clusters *c = me->clusters = &s->clusters;
    me->rows = dcme_allocate(c->top_items + 1, sizeof *me->rows);
    me->weights = dcme_allocate(c->top_items + 1, sizeof *me->weights);
    me->scores = dcme_allocate(c->count, sizeof *me->scores);
    if (!me->rows || !me->weights || !me->scores ||
        dcme_workshop_open(&me->workshop, c->model) != DCME_OK)
        return DCME_NO_MEMORY;
    if (s->threads > 1 && c->top_items > 0 && open_gathered(&me->gathered, c) != DCME_OK)
        return DCME_NO_MEMORY;
    return dcme_pending_open(&me->pending, c->count, c->model->stride);
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

static void update_offline(member_state *me, int64_t z) {
    dcme_clusters *clusters = me->clusters;
    dcme_cluster *cluster = &clusters->clusters[z];
    dcme_pending *pending = &me->pending[z];
    if (!(pending->weight > 0) || !dcme_cluster_take(cluster))
        return; /* nothing is owed, or another thread is at it: try again with the next instance */
    dcme_cluster_move(clusters, z, pending, pending->h, &me->workshop);
    dcme_cluster_release(cluster);
    dcme_pending_clear(pending, clusters->model);
}

/* Make the moves that were gathered for cluster z. */
static void make_moves(member_state *me, int64_t z) {
    gathered *g = &me->gathered[z];
    const dcme_model *model = me->clusters->model;
    for (int64_t q = 0; q < me->clusters->top_items; q++) {
        me->rows[q] = model->output + g->top[q] * model->stride;
        me->weights[q] = -g->alpha[q];
    }
    model->kernels->push(me->rows, me->weights, g->step, me->clusters->top_items, model->stride);
    model->kernels->axpy(me->clusters->u_rows[z], 1, g->u_step, model->stride);
    memset(g->step, 0, (size_t)(2 * model->stride) * sizeof *g->step);
    g->count = 0;
}

/* What is gathered is for the top items of cluster z as they are now. */
static void begin_moves(member_state *me, int64_t z) {
    gathered *g = &me->gathered[z];
    const dcme_cluster *cluster = &me->clusters->clusters[z];
    int64_t top_items = me->clusters->top_items;
    size_t size = (size_t)top_items * sizeof *g->top;
    if (g->count > 0 && memcmp(g->top, cluster->top, size) != 0)
        make_moves(me, z);
    if (g->count++ > 0)
        return;
    memcpy(g->top, cluster->top, size);
    for (int64_t q = 0; q < top_items; q++)
        g->alpha[q] = cluster->alpha[g->top[q]];
}

/* (17b) for the top items, and u_z with them, or what gathers these moves. */
static void move_tops(member_state *me, int64_t z, const dcme_instance *instance) {
    const dcme_clusters *clusters = me->clusters;
    const dcme_cluster *cluster = &clusters->clusters[z];
    gathered *g = me->gathered ? &me->gathered[z] : NULL;
    int64_t n = 0;
    real follow = 0;
    if (g)
        begin_moves(me, z);
    for (int64_t q = 0; q < clusters->top_items; q++) {
        int32_t top = cluster->top[q];
        real alpha = cluster->alpha[top];
        follow += alpha * ((top == instance->target) - alpha);
        if (!g) {
            me->rows[n] = clusters->model->output + top * clusters->model->stride;
            me->weights[n++] = -instance->rate * alpha;
        }
    }
    if (g) {
        me->rows[n] = g->step;
        me->weights[n++] = instance->rate;
    }
    me->rows[n] = g ? g->u_step : clusters->u_rows[z];
    me->weights[n++] = instance->rate * follow;
    clusters->model->kernels->push(me->rows, me->weights, instance->h, n, clusters->model->stride);
    if (g && g->count >= GATHERED)
        make_moves(me, z);
}

static void step(void *member, const dcme_instance *instance, dcme_loss *loss) {
    member_state *me = member;
    dcme_clusters *clusters = me->clusters;
    const dcme_model *model = clusters->model;
    const dcme_kernels *kernels = model->kernels;
    int64_t stride = model->stride, z = dcme_clusters_decode(clusters, instance->h, me->scores);
    real *target = model->output + instance->target * stride, one = 1;

    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY)) { /* -Q_t of (8) */
        real score;
        kernels->dots(&score, instance->h, &target, 1, stride);
        dcme_loss_add(loss, (double)(me->scores[z] - score - clusters->prior[instance->target]));
    }
    kernels->update(instance->gradient, instance->h, &target, &one, instance->rate, 1, stride);
    kernels->axpy(instance->gradient, -1, clusters->u_rows[z], stride);
    if (clusters->top_items > 0)
        move_tops(me, z, instance);
    dcme_pending_add(&me->pending[z], model, instance->h, instance->rate);
    if ((double)me->pending[z].count >= clusters->threshold)
        update_offline(me, z);
}

static void shared_state_of(void *shared, dcme_state *state) {
    dcme_clusters_state(&((shared_state *)shared)->clusters, state);
}

static void member_state_of(void *member, dcme_state *state) {
    member_state *me = member;
    const dcme_clusters *c = me->clusters;
    dcme_pending_state(me->pending, c->count, c->model->stride, state);
    for (int64_t k = 0; me->gathered && k < c->count; k++) {
        gathered *g = &me->gathered[k];
        dcme_state_add(state, &g->count, 1, sizeof g->count);
        dcme_state_add(state, g->top, c->top_items, sizeof *g->top);
        dcme_state_add(state, g->alpha, c->top_items, sizeof *g->alpha);
        dcme_state_add(state, g->step, 2 * c->model->stride, sizeof *g->step); /* and u_step */
    }
}

static void centre_of(const void *shared, int64_t k, real *alpha) {
    dcme_clusters_centre(&((const shared_state *)shared)->clusters, k, alpha);
}

const dcme_objective dcme_objective_dcme_paper = {
    "dcme", open_shared,     close_shared,    join,      leave, begin, announce, step,
    NULL,   shared_state_of, member_state_of, centre_of,
};
