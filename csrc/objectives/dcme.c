/* Dual-clustering maximum entropy that cannot run away: noise-contrastive estimation whose noise
 * comes from the dual cluster of the context.
 *
 * Scores are s_j = v_j . h + prior_j, see prior.h. An instance in cluster z (9) is told from nu
 * virtual draws from the cluster's noise beta_z: part its centre alpha_z (15), part the unigram
 * distribution. With sigma the logistic and b_zj = log(nu beta_zj) - prior_j, weights are
 *
 *     of the target i           1 - sigma(v_i . h - b_zi)            (17a)
 *     of another j, expected    -nu beta_zj sigma(v_j . h - b_zj)    (17b)
 *
 * where the paper has 1 and -alpha_zj: the logistic is the brake that the paper's rule lacks. Where
 * the model is right, s_j = log p_j, the two add up to no motion; where an item scores low it is
 * not pushed further down. As in the paper,
 *
 *     online     the top Q items move by their whole weight;
 *     others     by S draws j from beta_z outside the top items, of weight
 *                -(nu / S) mass sigma(v_j . h - b_zj) each: in expectation all items move;
 *     offline    a cluster that beta N instances have used gets a new centre at their mean,
 *                with new noise, top items and biases,
 *
 * and h moves by the sum of weight times row (18). Draws of the target are left out, as everywhere.
 * Steps along a long h are implicit, so that useful rates do not end in infinities.
 *
 * One cluster, no top items, nu = S and the unigram distribution alone is NCE. Without the logistic
 * it is Algorithm 1 with its offline half (17b) done by draws instead of sums, which is unbiased at
 * every context and not only at the cluster's mean. (An earlier form did (17b) offline, by weights
 * at the mean, in a head of 2,000 items and a tail, with draws for what the instance differs by. It
 * was slower, and worse at the rates that were tried: see the README.)
 */
#include "objectives/cluster_noise.h"
#include "objectives/late.h"

#include <stdlib.h>

enum { IDLE_CHECK = 1024 };
enum { EXTRA = 1 }; /* products that a step takes beside those of its rows: h with itself */
static const double IDLE = 4; /* a cluster unused for IDLE K beta N instances starts anew */

/* The draws for a cluster's next instance, made right after its last one: while other clusters have
 * their instances, the rows come from memory. So do the cells of the draws after those. */
typedef struct {
    int64_t count;     /* S once there are some, else 0 */
    int32_t *words;    /* (S) */
    uint64_t *randoms; /* (S) */
} ready_draws;

typedef struct {
    dcme_noisy_clusters noisy;
    int32_t draws; /* S */
    int32_t threads;
    double idle; /* instances after which an unused cluster starts anew */
} shared_state;

typedef struct {
    shared_state *shared;
    ready_draws *ready;    /* (K) */
    dcme_late *late;       /* (K), or NULL for a single thread, which moves top items at once */
    dcme_pending *pending; /* (K) since the last offline update of a cluster */
    int64_t *used;         /* (K) instance that used a cluster last */
    int64_t instances;
    uint64_t stream;
    real *scores;   /* (K) */
    real *values;   /* dcme_stride(1 + Q + S + EXTRA) */
    real *weights;  /* dcme_stride(1 + Q + S + EXTRA) */
    real **rows;    /* (1 + Q + S + EXTRA) */
    real **moves;   /* (Q) where the moves of the last rows are gathered */
    int32_t *words; /* (1 + Q + S) */
    dcme_workshop workshop;
    double *shares; /* (N) of a new table to draw from */
} member_state;

static void close_shared(void *shared) {
    dcme_noisy_close(&((shared_state *)shared)->noisy);
    free(shared);
}

static dcme_status open_shared(void **shared, const dcme_model *model,
                               const dcme_train_options *options, dcme_error *error) {
    shared_state *s = dcme_allocate_zeros(1, sizeof *s);
    if (!s || dcme_noisy_open(&s->noisy, model, options) != DCME_OK) {
        if (s)
            close_shared(s);
        return dcme_clusters_fail(error, model, options);
    }
    s->draws = options->negative;
    s->threads = options->threads;
    s->idle = IDLE * (double)options->clusters * s->noisy.clusters.threshold;
    *shared = s;
    return DCME_OK;
}

