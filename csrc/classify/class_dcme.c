/* Dual-clustering maximum entropy with a bound that is exact for the most probable classes.
 *
 * In the paper, one center alpha_z approximates a document's dual distribution mu in (5). Here,
 * each cluster of similar classes has its own center over its classes. Head: the target's cluster
 * and the Q clusters with the greatest bounds are scored class by class. Tail: each other cluster
 * contributes one summand, its bound; within it, mu is proportional to the center. Maximizing (5)
 * over these mu gives, in closed form, log Z >= log(sum of exp(s_j) over the head + sum of exp(u_k
 * . x + H_k) over the tail), where the maximizers p_j and p_k are proportional to the summands.
 *
 * The gap is the amount by which the classes of a tail cluster exceed its bound, for example
 * because one of them has a high score. Without a correction the gap grows, because nothing lowers
 * the score of such a class. So S of the T tail clusters, called d, are drawn and scored, and (T /
 * S) (sum of exp(s_j) over d's classes - exp(u_d . x + H_d)) >= 0 is added to the sum: an unbiased
 * correction, which is small where the bound is tight. Every document moves all C classes, along
 * the gradient of s_i minus that logarithm:
 *
 *     head              w_j += rate (1[j = i] - p_j) x
 *     tail              w_j -= rate p_k alpha_kj x, stored as one column owed_k per cluster
 *     drawn clusters    also w_j -= rate (T / S) (p_j - p_d alpha_dj) x
 *
 * u_k and owed_k are updated at the same time, so that all values include the last document.
 * Offline, the clusters take turns to get a new center, each of them once per I C documents (I is
 * the option center_interval). If all clusters are in the head, this is the exact softmax.
 *
 * A cluster of 16 classes is one cache line of a row of W, which is read and written line by line.
 * The caller numbers the classes so that similar classes are adjacent.
 *
 * Cluster k consists of columns k width .. (k + 1) width - 1 of W and a center alpha_k over them,
 * so that its bound on its classes' share of the partition function,
 *     log(sum of exp(s_j) over its classes) >= u_k . x + H(alpha_k),    u_k = W alpha_k,
 * takes one column, and all bounds take one product with K columns. The update of a cluster's
 * classes by a document's share p_k, w_j -= rate p_k alpha_kj x, takes one more column: owed_k +=
 * rate p_k x. Products with the updated weights are then u_k . x - |alpha_k|^2 owed_k . x and s_j
 * - alpha_kj owed_k . x. owed_k is applied to W when the center changes.
 *
 * Legend: C classes, F features with the bias, K clusters, alpha center, H entropy.
 */
#include "classify/class_objective.h"
#include "common/random.h"
#include "common/top_k.h"
#include "objectives/dual_center.h"

#include <math.h>

typedef struct {
    const dcme_problem *problem;
    int64_t count;     /* K */
    int64_t width;     /* classes per cluster, a multiple of DCME_PAD; the last may have fewer */
    int64_t stride;    /* dcme_stride(K) */
    int64_t features;  /* F */
    real *table;       /* (F, 2 stride) u and owed of each feature side by side */
    real *alpha;       /* (stride of W) all centers, each in the columns of its classes */
    real *entropy;     /* (stride) H(alpha_k) */
    real *square;      /* (stride) |alpha_k|^2 */
    real *weight;      /* (stride) sum of rate p_k over the updates in owed_k */
    _Atomic int *busy; /* (K) whether a thread is doing the offline update */
} class_bounds;

enum { ROWS = 64 }; /* number of rows per kernel call */

/* Columns of cluster k in W, with and without padding. */
static int64_t columns_of(const class_bounds *clusters, int64_t k) {
    return dcme_min(clusters->width, clusters->problem->model->stride - k * clusters->width);
}

static int64_t classes_of(const class_bounds *clusters, int64_t k) {
    return dcme_min(clusters->width, clusters->problem->model->classes - k * clusters->width);
}

