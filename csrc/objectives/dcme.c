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
 * No draws and e = alpha would be the paper's DCME; one cluster of the unigram distribution and
 * e = 0 is NCE.
 */
#include "objectives/clusters.h"
#include "objectives/select.h"
#include "train/alias.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EXTRA = 3 }; /* products that a step takes beside those of its items: u_head, u_tail, h */
enum { HEAD_ITEMS = 2000, HEAD_INTERVAL = 150, IDLE_CHECK = 1024 };
static const real NU = 20;        /* virtual draws; more make the weights closer to a softmax */
static const real UNIGRAM = 0.1f; /* share of the unigram distribution in every centre */
static const real STEP_MAX = 0.5; /* nats that an offline step may move a score at the mean */
static const real SCALE_MAX = 0.7f;
static const double IDLE = 4; /* a cluster unused for IDLE K beta N instances starts anew */

/* What an item is to a cluster. */
typedef struct {
    real bias;  /* b_zj */
    real sigma; /* sigma(v_j . mean - b_zj) */
} item;

typedef struct {
    item *items;       /* (N) */
    int32_t *head;     /* (heads) heaviest items, the top ones first */
    uint8_t *is_head;  /* (N) */
    dcme_alias *noise; /* (N) alpha_z outside the top items */
    real mass;         /* of alpha_z outside the top items */
    real *mean;        /* (stride) mean context when the centre was made */
    real *u_head;      /* (stride) sum of e_zj v_j over the head, without the top items */
    real *u_tail;      /* (stride) and over the tail */
    real e_head;       /* sum of e_zj over the head, without the top items */
    real e_tail;       /* and over the tail */
    real u_mean;       /* (u_head + u_tail) . mean */
} tiers;

typedef struct {
    dcme_clusters clusters;
    tiers *tiers;   /* (K) */
    real *unigram;  /* (N) */
    int64_t heads;  /* items in a head, the top ones included */
    int32_t draws;  /* S */
    real log_items; /* log N */
    double idle;    /* instances after which an unused cluster starts anew */
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
    double *noise;  /* (N) weights of a new alias table */
    real *scratch;  /* for dcme_cluster_move() and new sums u */
} member_state;

static void close_shared(void *shared) {
    shared_state *s = shared;
    for (int64_t k = 0; s->tiers && k < s->clusters.count; k++) {
        tiers *t = &s->tiers[k];
        free(t->items), free(t->head), free(t->is_head), free(t->noise), free(t->mean);
    }
    dcme_clusters_close(&s->clusters);
    free(s->tiers);
    free(s->unigram);
    free(s);
}

static dcme_status open_tiers(tiers *t, const shared_state *s) {
    const dcme_model *model = s->clusters.model;
    t->items = dcme_allocate(model->items, sizeof *t->items);
    t->head = dcme_allocate(s->heads, sizeof *t->head);
    t->is_head = dcme_allocate_zeros(model->items, 1);
    t->noise = dcme_allocate(model->items, sizeof *t->noise);
    t->mean = dcme_allocate_zeros(3 * model->stride, sizeof *t->mean);
    if (!t->items || !t->head || !t->is_head || !t->noise || !t->mean)
        return DCME_NO_MEMORY;
    t->u_head = t->mean + model->stride;
    t->u_tail = t->u_head + model->stride;
    for (int64_t i = 0; i < s->heads; i++)
        t->head[i] = (int32_t)i;
    return DCME_OK;
}

/* Put b, sigma and u of the items `list[0 .. count)`, or of j .. j + count without a list, in line
 * with the rows as they are; top items stay out of u. Returns the sum of their e. */
