/* Draw noise words, score them with the target, move the rows. See noise.h.
 *
 * For context h, target i and noise words j_1 .. j_k with scores s_j = v_j . h - offset_j, ascend
 *     log sigma(s_i) + sum_j log sigma(-s_j):
 * v_i += rate (1 - sigma(s_i)) h, v_j -= rate sigma(s_j) h, and h's direction is
 * (1 - sigma(s_i)) v_i - sum_j sigma(s_j) v_j with the rows as they were scored.
 *
 * Waiting for rows from memory is what this loop costs. A pool spares most of it: it holds the last
 * POOL words drawn from q, each target adds one and takes its k at random from the pool. So every
 * word that a target meets has the distribution q, and all rows but two are in the cache already.
 * A word is met again some targets later, in other company; for negative sampling that costs no
 * quality, unlike words shared by a block of neighbouring targets (figures in the README). For NCE
 * it costs likelihood, 0.04 nats and more: there all k words are drawn afresh.
 */
#include "objectives/noise.h"

#include "objectives/hot.h"
#include "objectives/prior.h"

#include <math.h>
#include <stdlib.h>

enum { POOL = 256 };  /* at most 2^16; a power of two */
enum { SAMPLES = 4 }; /* at least DCME_AHEAD + 1, the one being learned; a power of two */

/* A target and its noise words, drawn ahead so that their rows can be fetched. */
typedef struct {
    int64_t count;
    int32_t *words; /* (draws + 1), the target first */
    real **rows;    /* (draws + 1) their output rows */
} sample;

typedef struct {
    const dcme_noise *noise;
    uint64_t stream;
    uint64_t drawn; /* random number of the next draw; its cell has been asked for */
    int32_t pool[POOL];
    uint32_t announced, taken; /* samples so far; the one of number n is samples[n % SAMPLES] */
    sample samples[SAMPLES];
    dcme_hot hot;  /* rows of the most frequent words */
    real *scores;  /* dcme_stride(draws + 1) */
    real *weights; /* dcme_stride(draws + 1) */
} member_state;

double dcme_noise_weights(double *weights, const int64_t *counts, int64_t items, double power) {
    double total = 0;
    for (int64_t j = 0; j < items; j++)
        total += weights[j] = pow((double)counts[j], power);
    return total;
}

/* log(1 + exp(x)) = -log sigma(-x); exp() overflows long before a score does. */
static double softplus(double x) { return x > 30 ? x : log1p(exp(x)); }

double dcme_noise_loss(const real *scores, int64_t count) {
    double loss = softplus(-(double)scores[0]);
    for (int64_t i = 1; i < count; i++)
        loss += softplus((double)scores[i]);
    return loss;
}

static dcme_status fill(dcme_noise *noise, const dcme_train_options *options, int with_offset,
                        double *weights) {
    const dcme_model *model = noise->model;
    double total = dcme_noise_weights(weights, model->counts, model->items, options->noise_power);
    if (with_offset)
        dcme_prior_fill(noise->offset, model, options->prior);
    for (int64_t j = 0; with_offset && j < model->items; j++)
        noise->offset[j] = (real)log(noise->draws * weights[j] / total) - noise->offset[j];
    return dcme_alias_build(noise->alias, weights, model->items);
}

dcme_status dcme_noise_open(void **shared, const dcme_model *model,
                            const dcme_train_options *options, int with_offset, dcme_error *error) {
    dcme_noise *noise = dcme_allocate_zeros(1, sizeof *noise);
    double *weights = dcme_allocate(model->items, sizeof *weights);
    dcme_status status = DCME_NO_MEMORY;
    if (noise && weights) {
        noise->model = model;
        noise->draws = options->negative;
        noise->threads = options->threads;
        noise->alias = dcme_allocate(model->items, sizeof *noise->alias);
        noise->offset = with_offset ? dcme_allocate(model->items, sizeof *noise->offset) : NULL;
        if (noise->alias && (noise->offset || !with_offset))
            status = fill(noise, options, with_offset, weights);
    }
    free(weights);
    if (status != DCME_OK) {
        dcme_noise_close(noise);
        if (status == DCME_BAD_ARGUMENT)
            return dcme_fail(error, status, 0, "no noise can be drawn by counts to this power");
        return dcme_no_memory(error,
                              model->items * (int64_t)(sizeof *noise->alias + sizeof *weights),
                              "the noise distribution", "lower --max-vocab or raise --min-count");
    }
    *shared = noise;
    return DCME_OK;
}

void dcme_noise_close(void *shared) {
    dcme_noise *noise = shared;
    if (!noise)
        return;
    free(noise->alias);
    free(noise->offset);
    free(noise);
}