static void leave(void *member) {
    member_state *me = member;
    if (!me)
        return;
    for (int64_t k = 0; me->ready && k < me->shared->noisy.clusters.count; k++) {
        free(me->ready[k].words);
        free(me->ready[k].randoms);
    }
    free(me->ready);
    dcme_late_close(me->late, me->shared->noisy.clusters.count);
    dcme_pending_close(me->pending, me->shared->noisy.clusters.count);
    dcme_workshop_close(&me->workshop);
    free(me->used), free(me->scores), free(me->values), free(me->weights);
    free(me->rows), free(me->moves), free(me->words), free(me->shares);
    free(me);
}

static dcme_status open_ready(member_state *me, int64_t clusters, int32_t draws) {
    me->ready = dcme_allocate_zeros(clusters, sizeof *me->ready);
    for (int64_t k = 0; me->ready && k < clusters; k++) {
        me->ready[k].words = dcme_allocate_zeros(draws, sizeof *me->ready[k].words);
        me->ready[k].randoms = dcme_allocate_zeros(draws, sizeof *me->ready[k].randoms);
        if (!me->ready[k].words || !me->ready[k].randoms)
            return DCME_NO_MEMORY;
    }
    return me->ready ? DCME_OK : DCME_NO_MEMORY;
}

static dcme_status open_member(member_state *me, shared_state *s) {
    const dcme_clusters *c = &s->noisy.clusters;
    int64_t rows = 1 + c->top_items + s->draws + EXTRA;
    me->shared = s;
    me->used = dcme_allocate_zeros(c->count, sizeof *me->used);
    me->scores = dcme_allocate(c->count, sizeof *me->scores);
    me->values = dcme_allocate_zeros(dcme_stride(rows), sizeof *me->values);
    me->weights = dcme_allocate_zeros(dcme_stride(rows), sizeof *me->weights);
    me->rows = dcme_allocate(rows, sizeof *me->rows);
    me->moves = dcme_allocate(rows, sizeof *me->moves);
    me->words = dcme_allocate(rows, sizeof *me->words);
    me->shares = dcme_allocate(c->model->items, sizeof *me->shares);
    if (s->threads > 1 &&
        dcme_late_open(&me->late, c->count, c->top_items, c->model->stride) != DCME_OK)
        return DCME_NO_MEMORY;
    if (open_ready(me, c->count, s->draws) != DCME_OK ||
        dcme_pending_open(&me->pending, c->count, c->model->stride) != DCME_OK ||
        dcme_workshop_open(&me->workshop, c->model) != DCME_OK || !me->used || !me->scores ||
        !me->values || !me->weights || !me->rows || !me->moves || !me->words || !me->shares)
        return DCME_NO_MEMORY;
    return DCME_OK;
}

static dcme_status join(void **member, void *shared, dcme_error *error) {
    member_state *me = dcme_allocate_zeros(1, sizeof *me);
    if (!me || open_member(me, shared) != DCME_OK) {
        leave(me);
        return dcme_no_memory(error, dcme_member_bytes(&((shared_state *)shared)->noisy.clusters),
                              "a thread's cluster sums",
                              "lower --threads, --clusters or --max-vocab");
    }
    *member = me;
    return DCME_OK;
}

static void begin(void *member, uint64_t stream) {
    member_state *me = member;
    me->stream = stream;
    for (int64_t k = 0; k < me->shared->noisy.clusters.count; k++)
        me->ready[k].count = 0;
}

static void announce(void *member, int32_t target) {
    const dcme_model *model = ((member_state *)member)->shared->noisy.clusters.model;
    dcme_prefetch(model->output + target * model->stride, model->stride);
}

/* A cluster that enough instances have used gets a new centre. If another thread is at this
 * cluster, that waits for the next instance. */
static void update_offline(member_state *me, int64_t k) {
    dcme_noisy_clusters *noisy = &me->shared->noisy;
    dcme_cluster *cluster = &noisy->clusters.clusters[k];
    if ((double)me->pending[k].count < noisy->clusters.threshold || !dcme_cluster_take(cluster))
        return;
    dcme_noisy_move(noisy, k, &me->pending[k], &me->workshop, me->shares);
    dcme_cluster_release(cluster);
}

