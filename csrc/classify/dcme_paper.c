/* Dual-clustering maximum entropy to the letter: Algorithm 1 of Wang, Wang & Zhai (AAAI 2017).
 *
 * Online, for document x and target i:
 *     z = argmax_k u_k . x + H_k                                                 (9, 10)
 *     w_i += rate x                                                              (16a)
 *     w_j -= rate alpha_zj x for the top Q classes j of z, and u_z moves along   (16b)
 * Offline, once z has seen beta C instances:
 *     w_j -= alpha_zj (sum of rate x) for all other classes j                    (16b)
 *     alpha_z = softmax(W' mean of x), then u_z, H_z, top Q; start anew          (14)
 */
#include "classify/centres.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    dcme_centres *centres;
    dcme_sums *sums; /* (K) */
    real *values;    /* (stride of u) */
    real *weights;   /* (stride of W) */
    real *scores;    /* (stride of W) */
} member_state;

static void close_shared(void *shared) {
    dcme_centres_close(shared);
    free(shared);
}

static dcme_status open_shared(void **shared, const dcme_problem *problem, dcme_error *error) {
    dcme_centres *centres = dcme_allocate_zeros(1, sizeof *centres);
    if (!centres || dcme_centres_open(centres, problem) != DCME_OK) {
        if (centres)
            close_shared(centres);
        return dcme_clusters_want(error, problem);
    }
    *shared = centres;
    return DCME_OK;
}

static void leave(void *member) {
    member_state *me = member;
    if (!me)
        return;
    dcme_sums_close(me->sums, me->centres->count);
    free(me->values), free(me->weights), free(me->scores), free(me);
}

static dcme_status join(void **member, void *shared, dcme_error *error) {
    dcme_centres *centres = shared;
    const dcme_linear *model = centres->problem->model;
    member_state *me = dcme_allocate_zeros(1, sizeof *me);
    dcme_status status = DCME_NO_MEMORY;
    if (me) {
        me->centres = centres;
        me->values = dcme_allocate(centres->stride, sizeof *me->values);
        me->weights = dcme_allocate_zeros(model->stride, sizeof *me->weights);
        me->scores = dcme_allocate(model->stride, sizeof *me->scores);
        status = dcme_sums_open(&me->sums, centres->count, centres->features);
    }
    if (status != DCME_OK || !me->values || !me->weights || !me->scores) {
        leave(me);
        return dcme_clusters_want(error, centres->problem);
    }
    *member = me;
    return DCME_OK;
}

static void begin(void *member, uint64_t stream) {
    (void)member, (void)stream; /* nothing is drawn */
}

static void update_offline(member_state *me, int64_t z) {
    dcme_centres *centres = me->centres;
    dcme_cluster *cluster = &centres->clusters[z];
    int64_t classes = centres->problem->model->classes;
    if (!dcme_cluster_take(cluster))
        return; /* another thread is at it: try again with the next instance */
    for (int64_t j = 0; j < classes; j++)
        me->weights[j] = cluster->is_top[j] ? 0 : cluster->alpha[j];
    dcme_sums_apply(&me->sums[z], centres, me->weights, me->scores);
    dcme_centres_move(centres, z, me->scores);
    dcme_cluster_release(cluster);
    dcme_sums_clear(&me->sums[z], centres->features);
}

/* Term (a), and term (b) of the top classes; u_z moves with them. */
static void update_online(const member_state *me, dcme_batch *batch, int64_t d, int64_t z,
                          real rate) {
    const dcme_linear *model = batch->model;
    const dcme_cluster *cluster = &me->centres->clusters[z];
    const real *values = batch->values + batch->starts[d];
    int32_t target = batch->targets[d];
    int64_t n = dcme_batch_rows(batch, d, model->weights, model->stride, 0, batch->rows);
    real follow = cluster->alpha[target];
    for (int64_t q = 0; q < me->centres->top_items; q++)
        follow -= cluster->alpha[cluster->top[q]] * cluster->alpha[cluster->top[q]];
    for (int64_t r = 0; r < n; r++) {
        real step = rate * values[r], *row = batch->rows[r];
        row[target] += step;
        for (int64_t q = 0; q < me->centres->top_items; q++)
            row[cluster->top[q]] -= step * cluster->alpha[cluster->top[q]];
        me->centres->u[batch->features[batch->starts[d] + r] * me->centres->stride + z] +=
            step * follow;
    }
}

/* -Q_t of (8) */
static double loss_of(dcme_batch *batch, int64_t d, double bound) {
    const dcme_linear *model = batch->model;
    int64_t n =
        dcme_batch_rows(batch, d, model->weights, model->stride, batch->targets[d], batch->rows);
    for (int64_t r = 0; r < n; r++)
        bound -= (double)(batch->values[batch->starts[d] + r] * batch->rows[r][0]);
    return bound;
}

static void step(void *member, dcme_batch *batch, real rate, dcme_loss *loss) {
    member_state *me = member;
    dcme_centres *centres = me->centres;
    for (int64_t d = 0; d < batch->count; d++) {
        dcme_centres_bounds(centres, batch, d, me->values);
        int64_t z = dcme_cluster_best(centres->clusters, me->values, centres->count);
        if (dcme_loss_wanted(loss, DCME_CLASS_LOSS_EVERY))
            dcme_loss_add(loss, loss_of(batch, d, (double)me->values[z]));
        update_online(me, batch, d, z, rate);
        dcme_sums_add(&me->sums[z], batch, d, rate);
        if ((double)me->sums[z].count >= centres->threshold)
            update_offline(me, z);
    }
}

static void shrink(void *shared, real factor) {
    dcme_centres *centres = shared;
    int64_t count = (centres->features - 1) * centres->stride;
    for (int64_t i = 0; i < count; i++)
        centres->u[i] *= factor;
}

const dcme_class_objective dcme_class_dcme_paper = {
    "dcme", open_shared, close_shared, join, leave, begin, step, NULL, shrink,
};
