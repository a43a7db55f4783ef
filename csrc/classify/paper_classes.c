/* Dual-clustering maximum entropy, exactly Algorithm 1 of Wang, Wang & Zhai (AAAI 2017).
 *
 * Online, for document x and target i:
 *     z = argmax_k u_k . x + H_k                                                 (9, 10)
 *     w_i += rate x                                                              (16a)
 *     w_j -= rate alpha_zj x for the top Q classes j of z, and u_z moves along   (16b)
 * Offline, once z has seen beta C instances:
 *     w_j -= alpha_zj (sum of rate x) for all other classes j                    (16b)
 *     alpha_z = softmax(W' mean of x), then u_z, H_z, top Q; restart the sums          (14)
 *
 * This is the algorithm for word vectors (../objectives/word_clusters.h), with a sparse x in place
 * of the context vector h and the weights W by feature in place of the rows V: E_alpha_k[s] = u_k .
 * x with u_k = W alpha_k (10). All u_k are stored side by side by feature, so that one pass over a
 * document's features computes the K products, as one pass over W computes scores.
 *
 * Legend: C classes, F features with the bias, K clusters, Q top classes, alpha center, H entropy.
 */
#include "classify/class_objective.h"
#include "objectives/dual_center.h"

typedef struct {
    const dcme_problem *problem;
    int64_t count, top_items; /* K; Q, at most C */
    double threshold; /* beta C, the number of instances that triggers a cluster's offline update */
    int64_t features; /* F */
    int64_t stride;   /* stride of a row of u */
    real *u;          /* (F, stride) u_k in column k */
    real *entropy;    /* (stride) H(alpha_k) */
    dcme_center *clusters; /* (K) */
} paper_classes;

/* One thread's sums over the instances of a cluster since its last offline update. */
typedef struct {
    int64_t count;
    real weight; /* sum of the instances' weights v */
    real *sums;  /* (F, 2) sum of v x and sum of rate v x, side by side */
} paper_sums;

enum { ROWS = 64 }; /* number of rows per kernel call */

/* Compute H, the top classes and u of a new center. */
static void update_moments(paper_classes *paper, int64_t k, real entropy) {
    const dcme_linear *model = paper->problem->model;
    real *alpha = paper->clusters[k].alpha;
    paper->entropy[k] = entropy;
    dcme_center_choose_top(&paper->clusters[k], model->classes, paper->top_items);
    dcme_project(model, alpha, 0, model->stride, paper->u + k, paper->stride);
}

/* Initialize the centers with the unigram distribution plus random noise. */
static void open_shared(void *shared, dcme_arena *arena, const dcme_problem *problem) {
    paper_classes *p = shared;
    const dcme_classify_options *options = problem->options;
    int64_t classes = problem->model->classes, stride = problem->model->stride;
    p->problem = problem;
    p->count = options->clusters;
    p->top_items = dcme_min(options->top_items, classes);
    p->threshold = options->beta * classes;
    p->features = problem->model->features + 1;
    p->stride = dcme_stride(options->clusters);
    DCME_TAKE_SAVED(arena, p->u, p->features * p->stride, 0);
    DCME_TAKE_SAVED(arena, p->entropy, p->stride, 0);
    DCME_TAKE(arena, p->clusters, p->count);
    /* the padding of alpha is multiplied by the padding of W's rows, so both must be 0 */
    for (int64_t k = 0; p->clusters && k < p->count; k++)
        dcme_center_open(&p->clusters[k], arena, stride, classes, p->top_items);
    for (int64_t k = 0; arena->status == DCME_OK && k < p->count; k++) {
        dcme_center_start(&p->clusters[k], problem->counts, classes, options->seed, k);
        /* the weights may come from an earlier run */
        update_moments(p, k, dcme_entropy(p->clusters[k].alpha, classes));
    }
}

/* Allocate one thread's sums, one per cluster. */
static paper_sums *open_sums(dcme_arena *arena, const paper_classes *paper) {
    paper_sums *sums = dcme_take(arena, paper->count, sizeof *sums);
    for (int64_t k = 0; sums && k < paper->count; k++) {
        DCME_SAVE(arena, sums[k].count);
        DCME_SAVE(arena, sums[k].weight);
        DCME_TAKE_SAVED(arena, sums[k].sums, 2 * paper->features, 0);
    }
    return sums;
}

static void add_to_sums(paper_sums *sums, const dcme_batch *batch, int64_t i, real rate) {
    for (int64_t n = batch->starts[i]; n < batch->starts[i + 1]; n++) {
        real *place = sums->sums + 2 * (int64_t)batch->features[n];
        real weighted = batch->weights[i] * batch->values[n];
        place[0] += weighted;
        place[1] += rate * weighted;
    }
    sums->weight += batch->weights[i];
    sums->count++;
}

