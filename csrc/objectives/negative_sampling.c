/* Negative sampling (Mikolov et al. 2013) and noise-contrastive estimation (Gutmann & Hyvarinen
 * 2010; Mnih & Teh 2012): a target is distinguished from samples drawn from q.
 *
 * For context h, target i and samples j_1 .. j_k with scores s_j = v_j . h - offset_j, ascend
 *     log sigma(s_i) + sum_j log sigma(-s_j):
 * v_i += rate (1 - sigma(s_i)) h, v_j -= rate sigma(s_j) h, and h's direction is
 * (1 - sigma(s_i)) v_i - sum_j sigma(s_j) v_j with the rows as they were scored.
 *
 * Classes of the neighbours add to the scores, see ../model/model.h. Negative sampling has no
 * offsets. For NCE they are log(k q_j) - prior_j: the model's scores are v_j . h + prior_j, see
 * prior.h, and the partition function is taken as 1; with v_j . h alone, whose partition function
 * starts at N, NCE first spends an epoch finding it.
 *
 * The cost of this loop is latency of memory. A pool avoids most of it: it holds the last
 * POOL words drawn from q, each target adds one and takes its k at random from the pool. So every
 * sample of a target has the distribution q, and all rows but two are in the cache already.
 * A sample is reused some targets later with other samples; for negative sampling no loss
 * of quality was measured, unlike for samples shared by a block of targets. For NCE the reuse
 * costs 0.04 nats of likelihood or more: there all k samples are drawn for each target.
 */
#include "objectives/noise.h"

#include "objectives/objective.h"
#include "objectives/row_replicas.h"

#include <stdlib.h>

enum { POOL = 256 };  /* at most 2^16; a power of two */
enum { SAMPLES = 4 }; /* at least DCME_AHEAD + 1, the one being learned; a power of two */

typedef struct {
    dcme_noise noise;
    int32_t draws; /* k samples per target */
    int32_t threads;
} noise_state;

/* A target and its samples, drawn ahead so that their rows can be prefetched. */
typedef struct {
    int64_t count;
    int32_t *words; /* (draws + 1), the target first */
    real **rows;    /* (draws + 1) their output rows */
} sample;

typedef struct {
    const noise_state *shared;
    uint64_t stream;
    uint64_t drawn; /* random number of the next draw; its cell has been asked for */
    int32_t pool[POOL];
    uint32_t prefetched, taken; /* samples so far; the one of number n is samples[n % SAMPLES] */
    sample samples[SAMPLES];
    dcme_row_replicas replicas; /* rows of the most frequent words */
    real *scores;               /* dcme_stride(draws + 1) */
    real *weights;              /* dcme_stride(draws + 1) */
} thread_state;

static void close_noise(void *shared) {
    dcme_noise_close(&((noise_state *)shared)->noise);
    free(shared);
}

static dcme_status open_noise(void **shared, const dcme_model *model,
                              const dcme_train_options *options, double virtual_draws,
                              dcme_error *error) {
    noise_state *noise = dcme_allocate_zeros(1, sizeof *noise);
    if (!noise)
        return dcme_no_memory(error, sizeof *noise, "the noise distribution", "end other programs");
    noise->draws = options->negative;
    noise->threads = options->threads;
    dcme_status status = dcme_noise_open(&noise->noise, model, options, virtual_draws, error);
    if (status == DCME_OK)
        *shared = noise;
    else
        close_noise(noise);
    return status;
}

static void thread_close(void *thread) {
    thread_state *me = thread;
    if (!me)
        return;
    for (int i = 0; i < SAMPLES; i++) {
        free(me->samples[i].words);
        free(me->samples[i].rows);
    }
    dcme_replicas_close(&me->replicas);
    free(me->scores);
    free(me->weights);
    free(me);
}

static dcme_status thread_open(void **thread, void *shared, dcme_error *error) {
    const noise_state *s = shared;
    int64_t n = s->draws + 1;
    thread_state *me = dcme_allocate_zeros(1, sizeof *me);
    int whole = me != NULL;
    for (int i = 0; whole && i < SAMPLES; i++) {
        me->samples[i].words = dcme_allocate(n, sizeof *me->samples[i].words);
        me->samples[i].rows = dcme_allocate(n, sizeof *me->samples[i].rows);
        whole = me->samples[i].words && me->samples[i].rows;
    }
    if (whole) {
        me->shared = s;
        me->scores = dcme_allocate_zeros(dcme_stride(n), sizeof *me->scores);
        me->weights = dcme_allocate_zeros(dcme_stride(n), sizeof *me->weights);
        whole = dcme_replicas_open(&me->replicas, s->noise.model, s->threads) == DCME_OK &&
                me->scores && me->weights;
    }
    if (!whole) {
        thread_close(me);
        int64_t samples = SAMPLES * n * (int64_t)(sizeof(real *) + sizeof(int32_t));
        int64_t bytes = (int64_t)sizeof *me + samples + dcme_replicas_bytes(s->noise.model);
        return dcme_no_memory(error, bytes, "a thread's samples", "lower --threads or --negative");
    }
    *thread = me;
    return DCME_OK;
}