/* A cluster that nobody has used for long starts anew at the context at hand. */
static void revive(member_state *me, const dcme_instance *instance) {
    dcme_noisy_clusters *noisy = &me->shared->noisy;
    const dcme_model *model = noisy->clusters.model;
    for (int64_t k = 0; k < noisy->clusters.count; k++) {
        if ((double)(me->instances - me->used[k]) <= me->shared->idle ||
            !dcme_cluster_take(&noisy->clusters.clusters[k]))
            continue;
        dcme_pending_clear(&me->pending[k], model);
        dcme_pending_add(&me->pending[k], model, instance->h, 1);
        dcme_noisy_move(noisy, k, &me->pending[k], &me->workshop, me->shares);
        me->used[k] = me->instances;
        dcme_cluster_release(&noisy->clusters.clusters[k]);
        return;
    }
}

static void add_row(member_state *me, int64_t place, int32_t word) {
    const dcme_model *model = me->shared->noisy.clusters.model;
    me->words[place] = word;
    me->rows[place] = model->output + word * model->stride;
}

/* Draw for the next instance of cluster z, and ask for what that will read. */
static void prepare(member_state *me, int64_t z) {
    const dcme_noisy_clusters *noisy = &me->shared->noisy;
    const dcme_model *model = noisy->clusters.model;
    const dcme_cluster_noise *noise = &noisy->noise[z];
    ready_draws *ready = &me->ready[z];
    if (noise->mass <= 0) {
        ready->count = 0;
        return;
    }
    for (int32_t d = 0; d < me->shared->draws; d++) {
        uint64_t random = ready->count ? ready->randoms[d] : dcme_random(&me->stream);
        int64_t cell = dcme_alias_cell(random, model->items);
        int32_t word = dcme_alias_pick(noise->cells, cell, random);
        ready->words[d] = word;
        dcme_prefetch(model->output + word * model->stride, model->stride);
        __builtin_prefetch(&noise->bias[word]);
        ready->randoms[d] = dcme_random(&me->stream);
        __builtin_prefetch(&noise->cells[dcme_alias_cell(ready->randoms[d], model->items)]);
    }
    ready->count = me->shared->draws;
}

/* The rows of the top items from place `count` on; those that are the target are left out. */
static int64_t gather_tops(member_state *me, int64_t z, int32_t target, int64_t count) {
    const dcme_clusters *clusters = &me->shared->noisy.clusters;
    const int32_t *top = clusters->clusters[z].top;
    int64_t tops = 0;
    if (me->late) {
        dcme_late_begin(&me->late[z], clusters->model, top, clusters->top_items);
        top = me->late[z].words;
    }
    for (int64_t q = 0; q < clusters->top_items; q++) {
        if (top[q] == target)
            continue;
        if (me->late)
            me->moves[tops] = me->late[z].moves + q * clusters->model->stride;
        add_row(me, count + tops++, top[q]);
    }
    return tops;
}

/* The rows that an instance moves: its target, the top items, the draws. `tops` is how many of them
 * are top items. Draws of the target are left out. */
static int64_t gather(member_state *me, int64_t z, int32_t target, int64_t *tops) {
    const shared_state *shared = me->shared;
    const ready_draws *ready = &me->ready[z];
    int64_t count = 0;
    add_row(me, count++, target);
    __builtin_prefetch(&shared->noisy.noise[z].bias[target]);
    if (!ready->count)
        prepare(me, z);
    for (int64_t d = 0; d < ready->count; d++)
        if (ready->words[d] != target)
            add_row(me, count++, ready->words[d]);
    *tops = gather_tops(me, z, target, count);
    prepare(me, z);
    return count + *tops;
}

/* The weight of a draw, which stands for nu / S of the virtual draws. */
static real draw_weight(const shared_state *shared, int64_t z) {
    const dcme_noisy_clusters *s = &shared->noisy;
    return shared->draws > 0 ? s->virtual_draws / (real)shared->draws * s->noise[z].mass : 0;
}