dcme_status dcme_noise_join(void **member, void *shared, dcme_error *error) {
    const dcme_noise *noise = shared;
    int64_t n = noise->draws + 1;
    member_state *me = dcme_allocate_zeros(1, sizeof *me);
    int whole = me != NULL;
    for (int i = 0; whole && i < SAMPLES; i++) {
        me->samples[i].words = dcme_allocate(n, sizeof *me->samples[i].words);
        me->samples[i].rows = dcme_allocate(n, sizeof *me->samples[i].rows);
        whole = me->samples[i].words && me->samples[i].rows;
    }
    if (whole) {
        me->noise = noise;
        me->scores = dcme_allocate_zeros(dcme_stride(n), sizeof *me->scores);
        me->weights = dcme_allocate_zeros(dcme_stride(n), sizeof *me->weights);
        whole = dcme_hot_open(&me->hot, noise->model, noise->threads) == DCME_OK && me->scores &&
                me->weights;
    }
    if (!whole) {
        dcme_noise_leave(me);
        return dcme_no_memory(error, SAMPLES * n * (int64_t)sizeof(real *),
                              "a thread's noise words", "lower --threads or --negative");
    }
    *member = me;
    return DCME_OK;
}

void dcme_noise_leave(void *member) {
    member_state *me = member;
    if (!me)
        return;
    for (int i = 0; i < SAMPLES; i++) {
        free(me->samples[i].words);
        free(me->samples[i].rows);
    }
    dcme_hot_close(&me->hot);
    free(me->scores);
    free(me->weights);
    free(me);
}

/* The word whose cell was asked for last time; asks for the next one's. */
static int32_t draw(member_state *me) {
    const dcme_noise *noise = me->noise;
    int64_t items = noise->model->items;
    uint64_t random = me->drawn;
    me->drawn = dcme_random(&me->stream);
    __builtin_prefetch(&noise->alias[dcme_alias_cell(me->drawn, items)]);
    return dcme_alias_pick(noise->alias, dcme_alias_cell(random, items), random);
}

void dcme_noise_begin(void *member, uint64_t stream) {
    member_state *me = member;
    me->stream = stream;
    dcme_hot_take_turns(&me->hot, stream);
    me->announced = me->taken = 0;
    me->drawn = dcme_random(&me->stream);
    for (int32_t i = 0; i < POOL; i++)
        me->pool[i] = draw(me);
}

/* Between passages no target waits, so that the samples themselves need not be kept. */
void dcme_noise_state(void *member, dcme_state *state) {
    member_state *me = member;
    dcme_state_add(state, &me->stream, 1, sizeof me->stream);
    dcme_state_add(state, &me->drawn, 1, sizeof me->drawn);
    dcme_state_add(state, me->pool, POOL, sizeof *me->pool);
    dcme_state_add(state, &me->announced, 1, sizeof me->announced);
    dcme_state_add(state, &me->taken, 1, sizeof me->taken);
}

static void add(sample *s, const dcme_hot *hot, int32_t word) {
    s->words[s->count] = word;
    s->rows[s->count++] = dcme_hot_row(hot, word);
}

static void fetch(const dcme_hot *hot, int32_t word) {
    dcme_prefetch(dcme_hot_row(hot, word), hot->model->stride);
}

/* A word whose row is still in memory. */
static void add_far(sample *s, const dcme_hot *hot, int32_t word) {
    fetch(hot, word);
    add(s, hot, word);
}

/* The sample of a target that has been announced, with nothing but the target in it. */
static sample *new_sample(member_state *me, int32_t target) {
    sample *s = &me->samples[me->announced++ % SAMPLES];
    s->count = 0;
    dcme_hot_begin(&me->hot);
    add_far(s, &me->hot, target);
    return s;
}

void dcme_noise_announce(void *member, int32_t target) {
    member_state *me = member;
    sample *s = new_sample(me, target);
    for (int32_t k = 0; k < me->noise->draws; k++) {
        int32_t word = draw(me);
        if (word != target)
            add_far(s, &me->hot, word);
    }
}

void dcme_noise_announce_pooled(void *member, int32_t target) {
    member_state *me = member;
    int32_t fresh = draw(me);
    uint64_t random = 0;

    me->pool[me->announced % POOL] = fresh;
    sample *s = new_sample(me, target);
    fetch(&me->hot, fresh);
    for (int32_t k = 0; k < me->noise->draws; k++, random >>= 16) {
        if (k % 4 == 0) /* a random number is four places in the pool */
            random = dcme_random(&me->stream);
        int32_t word = me->pool[random % POOL];
        if (word != target) /* its row is in the cache: to ask for it again costs 6 % */
            add(s, &me->hot, word);
    }
}

void dcme_noise_step(void *member, const dcme_instance *instance, dcme_loss *loss) {
    member_state *me = member;
    const dcme_noise *noise = me->noise;
    const dcme_kernels *kernels = noise->model->kernels;
    const sample *s = &me->samples[me->taken++ % SAMPLES];
    int64_t stride = noise->model->stride;

    kernels->dots(me->scores, instance->h, s->rows, s->count, stride);
    for (int64_t i = 0; noise->offset && i < s->count; i++)
        me->scores[i] -= noise->offset[s->words[i]];
    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY))
        dcme_loss_add(loss, dcme_noise_loss(me->scores, s->count));
    kernels->residuals(me->weights, me->scores, s->count);
    kernels->update(instance->gradient, instance->h, s->rows, me->weights, instance->rate, s->count,
                    stride);
    dcme_hot_step(&me->hot);
}

void dcme_noise_rest(void *member) { dcme_hot_end(&((member_state *)member)->hot); }
