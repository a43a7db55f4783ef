/* Dual-clustering maximum entropy that cannot run away: DCME as the control variate of noise-
 * contrastive estimation with cluster noise, in three tiers.
 *
 * Scores are s_j = v_j . h - log N. An instance in cluster z is told from nu virtual draws from its
 * centre alpha_z. As in NCE, with sigma the logistic and b_zj = log(nu alpha_zj) + log N,
 *     the target's weight is               1 - sigma(v_i . h - b_zi)
 *     item j's weight in expectation is    -nu alpha_zj sigma(v_j . h - b_zj).
 * At the cluster's mean context the latter is the constant
 *     e_zj = nu alpha_zj sigma(v_j . mean - b_zj),
 * which is the alpha_zj of the paper's (17b) with a brake: an item that scores low is not pushed
 * further down. So every instance moves every item, as in the paper, but by e_zj:
 *     the top Q items   online, by the exact weight
 *     the head          each HEAD_INTERVAL instances of a cluster, e_zj refreshed in the same pass
 *     the tail          each beta N instances, with a new centre (15), top and head
 * and the direction of h is the weighted sum of the top rows and u_z = sum of e_zj v_j over the
 * others. What an instance differs from its cluster's mean is corrected without bias by S draws j
 * from alpha_z outside the top items, weight -(nu / S) mass (sigma(v_j . h - b_zj) - e_zj / (nu
 * alpha_zj)), whose mean is zero at the cluster's mean and whose size is bounded.
 *
 * Two brakes keep this stable at rates that are useful. An instance takes f e_zj for e_zj in all of
 * the above, with f = exp((u_z . h - u_z . mean) / sum of e_zj): what the weights are to first
 * order at its own scores, so that h cannot be pushed along a fixed u_z for long. And steps along a
 * long h are implicit. The correction keeps the expectation what it was.
 *
 * No draws and e = alpha would be the paper's DCME; one cluster of the unigram distribution and
 * e = 0 is NCE.
 */
#include "objectives/tiers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXTRA = 3 }; /* products that a step takes beside those of its items: u_head, u_tail, h */
enum { HEAD_INTERVAL = 150, IDLE_CHECK = 1024 };
static const real SCALE_MAX = 0.7f; /* log of the largest f */
static const double IDLE = 4;       /* a cluster unused for IDLE K beta N instances starts anew */

typedef struct {
    dcme_tiered tiered;
    int32_t draws; /* S */
    double idle;   /* instances after which an unused cluster starts anew */
} shared_state;

typedef struct {
    shared_state *shared;
    dcme_pending *pending;      /* (K) since the last offline update of a cluster */
    dcme_pending *head_pending; /* (K) since its head moved */
    int64_t *used;              /* (K) instance that used a cluster last */
    int64_t instances;
    uint64_t stream;
    real *scores;   /* (K) */
    real *values;   /* dcme_stride(1 + Q + S + EXTRA) */
    real *weights;  /* dcme_stride(1 + Q + S + EXTRA) */
    real **rows;    /* (1 + Q + S + EXTRA) */
    int32_t *words; /* (1 + Q + S) */
    dcme_workshop workshop;
} member_state;

static void close_shared(void *shared) {
    dcme_tiered_close(&((shared_state *)shared)->tiered);
    free(shared);
}

static dcme_status open_shared(void **shared, const dcme_model *model,
                               const dcme_train_options *options, dcme_error *error) {
    shared_state *s = dcme_allocate_zeros(1, sizeof *s);
    if (!s || dcme_tiered_open(&s->tiered, model, options) != DCME_OK) {
        if (s)
            close_shared(s);
        return dcme_clusters_fail(error, model, options);
    }
    s->draws = options->negative;
    s->idle = IDLE * (double)options->clusters * s->tiered.clusters.threshold;
    *shared = s;
    return DCME_OK;
}

static void leave(void *member) {
    member_state *me = member;
    if (!me)
        return;
    dcme_pending_close(me->pending, me->shared->tiered.clusters.count);
    dcme_pending_close(me->head_pending, me->shared->tiered.clusters.count);
    dcme_workshop_close(&me->workshop);
    free(me->used), free(me->scores), free(me->values), free(me->weights);
    free(me->rows), free(me->words);
    free(me);
}

