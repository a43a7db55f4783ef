/* Dual-clustering maximum entropy, exactly Algorithm 1 of Wang, Wang & Zhai (AAAI 2017).
 *
 * Online, for document x and target i:
 *     z = argmax_k u_k . x + H_k                                                 (9, 10)
 *     w_i += rate x                                                              (16a)
 *     w_j -= rate alpha_zj x for the top Q classes j of z, and u_z moves along   (16b)
 * Offline, once z has seen beta C instances:
 *     w_j -= alpha_zj (sum of rate x) for all other classes j                    (16b)
 *     alpha_z = softmax(W' mean of x), then u_z, H_z, top Q; restart the sums          (14)
 */
#include "classify/paper_clusters.h"

typedef struct {
    dcme_paper_clusters *paper;
    dcme_paper_sums *sums; /* (K) */
    real *values;          /* (stride of u) */
    real *weights;         /* (stride of W) */
    real *scores;          /* (stride of W) */
} thread_state;

static void open_shared(void *shared, dcme_arena *arena, const dcme_problem *problem) {
    dcme_paper_clusters_open(shared, arena, problem);
}

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    me->paper = shared;
    DCME_TAKE(arena, me->values, me->paper->stride);
    DCME_TAKE(arena, me->weights, problem->model->stride);
    DCME_TAKE(arena, me->scores, problem->model->stride);
    me->sums = dcme_paper_sums_open(arena, me->paper);
}

static void update_offline(thread_state *me, int64_t z) {
    dcme_paper_clusters *paper = me->paper;
    dcme_cluster *cluster = &paper->clusters[z];
    int64_t classes = paper->problem->model->classes;
    if (!dcme_cluster_take(cluster))
        return; /* another thread is at it: try again with the next instance */
    for (int64_t j = 0; j < classes; j++)
        me->weights[j] = cluster->is_top[j] ? 0 : cluster->alpha[j];
    dcme_paper_sums_apply(&me->sums[z], paper, me->weights, me->scores);
    dcme_paper_clusters_move(paper, z, me->scores);
    dcme_cluster_release(cluster);
    dcme_paper_sums_clear(&me->sums[z], paper->features);
}

/* Term (a), and term (b) of the top classes; u_z moves with them. */
static void update_online(const thread_state *me, dcme_batch *batch, int64_t d, int64_t z,
                          real rate) {
    const dcme_linear *model = batch->model;
    const dcme_cluster *cluster = &me->paper->clusters[z];
    const real *values = batch->values + batch->starts[d];
    const int32_t *top = dcme_cluster_top(cluster);
    int32_t target = batch->targets[d];
    int64_t n = dcme_batch_rows(batch, d, model->weights, model->stride, 0, batch->rows);
    real follow = cluster->alpha[target];
    for (int64_t q = 0; q < me->paper->top_items; q++)
        follow -= cluster->alpha[top[q]] * cluster->alpha[top[q]];
    for (int64_t r = 0; r < n; r++) {
        real step = rate * values[r], *row = batch->rows[r];
        row[target] += step;
        for (int64_t q = 0; q < me->paper->top_items; q++)
            row[top[q]] -= step * cluster->alpha[top[q]];
        me->paper->u[batch->features[batch->starts[d] + r] * me->paper->stride + z] +=
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

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    dcme_paper_clusters *paper = me->paper;
    for (int64_t d = 0; d < batch->count; d++) {
        dcme_paper_clusters_bounds(paper, batch, d, me->values);
        int64_t z = dcme_cluster_best(paper->clusters, me->values, paper->count);
        double weight = (double)batch->weights[d];
        if (dcme_loss_wanted(loss, DCME_CLASS_LOSS_EVERY))
            dcme_loss_add(loss, weight * loss_of(batch, d, (double)me->values[z]));
        update_online(me, batch, d, z, rate * batch->weights[d]);
        dcme_paper_sums_add(&me->sums[z], batch, d, rate);
        if ((double)me->sums[z].count >= paper->threshold)
            update_offline(me, z);
    }
}

static void shrink(const dcme_problem *problem, void *shared, real factor) {
    (void)problem;
    dcme_paper_clusters *paper = shared;
    dcme_scale(paper->u, factor, paper->u, (paper->features - 1) * paper->stride);
}

const dcme_class_objective dcme_class_dcme_paper = {
    .open = open_shared,
    .shared_size = sizeof(dcme_paper_clusters),
    .whole = {"the clusters", "lower --clusters or --features"},
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .own = {"the clusters", "lower --clusters or --features"},
    .step = step,
    .shrink = shrink,
};