/* After a center changed, store its entropy, and compute its square and its u. */
static void update_moments(class_bounds *clusters, int64_t k, real entropy) {
    real *alpha = clusters->alpha + k * clusters->width;
    double square = 0;
    for (int64_t j = 0; j < classes_of(clusters, k); j++)
        square += alpha[j] * (double)alpha[j];
    clusters->entropy[k] = entropy;
    clusters->square[k] = (real)square;
    dcme_project(clusters->problem->model, alpha, k * clusters->width, columns_of(clusters, k),
                 clusters->table + k, 2 * clusters->stride);
}

static void start_cluster(class_bounds *clusters, int64_t k) {
    const int64_t *counts = clusters->problem->counts + k * clusters->width;
    real *alpha = clusters->alpha + k * clusters->width;
    int64_t classes = classes_of(clusters, k);
    double total = 0;
    for (int64_t j = 0; j < classes; j++)
        total += counts[j];
    for (int64_t j = 0; j < classes; j++)
        alpha[j] = (real)(counts[j] / total);
    atomic_init(&clusters->busy[k], 0);
    update_moments(clusters, k, dcme_entropy(alpha, classes));
}

/* Create at most --clusters clusters; the initial center of each is given by the frequencies of its
 * classes. */
static void open_clusters(class_bounds *c, dcme_arena *arena, const dcme_problem *problem) {
    int64_t stride = problem->model->stride, lines = stride / DCME_PAD;
    int64_t most = problem->options->class_clusters, each = (lines + most - 1) / most;
    c->problem = problem;
    c->width = each * DCME_PAD;
    c->count = (lines + each - 1) / each;
    c->stride = dcme_stride(c->count);
    c->features = problem->model->features + 1;
    DCME_TAKE_SAVED(arena, c->table, c->features * 2 * c->stride, 0);
    DCME_TAKE_SAVED(arena, c->alpha, stride, 0);
    DCME_TAKE_SAVED(arena, c->entropy, c->stride, 0);
    DCME_TAKE_SAVED(arena, c->square, c->stride, 0);
    DCME_TAKE_SAVED(arena, c->weight, c->stride, 0);
    DCME_TAKE(arena, c->busy, c->count);
    for (int64_t k = 0; arena->status == DCME_OK && k < c->count; k++)
        start_cluster(c, k);
}

/* Compute products (2 stride) = table . x for instance d, then bounds (stride), which are -INFINITY
 * in the padding. */
static void bounds_of(const class_bounds *clusters, dcme_batch *batch, int64_t d, real *products,
                      real *bounds) {
    int64_t stride = clusters->stride;
    DCME_CLEAR(products, 2 * stride);
    dcme_batch_multiply(batch, d, clusters->table, 2 * stride, 0, 2 * stride, products);
    for (int64_t k = 0; k < clusters->count; k++)
        bounds[k] = products[k] - clusters->square[k] * products[stride + k] + clusters->entropy[k];
    for (int64_t k = clusters->count; k < stride; k++)
        bounds[k] = -INFINITY;
}

/* W -= owed_k alpha_k; then scores = W' times the mean of the x in owed_k. */
static void fold_cluster(class_bounds *clusters, int64_t k, real *scores) {
    const dcme_linear *model = clusters->problem->model;
    int64_t columns = columns_of(clusters, k);
    real *alpha = clusters->alpha + k * clusters->width, *rows[ROWS], steps[ROWS];
    real share = -1 / clusters->weight[k];
    clusters->weight[k] = 0;
    DCME_CLEAR(scores, columns);
    for (int64_t f = 0; f < clusters->features;) {
        int64_t n = 0;
        for (; f < clusters->features && n < ROWS; f++) {
            real *owed = clusters->table + (2 * f + 1) * clusters->stride + k;
            if (*owed == 0)
                continue;
            rows[n] = model->weights + f * model->stride + k * clusters->width;
            steps[n++] = -*owed;
            *owed = 0;
        }
        dcme_rank1_update(model->kernels, rows, steps, alpha, n, columns);
        for (int64_t i = 0; i < n; i++)
            steps[i] *= share;
        model->kernels->weighted_sum(scores, rows, steps, n, columns);
    }
}