static dcme_status open_member(member_state *me, shared_state *s) {
    const dcme_clusters *c = &s->tiered.clusters;
    int64_t rows = 1 + c->top_items + s->draws + EXTRA;
    me->shared = s;
    me->used = dcme_allocate_zeros(c->count, sizeof *me->used);
    me->scores = dcme_allocate(c->count, sizeof *me->scores);
    me->values = dcme_allocate_zeros(dcme_stride(rows), sizeof *me->values);
    me->weights = dcme_allocate_zeros(dcme_stride(rows), sizeof *me->weights);
    me->rows = dcme_allocate(rows, sizeof *me->rows);
    me->words = dcme_allocate(rows, sizeof *me->words);
    if (dcme_pending_open(&me->pending, c->count, c->model->stride) != DCME_OK ||
        dcme_pending_open(&me->head_pending, c->count, c->model->stride) != DCME_OK ||
        dcme_workshop_open(&me->workshop, c->model) != DCME_OK || !me->used || !me->scores ||
        !me->values || !me->weights || !me->rows || !me->words)
        return DCME_NO_MEMORY;
    return DCME_OK;
}

static dcme_status join(void **member, void *shared, dcme_error *error) {
    member_state *me = dcme_allocate_zeros(1, sizeof *me);
    if (!me || open_member(me, shared) != DCME_OK) {
        leave(me);
        return dcme_no_memory(error, dcme_member_bytes(&((shared_state *)shared)->tiered.clusters),
                              "a thread's cluster sums",
                              "lower --threads, --clusters or --max-vocab");
    }
    *member = me;
    return DCME_OK;
}

static void begin(void *member, uint64_t stream) { ((member_state *)member)->stream = stream; }

static void announce(void *member, int32_t target) {
    const dcme_model *model = ((member_state *)member)->shared->tiered.clusters.model;
    dcme_prefetch(model->output + target * model->stride, model->stride);
}

/* A new centre for a cluster that the caller has taken; nothing is owed any more. */
static void move_centre(member_state *me, int64_t k) {
    dcme_tiered *t = &me->shared->tiered;
    dcme_tiered_move(t, k, &me->pending[k], &me->workshop);
    dcme_pending_clear(&me->head_pending[k], t->clusters.model);
    me->used[k] = me->instances;
}

/* Offline work that has come due for cluster k. If another thread is at this cluster, it waits for
 * the next instance. */
static void update_offline(member_state *me, int64_t k) {
    dcme_tiered *t = &me->shared->tiered;
    int full = (double)me->pending[k].count >= t->clusters.threshold;
    if (!full && me->head_pending[k].count < HEAD_INTERVAL)
        return;
    if (!dcme_cluster_take(&t->clusters.clusters[k]))
        return;
    dcme_tiered_step_head(t, k, &me->head_pending[k], me->workshop.scratch);
    if (full) {
        dcme_tiered_step_tail(t, k, &me->pending[k]);
        move_centre(me, k);
    }
    dcme_cluster_release(&t->clusters.clusters[k]);
}

/* A cluster that nobody has used for long starts anew at the context at hand. */
static void revive(member_state *me, const dcme_instance *instance) {
    dcme_clusters *clusters = &me->shared->tiered.clusters;
    for (int64_t k = 0; k < clusters->count; k++) {
        if ((double)(me->instances - me->used[k]) <= me->shared->idle)
            continue;
        if (!dcme_cluster_take(&clusters->clusters[k]))
            continue;
        dcme_pending_clear(&me->pending[k], clusters->model);
        dcme_pending_add(&me->pending[k], clusters->model, instance->h, 0);
        move_centre(me, k);
        dcme_cluster_release(&clusters->clusters[k]);
        return;
    }
}

/* The rows that an instance moves online: its target, the top items, the draws. */
static int64_t gather(member_state *me, int64_t z, int32_t target) {
    const shared_state *shared = me->shared;
    const dcme_tiered *s = &shared->tiered;
    const dcme_model *model = s->clusters.model;
    const dcme_tiers *t = &s->tiers[z];
    int64_t count = 0;
    me->words[count++] = target;
    for (int64_t q = 0; q < s->clusters.top_items; q++)
        me->words[count++] = s->clusters.clusters[z].top[q];
    for (int32_t d = 0; t->mass > 0 && d < shared->draws; d++)
        me->words[count++] = dcme_alias_draw(t->noise, model->items, &me->stream);
    for (int64_t i = 0; i < count; i++) {
        me->rows[i] = model->output + me->words[i] * model->stride;
        dcme_prefetch(me->rows[i], model->stride);
    }
    return count;
}

/* How much of the cluster's expected weights an instance gets: the factor by which they change to
 * first order when the scores move, on average by (u . h - u . mean) / e, from those at the mean.
 * Without it nothing holds the contexts back between two draws: u is fixed until it is renewed. */
