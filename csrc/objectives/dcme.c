/* Robust dual-clustering maximum entropy: noise-contrastive estimation whose noise distribution
 * comes from the dual cluster of the context. Derivation: docs/mathematics/dcme.md.
 *
 * Scores are s_j = v_j . h + prior_j, see noise.h. An instance in cluster z (9) is distinguished
 * from nu virtual draws from the cluster's proposal q_z = (1 - rho) alpha_z + rho unigram, in part
 * its center alpha_z (15). With sigma the logistic and b_zj = log(nu q_zj) - prior_j, weights are
 *
 *     of the target i           1 - sigma(v_i . h - b_zi)            (17a)
 *     of another j, expected    -nu q_zj sigma(v_j . h - b_zj)       (17b)
 *
 * where the paper has 1 and -alpha_zj, which are not bounded. If the model is correct,
 * s_j = log p_j, the expected gradient is zero; items with low scores get small updates. As in the
 * paper,
 *
 *     online     the top Q items are updated by their full weight;
 *     others     by S draws j from q_z outside the top items, of weight
 *                -(nu / S) mass sigma(v_j . h - b_zj) each: in expectation all items are updated;
 *     offline    a cluster that beta N instances have used gets a new center at their mean,
 *                with a new proposal, top items and biases,
 *
 * and h moves by the sum of weight times row (18). Samples equal to the target are dropped.
 * Steps along a long h are implicit, so that training does not diverge at useful rates.
 *
 * One cluster, no top items, nu = S and rho = 1 is NCE. Without the logistic it is Algorithm 1 with
 * its offline half (17b) done by draws instead of sums, which is unbiased at every context and not
 * only at the cluster's mean.
 *
 * Legend: alpha_z center (N), q_z proposal (N), beta N instances between two offline updates of a
 * cluster (option beta), N items, K clusters, Q top items, S draws, nu virtual draws.
 */
#include "objectives/deferred_updates.h"
#include "objectives/proposal.h"

/* Parameters that are not options:
 *
 *     rho            share of the unigram distribution in every q_z. The center, softmax at a mean
 *                    context, is close to the geometric mean of its contexts' distributions and has
 *                    near zero for words that only some of them expect; a proposal must
 *                    be positive for every word.
 *     nu / S         virtual draws for each draw
 *     IDLE           a cluster unused for IDLE K beta N instances is restarted
 *     IDLE_CHECK     instances of a thread from one search for such a cluster to the next
 *     CURVATURE      the greatest slope of sigma, for implicit steps
 */
static const real RHO = 0.9f, NU_PER_DRAW = 2, CURVATURE = 0.25f;
static const double IDLE = 4;
enum { IDLE_CHECK = 1024 };

enum { EXTRA = 1 }; /* products of a step besides the products with the rows: h with itself */

/* The draws for a cluster's next instance, made right after its last one: while other clusters have
 * their instances, the rows come from memory. So do the cells of the draws after those. */
typedef struct {
    int32_t is_full;   /* whether there are some */
    int32_t *words;    /* (S) */
    uint64_t *randoms; /* (S) */
} ready_draws;

typedef struct {
    dcme_proposals proposals;
    int32_t draws; /* S */
    int32_t threads;
    double idle; /* instances after which an unused cluster is restarted */
} shared_state;

typedef struct {
    const shared_state *shared;
    dcme_proposals *proposals;
    const dcme_clusters *clusters;
    const dcme_model *model;
    ready_draws *ready;      /* (K) */
    dcme_deferred *deferred; /* (K), or NULL for a single thread, which moves top items at once */
    dcme_cluster_sums *sums; /* (K) since the last offline update of a cluster */
    int64_t *used;           /* (K) instance that used a cluster last */
    int64_t instances;
    uint64_t stream;
    real *scores;         /* (K) */
    real *values;         /* dcme_stride(1 + Q + S + EXTRA) */
    real *weights;        /* dcme_stride(1 + Q + S + EXTRA) */
    real **rows;          /* (1 + Q + S + EXTRA) */
    real **deferred_rows; /* (Q) the sums of deferred updates of the last rows */
    int32_t *words;       /* (1 + Q + S) */
    dcme_scratch scratch;
    dcme_proposal_scratch own;
} thread_state;

static void open_shared(void *shared, dcme_arena *arena, const dcme_model *model,
                        const dcme_train_options *options) {
    shared_state *s = shared;
    real nu = NU_PER_DRAW * (real)(options->negative > 0 ? options->negative : 1);
    dcme_proposals_open(&s->proposals, arena, model, options, RHO, nu);
    s->draws = options->negative;
    s->threads = options->threads;
    s->idle = IDLE * options->clusters * s->proposals.clusters.threshold;
}