/* values (stride) = u_k . x + H_k for instance i (9). */
static void bounds_of(const paper_classes *paper, dcme_batch *batch, int64_t i, real *values) {
    DCME_COPY(values, paper->entropy, paper->stride);
    dcme_batch_multiply(batch, i, paper->u, paper->stride, 0, paper->stride, values);
}

/* W -= (sum of rate x) weights' for the features in the sums; then scores (C's stride) = W' mean of
 * x. */
static void apply_sums(const paper_sums *sums, const paper_classes *paper, const real *weights,
                       real *scores) {
    const dcme_linear *model = paper->problem->model;
    real *rows[ROWS], steps[ROWS], means[ROWS];
    DCME_CLEAR(scores, model->stride);
    for (int64_t f = 0; f < paper->features;) {
        int64_t n = 0;
        for (; f < paper->features && n < ROWS; f++) {
            if (sums->sums[2 * f] == 0 && sums->sums[2 * f + 1] == 0)
                continue;
            rows[n] = model->weights + f * model->stride;
            steps[n] = -sums->sums[2 * f + 1];
            means[n++] = sums->sums[2 * f] / sums->weight;
        }
        dcme_rank1_update(model->kernels, rows, steps, weights, n, model->stride);
        model->kernels->weighted_sum(scores, rows, means, n, model->stride);
    }
}

/* ---- the objective ---- */

typedef struct {
    paper_classes *paper;
    paper_sums *sums; /* (K) */
    real *values;     /* (stride of u) */
    real *weights;    /* (stride of W) */
    real *scores;     /* (stride of W) */
} thread_state;

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    me->paper = shared;
    DCME_TAKE(arena, me->values, me->paper->stride);
    DCME_TAKE(arena, me->weights, problem->model->stride);
    DCME_TAKE(arena, me->scores, problem->model->stride);
    me->sums = open_sums(arena, me->paper);
}

static void update_offline(thread_state *me, int64_t z) {
    paper_classes *paper = me->paper;
    dcme_center *cluster = &paper->clusters[z];
    int64_t classes = paper->problem->model->classes;
    if (!dcme_center_try_lock(cluster))
        return; /* another thread holds the lock: try again with the next instance */
    for (int64_t j = 0; j < classes; j++)
        me->weights[j] = cluster->is_top[j] ? 0 : cluster->alpha[j];
    apply_sums(&me->sums[z], paper, me->weights, me->scores);
    real *alpha = cluster->alpha; /* softmax(scores) (14) */
    update_moments(paper, z,
                   dcme_soften(paper->problem->model->kernels, alpha, me->scores, classes));
    dcme_center_unlock(cluster);
    DCME_CLEAR(me->sums[z].sums, 2 * paper->features);
    me->sums[z].count = 0, me->sums[z].weight = 0;
}

/* Apply (16a), and (16b) for the top classes, and move u_z along. */
static void update_online(const thread_state *me, dcme_batch *batch, int64_t d, int64_t z,
                          real rate) {
    const dcme_linear *model = batch->model;
    const dcme_center *cluster = &me->paper->clusters[z];
    const real *values = batch->values + batch->starts[d];
    const int32_t *top = dcme_center_top(cluster);
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
        bound -= batch->values[batch->starts[d] + r] * batch->rows[r][0];
    return bound;
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    paper_classes *paper = me->paper;
    for (int64_t d = 0; d < batch->count; d++) {
        bounds_of(paper, batch, d, me->values);
        int64_t z = dcme_center_best(paper->clusters, me->values, paper->count);
        double weight = batch->weights[d];
        if (dcme_loss_wanted(loss, DCME_CLASS_LOSS_EVERY))
            dcme_loss_add(loss, weight * loss_of(batch, d, me->values[z]));
        update_online(me, batch, d, z, rate * batch->weights[d]);
        add_to_sums(&me->sums[z], batch, d, rate);
        if (me->sums[z].count >= paper->threshold)
            update_offline(me, z);
    }
}

static void shrink(const dcme_problem *problem, void *shared, real factor) {
    paper_classes *paper = shared;
    (void)problem;
    dcme_scale(paper->u, factor, paper->u, (paper->features - 1) * paper->stride);
}

const dcme_class_objective dcme_class_dcme_paper = {
    .open = open_shared,
    .shared_size = sizeof(paper_classes),
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .step = step,
    .shrink = shrink,
};
