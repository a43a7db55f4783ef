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
 * where the mean weighs h by its rate, which hardly changes meanwhile: one sum does for both.
 *
 * Several threads defer the moves of top items and of u_z, see deferred_updates.h: the top items of
 * a cluster all move along its sum of rate h, so that there is one row to add to.
 *
 * Rows are not bounded in directions that no cluster mean has, so that training diverges at rates
 * above a few thousandths.
 */
#include "objectives/deferred_updates.h"

typedef struct {
    dcme_clusters clusters;
    int32_t threads;
} shared_state;

typedef struct {
    dcme_clusters *clusters;
    dcme_cluster_sums *sums; /* (K) */
    dcme_deferred *deferred; /* (K), or NULL for a single thread, which moves top items at once */
    real **rows;             /* (Q + 1) that move by an instance's h, */
    real *weights;           /* (Q + 1) times these */
    real *scores;            /* (K) */
    dcme_scratch scratch;
} thread_state;

static void open_shared(void *shared, dcme_arena *arena, const dcme_model *model,
                        const dcme_train_options *options) {
    shared_state *s = shared;
    dcme_clusters_open(&s->clusters, arena, model, options);
    s->threads = options->threads;
}

static void thread_open(void *thread, dcme_arena *arena, void *shared) {
    thread_state *me = thread;
    shared_state *s = shared;
    const dcme_clusters *c = me->clusters = &s->clusters;
    DCME_TAKE(arena, me->rows, c->top_items + 1);
    DCME_TAKE(arena, me->weights, c->top_items + 1);
    DCME_TAKE(arena, me->scores, c->count);
    me->sums = dcme_cluster_sums_open(arena, c);
    if (s->threads > 1 && c->top_items > 0)
        me->deferred = dcme_deferred_open(arena, c);
    dcme_scratch_open(&me->scratch, arena, c->model);
}

static void seed(void *thread, uint64_t stream) {
    (void)thread, (void)stream; /* nothing is drawn */
}

static void prefetch(void *thread, int32_t target) {
    const dcme_model *model = ((thread_state *)thread)->clusters->model;
    dcme_prefetch(model->output + target * model->stride, model->stride);
}

static void update_offline(thread_state *me, int64_t z) {
    dcme_clusters *clusters = me->clusters;
    dcme_cluster *cluster = &clusters->clusters[z];
    dcme_cluster_sums *sums = &me->sums[z];
    if (!(sums->weight > 0) || !dcme_cluster_take(cluster))
        return; /* nothing is pending, or another thread holds the lock: try again with the next
                   instance */
    dcme_cluster_move(clusters, z, sums, &me->scratch);
    dcme_cluster_release(cluster);
    dcme_cluster_sums_clear(sums, clusters->model);
}

/* (17b) for the top items, and u_z with them, at once or deferred. */
static void move_tops(thread_state *me, int64_t z, const dcme_instance *instance) {
    const dcme_clusters *clusters = me->clusters;
    const dcme_cluster *cluster = &clusters->clusters[z];
    const int32_t *tops = dcme_cluster_top(cluster);
    int64_t n = 0, stride = clusters->model->stride;
    real follow = 0, *u = clusters->u_rows[z];
    if (me->deferred)
        dcme_deferred_begin(&me->deferred[z], clusters, z, me->rows);
    for (int64_t q = 0; q < clusters->top_items; q++) {
        int32_t top = tops[q];
        real alpha = cluster->alpha[top];
        follow += alpha * ((top == instance->target) - alpha);
        if (!me->deferred) {
            me->rows[n] = clusters->model->output + top * stride;
            me->weights[n++] = -instance->rate * alpha;
        }
    }
    if (me->deferred) {
        me->rows[n] = me->deferred[z].sums;
        me->weights[n++] = instance->rate;
        u = me->deferred[z].sums + stride;
    }
    me->rows[n] = u;
    me->weights[n++] = instance->rate * follow;
    dcme_rank1_update(clusters->model->kernels, me->rows, me->weights, instance->h, n, stride);
    if (me->deferred)
        dcme_deferred_end(&me->deferred[z], clusters, z, me->rows);
}

static void step(void *thread, const dcme_instance *instance, dcme_loss *loss) {
    thread_state *me = thread;
    dcme_clusters *clusters = me->clusters;
    const dcme_model *model = clusters->model;
    const dcme_kernels *kernels = model->kernels;
    int64_t stride = model->stride, z = dcme_clusters_decode(clusters, instance->h, me->scores);
    real *target = model->output + instance->target * stride, one = 1;

    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY)) { /* -Q_t of (8) */
        real score;
        dcme_dots(kernels, &score, instance->h, &target, 1, stride);
        dcme_loss_add(loss, me->scores[z] - score - clusters->prior[instance->target]);
    }
    kernels->update(instance->gradient, instance->h, &target, &one, instance->rate, 1, stride);
    dcme_axpy(kernels, instance->gradient, -1, clusters->u_rows[z], stride);
    if (clusters->top_items > 0)
        move_tops(me, z, instance);
    dcme_cluster_sums_add(&me->sums[z], model, instance->h, instance->rate);
    if (me->sums[z].count >= clusters->threshold)
        update_offline(me, z);
}

const dcme_objective dcme_objective_dcme = {
    .open = open_shared,
    .shared_size = sizeof(shared_state),
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .seed = seed,
    .prefetch = prefetch,
    .step = step,
    .center = dcme_clusters_center,
};
