/* Dual-clustering maximum entropy, exactly Algorithm 1 of Wang, Wang & Zhai (AAAI 2017).
 *
 * Online, for context h and target i:
 *     z = argmax_k u_k . h + H_k                                                 (9, 11)
 *     the direction of h is v_i - u_z                                            (18)
 *     v_i += rate h                                                              (17a)
 *     v_j -= rate alpha_zj h for the top Q items j of z, and u_z moves along     (17b)
 * Offline, once z has seen beta N instances:
 *     v_j -= alpha_zj (sum of rate h) for all other items j                      (17b)
 *     alpha_z = softmax(V mean of h), then u_z, H_z, top Q; restart the sums           (15)
 * The mean weighs h by its rate, which hardly changes in between, so one sum serves both purposes.
 *
 * With several threads, updates of the top items and of u_z are deferred (deferred_updates.h): all
 * top items of a cluster move along its sum of rate h, so one row accumulates them.
 *
 * Rows are unbounded in directions orthogonal to all cluster means, so training diverges at rates
 * above a few thousandths.
 */
#include "objectives/dcme.h"

void dcme_paper_open(dcme_paper *me, dcme_arena *arena, dcme_clusters *clusters, int32_t threads) {
    me->clusters = clusters;
    DCME_TAKE(arena, me->rows, clusters->top_items + 1);
    DCME_TAKE(arena, me->weights, clusters->top_items + 1);
    DCME_TAKE(arena, me->scores, clusters->count);
    me->sums = dcme_cluster_sums_open(arena, clusters);
    if (threads > 1 && clusters->top_items > 0)
        me->deferred = dcme_deferred_open(arena, clusters);
    dcme_scratch_open(&me->scratch, arena, clusters->model);
}

static void update_offline(dcme_paper *me, int64_t z) {
    dcme_clusters *clusters = me->clusters;
    dcme_center *cluster = &clusters->clusters[z];
    dcme_cluster_sums *sums = &me->sums[z];
    if (!(sums->weight > 0) || !dcme_center_try_lock(cluster))
        return; /* nothing is pending, or another thread holds the lock: try again with the next
                   instance */
    dcme_cluster_move(clusters, z, sums, &me->scratch);
    dcme_center_unlock(cluster);
    dcme_cluster_sums_clear(sums, clusters->model);
}

/* Apply (17b) to the top items, and move u_z with them, either at once or deferred. */
static void move_tops(dcme_paper *me, int64_t z, int32_t target, real rate, const real *h) {
    const dcme_clusters *clusters = me->clusters;
    const dcme_center *cluster = &clusters->clusters[z];
    const int32_t *tops = dcme_center_top(cluster);
    int64_t n = 0, stride = clusters->model->stride;
    real follow = 0, *u = clusters->u_rows[z];
    if (me->deferred)
        dcme_deferred_begin(&me->deferred[z], clusters, z, me->rows);
    for (int64_t q = 0; q < clusters->top_items; q++) {
        int32_t top = tops[q];
        real alpha = cluster->alpha[top];
        follow += alpha * ((top == target) - alpha);
        if (!me->deferred) {
            me->rows[n] = clusters->model->output + top * stride;
            me->weights[n++] = -rate * alpha;
        }
    }
    if (me->deferred) {
        me->rows[n] = me->deferred[z].sums;
        me->weights[n++] = rate;
        u = me->deferred[z].sums + stride;
    }
    me->rows[n] = u;
    me->weights[n++] = rate * follow;
    dcme_rank1_update(clusters->model->kernels, me->rows, me->weights, h, n, stride);
    if (me->deferred)
        dcme_deferred_end(&me->deferred[z], clusters, z, me->rows);
}

void dcme_paper_step(dcme_paper *me, int32_t target, real rate, const real *h, real *gradient,
                     dcme_loss *loss) {
    dcme_clusters *clusters = me->clusters;
    const dcme_model *model = clusters->model;
    const dcme_kernels *kernels = model->kernels;
    int64_t stride = model->stride, z = dcme_clusters_decode(clusters, h, me->scores);
    real *row = model->output + target * stride, weight = 1;

    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY)) { /* -Q_t of (8) */
        real score;
        dcme_dots(kernels, &score, h, &row, 1, stride);
        dcme_loss_add(loss, me->scores[z] - score - clusters->prior[target]);
    }
    kernels->update(gradient, h, &row, &weight, &rate, 1, stride);
    dcme_axpy(kernels, gradient, -1, clusters->u_rows[z], stride);
    if (clusters->top_items > 0)
        move_tops(me, z, target, rate, h);
    dcme_cluster_sums_add(&me->sums[z], model, h, rate);
    if (me->sums[z].count >= clusters->threshold)
        update_offline(me, z);
}