/* Apply the pending updates of cluster k to W, then set alpha_k = softmax(W' mean of x) over its
 * classes (14), with the mean of the pending x, and compute u_k, the entropy and the square.
 * `scratch` has room for `width` numbers. */
static void update_cluster(class_bounds *clusters, int64_t k, real *scratch) {
    if (!(clusters->weight[k] > 0) || atomic_exchange(&clusters->busy[k], 1))
        return; /* nothing is pending, or another thread holds the lock */
    fold_cluster(clusters, k, scratch);
    update_moments(clusters, k,
                   dcme_soften(clusters->problem->model->kernels,
                               clusters->alpha + k * clusters->width, scratch,
                               classes_of(clusters, k)));
    atomic_store(&clusters->busy[k], 0);
}

/* Apply the pending updates of all clusters to W after an epoch, without moving the centers. */
static void fold(void *shared) {
    class_bounds *clusters = shared; /* must come first in the memory that threads share */
    const dcme_linear *model = clusters->problem->model;
    for (int64_t f = 0; f < clusters->features; f++) {
        real *u = clusters->table + 2 * f * clusters->stride, *owed = u + clusters->stride;
        for (int64_t k = 0; k < clusters->count; k++) {
            int64_t column = k * clusters->width;
            dcme_axpy(model->kernels, model->weights + f * model->stride + column, -owed[k],
                      clusters->alpha + column, columns_of(clusters, k));
            u[k] -= owed[k] * clusters->square[k];
            owed[k] = 0;
        }
    }
    DCME_CLEAR(clusters->weight, clusters->stride);
}

/* ---- the objective ---- */

typedef struct {
    class_bounds clusters;
    int64_t top;           /* Q, at most K - 1 */
    int64_t draws;         /* S, at most the number of remaining classes */
    int64_t interval;      /* number of documents between two offline updates */
    _Atomic uint64_t turn; /* counter that selects the next cluster to update, modulo K */
} shared_state;

typedef struct {
    shared_state *shared;
    int64_t instances;
    int64_t scored;   /* clusters whose classes are scored: the head and the drawn ones */
    int32_t *head;    /* (top + 1 + draws) the target's cluster, top clusters, drawn clusters */
    int32_t *ordered; /* (top + 1 + draws) the same in ascending order */
    real *products, *moved; /* (2 stride) each, like a row of the cluster table */
    real *bounds, *shares;  /* (stride) */
    real *scores, *steps;   /* ((top + 1 + draws) width) */
    real *rates;            /* (widest) */
    real *scratch;          /* (width) */
} thread_state;

static void open_shared(void *shared, dcme_arena *arena, const dcme_problem *problem) {
    const dcme_classify_options *options = problem->options;
    shared_state *s = shared;
    open_clusters(&s->clusters, arena, problem);
    int64_t others = s->clusters.count - 1;
    double round = options->center_interval * problem->model->classes;
    double interval = round / s->clusters.count;
    s->top = dcme_min(options->exact_clusters, others);
    s->draws = dcme_min(options->draws, others - s->top);
    s->interval = interval < 1 ? 1 : interval > 1e15 ? 1e15 : interval;
    DCME_SAVE(arena, s->turn);
}

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    shared_state *s = me->shared = shared;
    int64_t stride = s->clusters.stride, width = s->clusters.width, scored = s->top + 1 + s->draws;
    DCME_TAKE(arena, me->head, scored);
    DCME_TAKE(arena, me->ordered, scored);
    DCME_TAKE(arena, me->products, 2 * stride);
    DCME_TAKE(arena, me->moved, 2 * stride);
    DCME_TAKE(arena, me->bounds, stride);
    DCME_TAKE(arena, me->shares, stride);
    DCME_TAKE(arena, me->scores, scored * width);
    DCME_TAKE(arena, me->steps, scored * width);
    DCME_TAKE(arena, me->rates, problem->widest);
    DCME_TAKE(arena, me->scratch, width);
    DCME_SAVE(arena, me->instances);
}