static real refresh(shared_state *s, int64_t k, const int32_t *list, int64_t j, int64_t count,
                    real *u) {
    const dcme_model *model = s->clusters.model;
    const dcme_cluster *cluster = &s->clusters.clusters[k];
    tiers *t = &s->tiers[k];
    real *rows[DCME_ROWS] = {NULL}, weights[DCME_ROWS] = {0}, sum = 0;
    for (int64_t i = 0; i < count; i++)
        rows[i] = model->output + (list ? list[i] : j + i) * model->stride;
    model->kernels->dots(weights, t->mean, rows, count, model->stride);
    for (int64_t i = 0; i < count; i++) {
        int64_t word = list ? list[i] : j + i;
        t->items[word].bias = s->log_items + (real)log((double)(NU * cluster->alpha[word]));
        weights[i] -= t->items[word].bias;
    }
    model->kernels->logistic(weights, weights, count);
    for (int64_t i = 0; i < count; i++) {
        int64_t word = list ? list[i] : j + i;
        t->items[word].sigma = weights[i];
        weights[i] *= NU * cluster->alpha[word];
        if (cluster->is_top[word] || (!list && t->is_head[word]))
            weights[i] = 0;
        sum += weights[i];
    }
    model->kernels->combine(u, rows, weights, count, model->stride);
    return sum;
}

static void refresh_head(shared_state *s, int64_t k, real *scratch) {
    tiers *t = &s->tiers[k];
    int64_t stride = s->clusters.model->stride;
    real *rows[2] = {t->u_head, t->u_tail}, along[2], sum = 0;
    memset(scratch, 0, (size_t)stride * sizeof *scratch);
    for (int64_t i = s->clusters.top_items; i < s->heads; i += DCME_ROWS)
        sum += refresh(s, k, t->head + i, 0, s->heads - i < DCME_ROWS ? s->heads - i : DCME_ROWS,
                       scratch);
    memcpy(t->u_head, scratch, (size_t)stride * sizeof *scratch);
    t->e_head = sum;
    s->clusters.model->kernels->dots(along, t->mean, rows, 2, stride);
    t->u_mean = along[0] + along[1];
}

/* Make the first of a head the top items: an item belongs to one tier, and mixing the centre with
 * the unigram distribution may have changed which are heaviest. */
static void settle_top(const dcme_clusters *clusters, int64_t k, const int32_t *head) {
    dcme_cluster *cluster = &clusters->clusters[k];
    for (int64_t q = 0; q < clusters->top_items; q++)
        cluster->is_top[cluster->top[q]] = 0;
    for (int64_t q = 0; q < clusters->top_items; q++) {
        cluster->top[q] = head[q];
        cluster->is_top[head[q]] = 1;
    }
}

/* All that follows from a new centre and a new mean. */
static dcme_status renew(shared_state *s, int64_t k, double *noise, real *scratch) {
    const dcme_model *model = s->clusters.model;
    const dcme_cluster *cluster = &s->clusters.clusters[k];
    tiers *t = &s->tiers[k];
    double mass = 0;
    real sum = 0;
    for (int64_t i = 0; i < s->heads; i++)
        t->is_head[t->head[i]] = 0;
    for (int64_t j = 0; j < model->items; j++)
        cluster->alpha[j] = (1 - UNIGRAM) * cluster->alpha[j] + UNIGRAM * s->unigram[j];
    dcme_select_heaviest(t->head, s->heads, cluster->alpha, model->items);
    for (int64_t i = 0; i < s->heads; i++)
        t->is_head[t->head[i]] = 1;
    settle_top(&s->clusters, k, t->head);
    for (int64_t j = 0; j < model->items; j++)
        mass += noise[j] = cluster->is_top[j] ? 0 : cluster->alpha[j];
    t->mass = (real)mass;
    memset(scratch, 0, (size_t)model->stride * sizeof *scratch);
    for (int64_t j = 0; j < model->items; j += DCME_ROWS)
        sum += refresh(s, k, NULL, j, model->items - j < DCME_ROWS ? model->items - j : DCME_ROWS,
                       scratch);
    memcpy(t->u_tail, scratch, (size_t)model->stride * sizeof *scratch);
    t->e_tail = sum;
    refresh_head(s, k, scratch);
    return mass > 0 ? dcme_alias_build(t->noise, noise, model->items) : DCME_OK;
}