static void open_ready(thread_state *me, dcme_arena *arena, const dcme_clusters *c, int64_t draws) {
    DCME_TAKE(arena, me->ready, c->count);
    for (int64_t k = 0; me->ready && k < c->count; k++) {
        ready_draws *ready = &me->ready[k];
        DCME_SAVE(arena, ready->is_full);
        DCME_TAKE_SAVED(arena, ready->words, draws, c->model->items);
        DCME_TAKE_SAVED(arena, ready->randoms, draws, 0);
    }
}

static void thread_open(void *thread, dcme_arena *arena, void *shared) {
    thread_state *me = thread;
    shared_state *s = shared;
    const dcme_clusters *c = me->clusters = &s->proposals.clusters;
    me->shared = s;
    me->proposals = &s->proposals;
    me->model = c->model;
    int64_t rows = 1 + c->top_items + s->draws + EXTRA;
    DCME_TAKE(arena, me->scores, c->count);
    DCME_TAKE(arena, me->values, dcme_stride(rows));
    DCME_TAKE(arena, me->weights, dcme_stride(rows));
    DCME_TAKE(arena, me->rows, rows);
    DCME_TAKE(arena, me->deferred_rows, rows);
    DCME_TAKE(arena, me->words, rows);
    me->sums = dcme_cluster_sums_open(arena, c);
    if (s->threads > 1)
        me->deferred = dcme_deferred_open(arena, c, 0);
    open_ready(me, arena, c, s->draws);
    dcme_scratch_open(&me->scratch, arena, c->model);
    dcme_proposal_scratch_open(&me->own, arena, c->model->items);
    DCME_TAKE_SAVED(arena, me->used, c->count, 0);
    DCME_SAVE(arena, me->instances);
    DCME_SAVE(arena, me->stream);
}

static void seed(void *thread, uint64_t stream) {
    thread_state *me = thread;
    me->stream = stream;
    for (int64_t k = 0; k < me->clusters->count; k++)
        me->ready[k].is_full = 0;
}

static void prefetch(void *thread, int32_t target) {
    const dcme_model *model = ((thread_state *)thread)->model;
    dcme_prefetch(model->output + target * model->stride, model->stride);
}

/* A cluster that enough instances have used gets a new center. If another thread is at this
 * cluster, that waits for the next instance. */
static void update_offline(thread_state *me, int64_t k) {
    dcme_cluster *cluster = &me->clusters->clusters[k];
    if (me->sums[k].count < me->clusters->threshold || !dcme_cluster_take(cluster))
        return;
    dcme_proposals_move(me->proposals, k, &me->sums[k], &me->scratch, &me->own);
    dcme_cluster_release(cluster);
}

/* An unused cluster is restarted at the current context. */
static void revive(thread_state *me, const dcme_instance *instance) {
    for (int64_t k = 0; k < me->clusters->count; k++) {
        dcme_cluster *cluster = &me->clusters->clusters[k];
        if (me->instances - me->used[k] <= me->shared->idle || !dcme_cluster_take(cluster))
            continue;
        dcme_cluster_sums_clear(&me->sums[k], me->model);
        dcme_cluster_sums_add(&me->sums[k], me->model, instance->h, 1);
        dcme_proposals_move(me->proposals, k, &me->sums[k], &me->scratch, &me->own);
        me->used[k] = me->instances;
        dcme_cluster_release(cluster);
        return;
    }
}

static void add_row(thread_state *me, int64_t place, int32_t word) {
    me->words[place] = word;
    me->rows[place] = me->model->output + word * me->model->stride;
}

/* Draw for the next instance of cluster z, and prefetch its rows. */
static void prepare(thread_state *me, int64_t z) {
    const dcme_model *model = me->model;
    const dcme_proposal *proposal = &me->proposals->proposals[z];
    const dcme_alias *cells = atomic_load_explicit(&proposal->cells, memory_order_acquire);
    ready_draws *ready = &me->ready[z];
    if (proposal->mass <= 0) {
        ready->is_full = 0;
        return;
    }
    for (int32_t d = 0; d < me->shared->draws; d++) {
        uint64_t random = ready->is_full ? ready->randoms[d] : dcme_random(&me->stream);
        int64_t cell = dcme_alias_cell(random, model->items);
        int32_t word = dcme_alias_pick(cells, cell, random);
        ready->words[d] = word;
        dcme_prefetch(model->output + word * model->stride, model->stride);
        __builtin_prefetch(&proposal->bias[word]);
        ready->randoms[d] = dcme_random(&me->stream);
        __builtin_prefetch(&cells[dcme_alias_cell(ready->randoms[d], model->items)]);
    }
    ready->is_full = 1;
}