/* Insert a cluster into the first `count` of me->ordered, which are in ascending order. */
static void insert(thread_state *me, int64_t count, int32_t cluster) {
    for (; count > 0 && me->ordered[count - 1] > cluster; count--)
        me->ordered[count] = me->ordered[count - 1];
    me->ordered[count] = cluster;
}

/* Draw clusters from the tail, each at most once. */
static void draw(thread_state *me, uint64_t *stream) {
    int64_t clusters = me->shared->clusters.count, first = me->shared->top + 1;
    for (int64_t i = 0; i < first; i++)
        insert(me, i, me->head[i]);
    for (me->scored = first; me->scored < first + me->shared->draws; me->scored++) {
        int64_t k = dcme_below(dcme_random(stream), clusters - me->scored);
        for (int64_t i = 0; i < me->scored && me->ordered[i] <= k; i++)
            k++; /* count only clusters that are not scored yet */
        me->head[me->scored] = (int32_t)k;
        insert(me, me->scored, (int32_t)k);
    }
}

/* Find the target's cluster and the Q others with the greatest bounds, and remove their bounds;
 * then draw clusters from the rest, and keep their bounds. */
static void choose(thread_state *me, dcme_batch *batch, int64_t d) {
    const class_bounds *g = &me->shared->clusters;
    me->head[0] = (int32_t)(batch->targets[d] / g->width);
    me->bounds[me->head[0]] = -INFINITY;
    dcme_top_k(me->head + 1, me->shared->top, me->bounds, g->count);
    for (int64_t i = 1; i <= me->shared->top; i++)
        me->bounds[me->head[i]] = -INFINITY;
    draw(me, &batch->stream);
    for (int64_t i = 0; i < me->scored; i++) {
        const real *lines = batch->model->weights + me->head[i] * g->width;
        for (int64_t r = batch->starts[d]; r < batch->starts[d + 1]; r++)
            __builtin_prefetch(lines + batch->features[r] * batch->model->stride, 1);
    }
}

/* Score the classes of these clusters, with -INFINITY in the padding. */
static void score(thread_state *me, dcme_batch *batch, int64_t d) {
    const class_bounds *g = &me->shared->clusters;
    const dcme_linear *model = batch->model;
    DCME_CLEAR(me->scores, me->scored * g->width);
    for (int64_t i = 0; i < me->scored; i++) {
        int64_t k = me->head[i], column = k * g->width, classes = classes_of(g, k);
        real *scores = me->scores + i * g->width, owed = me->products[g->stride + k];
        dcme_batch_multiply(batch, d, model->weights, model->stride, column, columns_of(g, k),
                            scores);
        for (int64_t j = 0; j < classes; j++)
            scores[j] -= owed * g->alpha[column + j];
        for (int64_t j = classes; j < g->width; j++)
            scores[j] = -INFINITY;
    }
}

/* If the classes of a drawn cluster sum to more than its bound, turn their summands into the
 * correction described at the top of this file, otherwise into 0; return the change of the sum. */
static double correct(thread_state *me) {
    const class_bounds *g = &me->shared->clusters;
    int64_t first = me->shared->top + 1;
    real factor = (real)(g->count - first) / (real)(me->shared->draws > 0 ? me->shared->draws : 1);
    double change = 0;
    for (int64_t i = first; i < me->scored; i++) {
        const real *alpha = g->alpha + me->head[i] * g->width, bound = me->shares[me->head[i]];
        real *steps = me->steps + i * g->width;
        double sum = 0;
        for (int64_t j = 0; j < g->width; j++)
            sum += steps[j];
        /* the sum may be less while another thread updates the center */
        real factor_here = sum > bound ? factor : 0;
        change += factor_here * (sum - bound) - sum;
        for (int64_t j = 0; j < columns_of(g, me->head[i]); j++)
            steps[j] = factor_here * (steps[j] - bound * alpha[j]);
    }
    return change;
}