static dcme_status open_parts(shared_state *s, const dcme_model *model,
                              const dcme_train_options *options) {
    double total = 0, *noise = dcme_allocate(model->items, sizeof *noise);
    real *scratch = dcme_allocate(dcme_scratch_length(model), sizeof *scratch);
    dcme_status status = dcme_clusters_open(&s->clusters, model, options);
    s->tiers = dcme_allocate_zeros(options->clusters, sizeof *s->tiers);
    s->unigram = dcme_allocate(model->items, sizeof *s->unigram);
    s->heads = model->items < HEAD_ITEMS ? model->items : HEAD_ITEMS;
    if (s->heads < s->clusters.top_items)
        s->heads = s->clusters.top_items;
    s->draws = options->negative;
    s->log_items = (real)log((double)model->items);
    s->idle = IDLE * (double)options->clusters * s->clusters.threshold;
    if (!s->tiers || !s->unigram || !noise || !scratch)
        status = DCME_NO_MEMORY;
    for (int64_t j = 0; status == DCME_OK && j < model->items; j++)
        total += (double)model->counts[j];
    for (int64_t j = 0; status == DCME_OK && j < model->items; j++)
        s->unigram[j] = (real)((double)model->counts[j] / total);
    for (int64_t k = 0; status == DCME_OK && k < options->clusters; k++) {
        status = open_tiers(&s->tiers[k], s);
        if (status == DCME_OK)
            status = renew(s, k, noise, scratch);
    }
    free(noise);
    free(scratch);
    return status;
}

static dcme_status open_shared(void **shared, const dcme_model *model,
                               const dcme_train_options *options, dcme_error *error) {
    shared_state *s = dcme_allocate_zeros(1, sizeof *s);
    if (!s || open_parts(s, model, options) != DCME_OK) {
        if (s)
            close_shared(s);
        return dcme_fail(error, DCME_NO_MEMORY, options->clusters,
                         "%d clusters of %lld words: lower --clusters or --max-vocab",
                         options->clusters, (long long)model->items);
    }
    *shared = s;
    return DCME_OK;
}

static void leave(void *member) {
    member_state *me = member;
    if (!me)
        return;
    dcme_pending_close(me->pending, me->shared->clusters.count);
    dcme_pending_close(me->head_pending, me->shared->clusters.count);
    free(me->used), free(me->scores), free(me->values), free(me->weights);
    free(me->rows), free(me->words), free(me->noise), free(me->scratch);
    free(me);
}

static dcme_status join(void **member, void *shared, dcme_error *error) {
    shared_state *s = shared;
    int64_t clusters = s->clusters.count, rows = 1 + s->clusters.top_items + s->draws + EXTRA;
    member_state *me = dcme_allocate_zeros(1, sizeof *me);
    dcme_status status = me ? DCME_OK : DCME_NO_MEMORY;
    if (me) {
        me->shared = s;
        me->used = dcme_allocate_zeros(clusters, sizeof *me->used);
        me->scores = dcme_allocate(clusters, sizeof *me->scores);
        me->values = dcme_allocate_zeros(dcme_stride(rows), sizeof *me->values);
        me->weights = dcme_allocate_zeros(dcme_stride(rows), sizeof *me->weights);
        me->rows = dcme_allocate(rows, sizeof *me->rows);
        me->words = dcme_allocate(rows, sizeof *me->words);
        me->noise = dcme_allocate(s->clusters.model->items, sizeof *me->noise);
        me->scratch = dcme_allocate(dcme_scratch_length(s->clusters.model), sizeof *me->scratch);
        if (dcme_pending_open(&me->pending, clusters, s->clusters.model->stride) != DCME_OK ||
            dcme_pending_open(&me->head_pending, clusters, s->clusters.model->stride) != DCME_OK ||
            !me->used || !me->scores || !me->values || !me->weights || !me->rows || !me->words ||
            !me->noise || !me->scratch)
            status = DCME_NO_MEMORY;
    }
    if (status != DCME_OK) {
        leave(me);
        return dcme_fail(error, status, clusters, "a thread's cluster sums");
    }
    *member = me;
    return DCME_OK;
}