/* The word whose cell was prefetched by the last call; prefetches that of the next one. */
static int32_t draw(thread_state *me) {
    const dcme_noise *noise = &me->shared->noise;
    int64_t items = noise->model->items;
    uint64_t random = me->drawn;
    me->drawn = dcme_random(&me->stream);
    __builtin_prefetch(&noise->alias[dcme_alias_cell(me->drawn, items)]);
    return dcme_alias_pick(noise->alias, dcme_alias_cell(random, items), random);
}

static void seed(void *thread, uint64_t stream) {
    thread_state *me = thread;
    me->stream = stream;
    dcme_replicas_seed(&me->replicas, stream);
    me->prefetched = me->taken = 0;
    me->drawn = dcme_random(&me->stream);
    for (int32_t i = 0; i < POOL; i++)
        me->pool[i] = draw(me);
}

/* Between sentence batches no target waits, so that the samples themselves need not be kept. */
static void list_thread_state(void *thread, dcme_state *state) {
    thread_state *me = thread;
    dcme_state_add(state, &me->stream, 1, sizeof me->stream);
    dcme_state_add(state, &me->drawn, 1, sizeof me->drawn);
    dcme_state_add(state, me->pool, POOL, sizeof *me->pool);
    dcme_state_add(state, &me->prefetched, 1, sizeof me->prefetched);
    dcme_state_add(state, &me->taken, 1, sizeof me->taken);
}

static void add(sample *s, const dcme_row_replicas *replicas, int32_t word) {
    s->words[s->count] = word;
    s->rows[s->count++] = dcme_replica_row(replicas, word);
}

static void fetch(const dcme_row_replicas *replicas, int32_t word, int is_target) {
    dcme_class_prefetch(replicas->model, word, is_target);
    dcme_prefetch(dcme_replica_row(replicas, word), replicas->model->stride);
}

/* A word whose row is still in memory. */
static void add_far(sample *s, const dcme_row_replicas *replicas, int32_t word, int is_target) {
    fetch(replicas, word, is_target);
    add(s, replicas, word);
}

/* The sample of a target that is prefetched, which has only the target yet. */
static sample *new_sample(thread_state *me, int32_t target) {
    sample *s = &me->samples[me->prefetched++ % SAMPLES];
    s->count = 0;
    dcme_replicas_begin(&me->replicas);
    add_far(s, &me->replicas, target, 1);
    return s;
}

static void prefetch_drawn(void *thread, int32_t target) {
    thread_state *me = thread;
    sample *s = new_sample(me, target);
    for (int32_t k = 0; k < me->shared->draws; k++) {
        int32_t word = draw(me);
        if (word != target)
            add_far(s, &me->replicas, word, 0);
    }
}

static void prefetch_pooled(void *thread, int32_t target) {
    thread_state *me = thread;
    int32_t fresh = draw(me);
    uint64_t random = 0;

    me->pool[me->prefetched % POOL] = fresh;
    sample *s = new_sample(me, target);
    fetch(&me->replicas, fresh, 0);
    for (int32_t k = 0; k < me->shared->draws; k++, random >>= 16) {
        if (k % 4 == 0) /* a random number is four places in the pool */
            random = dcme_random(&me->stream);
        int32_t word = me->pool[random % POOL];
        if (word != target) /* its row is in the cache: prefetching it again takes 6 % longer */
            add(s, &me->replicas, word);
    }
}

static void step(void *thread, const dcme_instance *instance, dcme_loss *loss) {
    thread_state *me = thread;
    const dcme_noise *noise = &me->shared->noise;
    const dcme_kernels *kernels = noise->model->kernels;
    const sample *s = &me->samples[me->taken++ % SAMPLES];
    int64_t stride = noise->model->stride;

    kernels->dots(me->scores, instance->h, s->rows, s->count, stride);
    for (int64_t i = 0; noise->offset && i < s->count; i++)
        me->scores[i] -= noise->offset[s->words[i]];
    for (int64_t i = 0; noise->model->classes && i < s->count; i++)
        me->scores[i] += dcme_class_score(noise->model, instance, s->words[i]);
    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY))
        dcme_loss_add(loss, dcme_logistic_loss(me->scores, s->count));
    kernels->residuals(me->weights, me->scores, s->count);
    kernels->update(instance->gradient, instance->h, s->rows, me->weights, instance->rate, s->count,
                    stride);
    dcme_replicas_step(&me->replicas);
}

static void flush(void *thread) { dcme_replicas_end(&((thread_state *)thread)->replicas); }

static dcme_status open_ns(void **shared, const dcme_model *model,
                           const dcme_train_options *options, dcme_error *error) {
    return open_noise(shared, model, options, 0, error);
}

static dcme_status open_nce(void **shared, const dcme_model *model,
                            const dcme_train_options *options, dcme_error *error) {
    return open_noise(shared, model, options, options->negative, error);
}

const dcme_objective dcme_objective_ns = {
    .name = "ns",
    .open = open_ns,
    .close = close_noise,
    .thread_open = thread_open,
    .thread_close = thread_close,
    .seed = seed,
    .prefetch = prefetch_pooled,
    .step = step,
    .flush = flush,
    .thread_state = list_thread_state,
};

const dcme_objective dcme_objective_nce = {
    .name = "nce",
    .open = open_nce,
    .close = close_noise,
    .thread_open = thread_open,
    .thread_close = thread_close,
    .seed = seed,
    .prefetch = prefetch_drawn,
    .step = step,
    .flush = flush,
    .thread_state = list_thread_state,
};