static real scale_of(const dcme_tiers *t, real along) {
    real e = t->e_head + t->e_tail, moved = e > 0 ? (along - t->u_mean) / e : 0;
    return (real)exp((double)(moved < SCALE_MAX ? moved : SCALE_MAX));
}

/* The weight of a draw's correction: each stands for nu / S of the virtual draws. */
static real draw_weight(const shared_state *shared, const dcme_tiers *t) {
    return shared->draws > 0 ? DCME_NU / (real)shared->draws * t->mass : 0;
}

/* The weights of the rows from their scores, as in the head of this file. */
static void weigh(member_state *me, int64_t z, int64_t count, real scale) {
    const shared_state *shared = me->shared;
    const dcme_tiered *s = &shared->tiered;
    const dcme_tiers *t = &s->tiers[z];
    real draw = draw_weight(shared, t);
    for (int64_t i = 0; i < count; i++)
        me->values[i] -= t->items[me->words[i]].bias;
    s->clusters.model->kernels->logistic(me->weights, me->values, count);
    me->weights[0] = 1 - me->weights[0];
    for (int64_t i = 1; i <= s->clusters.top_items; i++)
        me->weights[i] *= -DCME_NU * s->clusters.clusters[z].alpha[me->words[i]];
    for (int64_t i = 1 + s->clusters.top_items; i < count; i++)
        me->weights[i] = -draw * (me->weights[i] - scale * t->items[me->words[i]].sigma);
}

/* The rate of an implicit step (Kulis & Bartlett 2010): a score moves by rate weight |h|^2, and a
 * weight changes by up to `steepness` / 4 for each unit of score, so that an explicit step on a
 * long h would overshoot, and the next one more. */
static real implicit_rate(const shared_state *shared, const dcme_tiers *t, real rate, real square) {
    real steepness = draw_weight(shared, t);
    return rate / (1 + rate * (steepness > 1 ? steepness : 1) / 4 * square);
}

static void step(void *member, const dcme_instance *instance, dcme_loss *loss) {
    member_state *me = member;
    const dcme_tiered *s = &me->shared->tiered;
    const dcme_model *model = s->clusters.model;
    int64_t stride = model->stride, z = dcme_clusters_decode(&s->clusters, instance->h, me->scores);
    int64_t count = gather(me, z, instance->target);
    const dcme_tiers *t = &s->tiers[z];

    me->rows[count] = t->u_head;
    me->rows[count + 1] = t->u_tail;
    me->rows[count + 2] = (real *)instance->h;
    model->kernels->dots(me->values, instance->h, me->rows, count + EXTRA, stride);
    real scale = scale_of(t, me->values[count] + me->values[count + 1]);
    real rate = implicit_rate(me->shared, t, instance->rate, me->values[count + 2]);
    if (dcme_loss_wanted(loss)) /* -Q_t of (8) at the pure centre */
        dcme_loss_add(loss, (double)(me->scores[z] - me->values[0]));
    weigh(me, z, count, scale);
    memset(instance->gradient, 0, (size_t)stride * sizeof *instance->gradient);
    model->kernels->axpy(instance->gradient, -scale, t->u_head, stride);
    model->kernels->axpy(instance->gradient, -scale, t->u_tail, stride);
    model->kernels->update(instance->gradient, instance->h, me->rows, me->weights, rate, count,
                           stride);

    dcme_pending_add(&me->pending[z], model, instance->h, scale * instance->rate);
    dcme_pending_add(&me->head_pending[z], model, instance->h, scale * instance->rate);
    me->used[z] = ++me->instances;
    update_offline(me, z);
    if (me->instances % IDLE_CHECK == 0)
        revive(me, instance);
}

static void shared_state_of(void *shared, dcme_state *state) {
    dcme_tiered_state(&((shared_state *)shared)->tiered, state);
}

static void member_state_of(void *member, dcme_state *state) {
    member_state *me = member;
    const dcme_clusters *c = &me->shared->tiered.clusters;
    dcme_pending_state(me->pending, c->count, c->model->stride, state);
    dcme_pending_state(me->head_pending, c->count, c->model->stride, state);
    dcme_state_add(state, me->used, c->count, sizeof *me->used);
    dcme_state_add(state, &me->instances, 1, sizeof me->instances);
    dcme_state_add(state, &me->stream, 1, sizeof me->stream);
}

static void centre_of(const void *shared, int64_t k, real *alpha) {
    dcme_clusters_centre(&((const shared_state *)shared)->tiered.clusters, k, alpha);
}

const dcme_objective dcme_objective_dcme = {
    "dcme", open_shared,     close_shared,    join,      leave, begin, announce,
    step,   shared_state_of, member_state_of, centre_of,
};