/* Compute `steps` = 1[j = i] - p_j for the head and `shares` = p_k for the tail; return -Q_t of
 * (8). */
static double to_errors(thread_state *me, const dcme_batch *batch, int64_t d) {
    const class_bounds *g = &me->shared->clusters;
    const dcme_kernels *kernels = batch->model->kernels;
    int64_t count = me->scored * g->width, target = batch->targets[d] % g->width;
    real largest = -INFINITY;
    for (int64_t j = 0; j < count; j++)
        largest = me->scores[j] > largest ? me->scores[j] : largest;
    for (int64_t k = 0; k < g->count; k++)
        largest = me->bounds[k] > largest ? me->bounds[k] : largest;
    dcme_exponentials(kernels, me->steps, me->scores, largest, count);
    dcme_exponentials(kernels, me->shares, me->bounds, largest, g->stride);
    double total = dcme_total(me->steps, count) + dcme_total(me->shares, g->stride);
    total += correct(me);
    real scale = (real)(1 / total);
    dcme_scale(me->steps, -scale, me->steps, count);
    me->steps[target] += 1;
    dcme_scale(me->shares, scale, me->shares, g->stride);
    return largest + log(total) - me->scores[target];
}

static void update(thread_state *me, dcme_batch *batch, int64_t d, real rate) {
    class_bounds *g = &me->shared->clusters;
    const dcme_linear *model = batch->model;
    int64_t begin = batch->starts[d], n = batch->starts[d + 1] - begin;
    dcme_scale(me->rates, rate, batch->values + begin, n);
    for (int64_t k = 0; k < g->count; k++) {
        me->moved[k] = 0;
        me->moved[g->stride + k] = me->shares[k];
        g->weight[k] += rate * me->shares[k];
    }
    for (int64_t i = 0; i < me->scored; i++) {
        int64_t k = me->head[i], columns = columns_of(g, k);
        real *steps = me->steps + i * g->width, *alpha = g->alpha + k * g->width;
        dcme_dots(model->kernels, &me->moved[k], steps, &alpha, 1, columns);
        dcme_batch_rows(batch, d, model->weights, model->stride, k * g->width, batch->rows);
        dcme_rank1_update(model->kernels, batch->rows, me->rates, steps, n, columns);
    }
    dcme_batch_rows(batch, d, g->table, 2 * g->stride, 0, batch->rows);
    dcme_rank1_update(model->kernels, batch->rows, me->rates, me->moved, n, 2 * g->stride);
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    shared_state *s = me->shared;
    for (int64_t d = 0; d < batch->count; d++) {
        bounds_of(&s->clusters, batch, d, me->products, me->bounds);
        choose(me, batch, d);
        score(me, batch, d);
        dcme_loss_add(loss, batch->weights[d] * to_errors(me, batch, d));
        update(me, batch, d, rate * batch->weights[d]);
        if (++me->instances % s->interval == 0)
            update_cluster(&s->clusters, atomic_fetch_add(&s->turn, 1) % s->clusters.count,
                           me->scratch);
    }
}

/* Scale the owed sums after all weights except the biases were multiplied by `factor`. */
static void shrink(const dcme_problem *problem, void *shared, real factor) {
    const class_bounds *g = &((shared_state *)shared)->clusters;
    (void)problem;
    dcme_scale(g->table, factor, g->table, (g->features - 1) * 2 * g->stride);
}

const dcme_class_objective dcme_class_dcme = {
    .open = open_shared,
    .shared_size = sizeof(shared_state),
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .step = step,
    .fold = fold,
    .shrink = shrink,
};