/* The rows of the top items from place `count` on; the target is skipped. */
static int64_t gather_tops(thread_state *me, int64_t z, int32_t target, int64_t count) {
    const dcme_clusters *clusters = me->clusters;
    const int32_t *top = dcme_cluster_top(&clusters->clusters[z]);
    int64_t tops = 0;
    if (me->deferred) {
        dcme_deferred_begin(&me->deferred[z], clusters, z, me->deferred_rows);
        top = me->deferred[z].top;
    }
    for (int64_t q = 0; q < clusters->top_items; q++) {
        if (top[q] == target)
            continue;
        if (me->deferred)
            me->deferred_rows[tops] = me->deferred[z].sums + q * clusters->model->stride;
        add_row(me, count + tops++, top[q]);
    }
    return tops;
}

/* The rows that an instance moves: its target, the top items, the draws. `tops` is how many of them
 * are top items. Draws of the target are skipped. */
static int64_t gather(thread_state *me, int64_t z, int32_t target, int64_t *tops) {
    const ready_draws *ready = &me->ready[z];
    int64_t count = 0;
    add_row(me, count++, target);
    __builtin_prefetch(&me->proposals->proposals[z].bias[target]);
    if (!ready->is_full)
        prepare(me, z);
    for (int64_t d = 0; ready->is_full && d < me->shared->draws; d++)
        if (ready->words[d] != target)
            add_row(me, count++, ready->words[d]);
    *tops = gather_tops(me, z, target, count);
    prepare(me, z);
    return count + *tops;
}

/* The weight of a draw, which represents nu / S of the virtual draws. */
static real draw_weight(const thread_state *me, int64_t z) {
    const dcme_proposals *s = me->proposals;
    int32_t draws = me->shared->draws;
    return draws > 0 ? s->virtual_draws / (real)draws * s->proposals[z].mass : 0;
}

/* The weights of the rows from their scores, as in the head of this file. */
static void to_errors(thread_state *me, int64_t z, const dcme_instance *instance, int64_t count,
                      int64_t tops) {
    const dcme_proposals *s = me->proposals;
    const dcme_proposal *proposal = &s->proposals[z];
    real draw = draw_weight(me, z);
    for (int64_t i = 0; i < count; i++)
        me->values[i] -= proposal->bias[me->words[i]];
    me->model->kernels->residuals(me->weights, me->values, count);
    for (int64_t i = 1; i < count - tops; i++)
        me->weights[i] *= draw;
    for (int64_t i = count - tops; i < count; i++)
        me->weights[i] *= s->virtual_draws * dcme_proposal_of(s, z, me->words[i]);
}

/* The rate of an implicit step (Kulis & Bartlett 2010): a score moves by rate weight |h|^2, and a
 * weight changes by up to `steepness` / 4 for each unit of score, so that an explicit step on a
 * long h would overshoot, and the next one more. */
static real implicit_rate(const thread_state *me, int64_t z, real rate, real square) {
    real steepness = draw_weight(me, z);
    return rate / (1 + rate * (steepness > 1 ? steepness : 1) * CURVATURE * square);
}

/* Move h and the rows by their weights, the top items perhaps later. */
static void move(thread_state *me, int64_t z, const dcme_instance *instance, real rate,
                 int64_t count, int64_t tops) {
    const dcme_clusters *clusters = me->clusters;
    const dcme_kernels *kernels = clusters->model->kernels;
    int64_t size = clusters->model->size, first = me->deferred ? count - tops : count;
    kernels->update(instance->gradient, instance->h, me->rows, me->weights, rate, first, size);
    if (!me->deferred)
        return;
    kernels->weighted_sum(instance->gradient, me->rows + first, me->weights + first, tops, size);
    for (int64_t i = first; i < count; i++)
        me->weights[i] *= rate;
    dcme_rank1_update(kernels, me->deferred_rows, me->weights + first, instance->h, tops, size);
    dcme_deferred_end(&me->deferred[z], clusters, z, me->deferred_rows);
}

/* -Q_t of (8) at the pure center. */
static real surrogate_loss(const thread_state *me, int64_t z, const dcme_instance *instance) {
    return me->scores[z] - me->values[0] - me->clusters->prior[instance->target];
}

static void step(void *thread, const dcme_instance *instance, dcme_loss *loss) {
    thread_state *me = thread;
    const dcme_model *model = me->model;
    int64_t z = dcme_clusters_decode(me->clusters, instance->h, me->scores), tops;
    int64_t count = gather(me, z, instance->target, &tops);

    me->rows[count] = (real *)instance->h;
    dcme_dots(model->kernels, me->values, instance->h, me->rows, count + EXTRA, model->size);
    real rate = implicit_rate(me, z, instance->rate, me->values[count]);
    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY))
        dcme_loss_add(loss, surrogate_loss(me, z, instance));
    to_errors(me, z, instance, count, tops);
    move(me, z, instance, rate, count, tops);

    dcme_cluster_sums_add(&me->sums[z], model, instance->h, 1);
    me->used[z] = ++me->instances;
    update_offline(me, z);
    if (me->instances % IDLE_CHECK == 0)
        revive(me, instance);
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