static void begin(void *member, uint64_t stream) { ((member_state *)member)->stream = stream; }

static void announce(void *member, int32_t target) {
    const dcme_model *model = ((member_state *)member)->shared->clusters.model;
    dcme_prefetch(model->output + target * model->stride, model->stride);
}

/* Weight of an item in an offline step along `step`, so small that its score at the mean moves by
 * STEP_MAX at most: stale weights times many instances must not throw a row far. */
static real offline_weight(const shared_state *s, int64_t k, int64_t word, real along) {
    real e = NU * s->clusters.clusters[k].alpha[word] * s->tiers[k].items[word].sigma;
    real moved = along < 0 ? -along * e : along * e;
    return moved > STEP_MAX ? -e * STEP_MAX / moved : -e;
}

static real along_mean(const shared_state *s, int64_t k, real *step) {
    real along;
    s->clusters.model->kernels->dots(&along, s->tiers[k].mean, &step, 1, s->clusters.model->stride);
    return along;
}

/* The head's rows take what the instances since its last step owe them. */
static void step_head(member_state *me, int64_t k) {
    shared_state *s = me->shared;
    const dcme_model *model = s->clusters.model;
    dcme_pending *pending = &me->head_pending[k];
    real *rows[DCME_ROWS], weights[DCME_ROWS], along = along_mean(s, k, pending->step);
    for (int64_t i = s->clusters.top_items; i < s->heads; i += DCME_ROWS) {
        int64_t n = s->heads - i < DCME_ROWS ? s->heads - i : DCME_ROWS;
        for (int64_t r = 0; r < n; r++) {
            int32_t word = s->tiers[k].head[i + r];
            rows[r] = model->output + word * model->stride;
            weights[r] = offline_weight(s, k, word, along);
        }
        model->kernels->push(rows, weights, pending->step, n, model->stride);
    }
    dcme_pending_clear(pending, model);
    refresh_head(s, k, me->scratch);
}

static void step_tail(member_state *me, int64_t k) {
    shared_state *s = me->shared;
    const dcme_model *model = s->clusters.model;
    real *rows[DCME_ROWS], weights[DCME_ROWS], *step = me->pending[k].step;
    real along = along_mean(s, k, step);
    for (int64_t j = 0; j < model->items; j += DCME_ROWS) {
        int64_t n = dcme_output_rows(model, j, rows);
        for (int64_t r = 0; r < n; r++)
            weights[r] = s->tiers[k].is_head[j + r] ? 0 : offline_weight(s, k, j + r, along);
        model->kernels->push(rows, weights, step, n, model->stride);
    }
}

/* A new centre at the mean of the pending contexts; nothing is owed any more. */
static void move_centre(member_state *me, int64_t k) {
    shared_state *s = me->shared;
    const dcme_model *model = s->clusters.model;
    dcme_pending *pending = &me->pending[k];
    memset(s->tiers[k].mean, 0, (size_t)model->stride * sizeof(real));
    model->kernels->axpy(s->tiers[k].mean, 1 / (real)pending->count, pending->h, model->stride);
    dcme_cluster_move(&s->clusters, k, s->tiers[k].mean, me->scratch);
    renew(s, k, me->noise, me->scratch); /* its alias table stays the old one if memory is short */
    dcme_pending_clear(pending, model);
    dcme_pending_clear(&me->head_pending[k], model);
    me->used[k] = me->instances;
}

/* Offline work that has come due for cluster k. If another thread is at this cluster, it waits for
 * the next instance. */
static void update_offline(member_state *me, int64_t k) {
    shared_state *s = me->shared;
    dcme_cluster *cluster = &s->clusters.clusters[k];
    int full = (double)me->pending[k].count >= s->clusters.threshold;
    if (!full && me->head_pending[k].count < HEAD_INTERVAL)
        return;
    if (!dcme_cluster_take(cluster))
        return;
    step_head(me, k);
    if (full) {
        step_tail(me, k);
        move_centre(me, k);
    }
    dcme_cluster_release(cluster);
}