/* The weights of the rows from their scores, as in the head of this file. */
static void weigh(member_state *me, int64_t z, int64_t count, int64_t tops) {
    const dcme_noisy_clusters *s = &me->shared->noisy;
    const dcme_cluster_noise *noise = &s->noise[z];
    real draw = draw_weight(me->shared, z);
    for (int64_t i = 0; i < count; i++)
        me->values[i] -= noise->bias[me->words[i]];
    s->clusters.model->kernels->residuals(me->weights, me->values, count);
    for (int64_t i = 1; i < count - tops; i++)
        me->weights[i] *= draw;
    for (int64_t i = count - tops; i < count; i++)
        me->weights[i] *= s->virtual_draws * s->clusters.clusters[z].alpha[me->words[i]];
}

/* The rate of an implicit step (Kulis & Bartlett 2010): a score moves by rate weight |h|^2, and a
 * weight changes by up to `steepness` / 4 for each unit of score, so that an explicit step on a
 * long h would overshoot, and the next one more. */
static real implicit_rate(const shared_state *shared, int64_t z, real rate, real square) {
    real steepness = draw_weight(shared, z);
    return rate / (1 + rate * (steepness > 1 ? steepness : 1) / 4 * square);
}

/* Move h and the rows by their weights, the top items perhaps later. */
static void move(member_state *me, int64_t z, const dcme_instance *instance, real rate,
                 int64_t count, int64_t tops) {
    const dcme_clusters *clusters = &me->shared->noisy.clusters;
    const dcme_kernels *kernels = clusters->model->kernels;
    int64_t stride = clusters->model->stride, first = me->late ? count - tops : count;
    kernels->update(instance->gradient, instance->h, me->rows, me->weights, rate, first, stride);
    if (!me->late)
        return;
    kernels->combine(instance->gradient, me->rows + first, me->weights + first, tops, stride);
    for (int64_t i = first; i < count; i++)
        me->weights[i] *= rate;
    kernels->push(me->moves, me->weights + first, instance->h, tops, stride);
    dcme_late_end(&me->late[z], clusters->model, clusters->top_items);
}

static void step(void *member, const dcme_instance *instance, dcme_loss *loss) {
    member_state *me = member;
    const dcme_clusters *clusters = &me->shared->noisy.clusters;
    const dcme_model *model = clusters->model;
    int64_t z = dcme_clusters_decode(clusters, instance->h, me->scores), tops;
    int64_t count = gather(me, z, instance->target, &tops);

    me->rows[count] = (real *)instance->h;
    model->kernels->dots(me->values, instance->h, me->rows, count + EXTRA, model->stride);
    real rate = implicit_rate(me->shared, z, instance->rate, me->values[count]);
    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY)) /* -Q_t of (8) at the pure centre */
        dcme_loss_add(loss,
                      (double)(me->scores[z] - me->values[0] - clusters->prior[instance->target]));
    weigh(me, z, count, tops);
    move(me, z, instance, rate, count, tops);

    dcme_pending_add(&me->pending[z], model, instance->h, 1);
    me->used[z] = ++me->instances;
    update_offline(me, z);
    if (me->instances % IDLE_CHECK == 0)
        revive(me, instance);
}

static void shared_state_of(void *shared, dcme_state *state) {
    dcme_noisy_state(&((shared_state *)shared)->noisy, state);
}

static void member_state_of(void *member, dcme_state *state) {
    member_state *me = member;
    const dcme_clusters *c = &me->shared->noisy.clusters;
    dcme_pending_state(me->pending, c->count, c->model->stride, state);
    dcme_state_add(state, me->used, c->count, sizeof *me->used);
    dcme_state_add(state, &me->instances, 1, sizeof me->instances);
    dcme_state_add(state, &me->stream, 1, sizeof me->stream);
    dcme_late_state(me->late, c->count, c->top_items, c->model->stride, state);
    for (int64_t k = 0; k < c->count; k++) {
        ready_draws *ready = &me->ready[k];
        dcme_state_add(state, &ready->count, 1, sizeof ready->count);
        dcme_state_add(state, ready->words, me->shared->draws, sizeof *ready->words);
        dcme_state_add(state, ready->randoms, me->shared->draws, sizeof *ready->randoms);
    }
}

static void centre_of(const void *shared, int64_t k, real *alpha) {
    dcme_noisy_centre(&((const shared_state *)shared)->noisy, k, alpha);
}

const dcme_objective dcme_objective_dcme = {
    "dcme", open_shared,     close_shared,    join,      leave, begin, announce, step,
    NULL,   shared_state_of, member_state_of, centre_of,
};