/* A cluster that nobody has used for long starts anew at the context at hand. */
static void revive(member_state *me, const dcme_instance *instance) {
    shared_state *s = me->shared;
    for (int64_t k = 0; k < s->clusters.count; k++) {
        if ((double)(me->instances - me->used[k]) <= s->idle)
            continue;
        if (!dcme_cluster_take(&s->clusters.clusters[k]))
            continue;
        dcme_pending_clear(&me->pending[k], s->clusters.model);
        dcme_pending_add(&me->pending[k], s->clusters.model, instance->h, 0);
        move_centre(me, k);
        dcme_cluster_release(&s->clusters.clusters[k]);
        return;
    }
}

/* The rows that an instance moves online: its target, the top items, the draws. */
static int64_t gather(member_state *me, int64_t z, int32_t target) {
    const shared_state *s = me->shared;
    const dcme_model *model = s->clusters.model;
    const tiers *t = &s->tiers[z];
    int64_t count = 0;
    me->words[count++] = target;
    for (int64_t q = 0; q < s->clusters.top_items; q++)
        me->words[count++] = s->clusters.clusters[z].top[q];
    for (int32_t d = 0; t->mass > 0 && d < s->draws; d++)
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
static real scale_of(const tiers *t, real along) {
    real e = t->e_head + t->e_tail, moved = e > 0 ? (along - t->u_mean) / e : 0;
    return (real)exp((double)(moved < SCALE_MAX ? moved : SCALE_MAX));
}

/* The weights of the rows from their scores, as in the head of this file. */
static void weigh(member_state *me, int64_t z, int64_t count, real scale) {
    const shared_state *s = me->shared;
    const tiers *t = &s->tiers[z];
    real draw = s->draws > 0 ? NU / (real)s->draws * t->mass : 0;
    for (int64_t i = 0; i < count; i++)
        me->values[i] -= t->items[me->words[i]].bias;
    s->clusters.model->kernels->logistic(me->weights, me->values, count);
    me->weights[0] = 1 - me->weights[0];
    for (int64_t i = 1; i <= s->clusters.top_items; i++)
        me->weights[i] *= -NU * s->clusters.clusters[z].alpha[me->words[i]];
    for (int64_t i = 1 + s->clusters.top_items; i < count; i++)
        me->weights[i] = -draw * (me->weights[i] - scale * t->items[me->words[i]].sigma);
}

/* The rate of an implicit step (Kulis & Bartlett 2010): a score moves by rate weight |h|^2, and a
 * weight changes by up to `steepness` / 4 for each unit of score, so that an explicit step on a
 * long h would overshoot, and the next one more. */
static real implicit_rate(const shared_state *s, int64_t z, real rate, real square) {
    real steepness = s->draws > 0 ? NU / (real)s->draws * s->tiers[z].mass : 0;
    return rate / (1 + rate * (steepness > 1 ? steepness : 1) / 4 * square);
}

static void step(void *member, const dcme_instance *instance, dcme_loss *loss) {
    member_state *me = member;
    shared_state *s = me->shared;
    const dcme_model *model = s->clusters.model;
    int64_t stride = model->stride, z = dcme_clusters_decode(&s->clusters, instance->h, me->scores);
    int64_t count = gather(me, z, instance->target);
    const tiers *t = &s->tiers[z];

    me->rows[count] = t->u_head;
    me->rows[count + 1] = t->u_tail;
    me->rows[count + 2] = (real *)instance->h;
    model->kernels->dots(me->values, instance->h, me->rows, count + EXTRA, stride);
    real scale = scale_of(t, me->values[count] + me->values[count + 1]);
    real rate = implicit_rate(s, z, instance->rate, me->values[count + 2]);
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

const dcme_objective dcme_objective_dcme = {
    "dcme", open_shared, close_shared, join, leave, begin, announce, step,
};
