/* Negative sampling (Mikolov et al. 2013) and noise-contrastive estimation (Gutmann & Hyvarinen
 * 2010; Mnih & Teh 2012): a target is distinguished from samples drawn from q.
 *
 * For context h, target i and samples j_1 .. j_k with scores s_j = v_j . h - offset_j, ascend
 *     log sigma(s_i) + w sum_j log sigma(-s_j):
 * v_i += rate (1 - sigma(s_i)) h, v_j -= rate w sigma(s_j) h, and h's direction is
 * (1 - sigma(s_i)) v_i - w sum_j sigma(s_j) v_j with the rows as they were scored. w is 1, or for
 * NCE the virtual draws that each sample stands for; then steps along a long h are implicit.
 *
 * Negative sampling has no offsets. For NCE they are log(w k q_j) - prior_j: the model's scores are
 * v_j . h + prior_j, see noise.h, and the partition function is taken as 1; with v_j . h alone,
 * whose partition function starts at N, NCE first spends an epoch finding it.
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

enum { POOL = 256 };  /* at most 2^16; a power of two */
enum { SAMPLES = 4 }; /* at least DCME_AHEAD + 1, the one being learned; a power of two */

/* A target and its samples, drawn ahead so that their rows can be prefetched. */
typedef struct {
    int64_t count;
    int32_t *words; /* (draws + 1), the target first */
    real **rows;    /* (draws + 2) their output rows, and room for the context */
} sample;

typedef struct {
    dcme_row_replicas replicas; /* first, for dcme_replicas_end() */
    const dcme_model *model;
    const dcme_noise *noise;
    int32_t draws; /* k samples per target */
    real weight;   /* w */
    uint64_t stream;
    uint64_t drawn;               /* random number of the next draw; its cell has been asked for */
    int32_t *pool;                /* (POOL) */
    uint32_t prefetched, waiting; /* samples so far; sample n is samples[n % SAMPLES] */
    sample samples[SAMPLES];
    real *scores;  /* dcme_stride(draws + 2) */
    real *weights; /* dcme_stride(draws + 2) */
} thread_state;

static void thread_open(void *thread, dcme_arena *arena, void *shared) {
    thread_state *me = thread;
    const dcme_word_noise *s = shared;
    int64_t n = s->draws + 2;
    me->model = s->model;
    me->noise = &s->noise;
    me->draws = s->draws;
    me->weight = s->weight;
    for (int i = 0; i < SAMPLES; i++) {
        DCME_TAKE(arena, me->samples[i].words, n);
        DCME_TAKE(arena, me->samples[i].rows, n);
    }
    DCME_TAKE(arena, me->scores, dcme_stride(n));
    DCME_TAKE(arena, me->weights, dcme_stride(n));
    dcme_replicas_open(&me->replicas, arena, s->model, s->threads);
    /* between sentence batches no target waits, so that the samples themselves need not be saved */
    DCME_SAVE(arena, me->stream);
    DCME_SAVE(arena, me->drawn);
    DCME_TAKE_SAVED(arena, me->pool, POOL, s->model->items);
    DCME_SAVE(arena, me->prefetched);
}

/* The word whose cell was prefetched by the last call; prefetches the cell of the next one. */
static int32_t draw(thread_state *me) {
    const dcme_noise *noise = me->noise;
    int64_t items = noise->items;
    uint64_t random = me->drawn;
    me->drawn = dcme_random(&me->stream);
    __builtin_prefetch(&noise->alias[dcme_alias_cell(me->drawn, items)]);
    return dcme_alias_pick(noise->alias, dcme_alias_cell(random, items), random);
}

static void seed(void *thread, uint64_t stream) {
    thread_state *me = thread;
    me->stream = stream;
    dcme_replicas_seed(&me->replicas, stream);
    me->prefetched = me->waiting = 0;
    me->drawn = dcme_random(&me->stream);
    for (int32_t i = 0; i < POOL; i++)
        me->pool[i] = draw(me);
}

static void add(sample *s, const dcme_row_replicas *replicas, int32_t word) {
    s->words[s->count] = word;
    s->rows[s->count++] = dcme_replica_row(replicas, word);
}

static void fetch(const dcme_row_replicas *replicas, int32_t word) {
    dcme_prefetch(dcme_replica_row(replicas, word), replicas->model->stride);
}

/* A word whose row is still in memory. */
static void add_far(sample *s, const dcme_row_replicas *replicas, int32_t word) {
    fetch(replicas, word);
    add(s, replicas, word);
}

/* The sample of a target that is prefetched, which has only the target yet. */
static sample *new_sample(thread_state *me, int32_t target) {
    sample *s = &me->samples[me->prefetched++ % SAMPLES];
    s->count = 0;
    me->waiting++;
    dcme_replicas_begin(&me->replicas);
    add_far(s, &me->replicas, target);
    return s;
}

static void prefetch_drawn(void *thread, int32_t target) {
    thread_state *me = thread;
    sample *s = new_sample(me, target);
    for (int32_t k = 0; k < me->draws; k++) {
        int32_t word = draw(me);
        if (word != target)
            add_far(s, &me->replicas, word);
    }
}

static void prefetch_pooled(void *thread, int32_t target) {
    thread_state *me = thread;
    int32_t fresh = draw(me);
    uint64_t random = 0;

    me->pool[me->prefetched % POOL] = fresh;
    sample *s = new_sample(me, target);
    fetch(&me->replicas, fresh);
    int64_t n = s->count;
    for (int32_t k = 0; k < me->draws; k++, random >>= 16) {
        if (k % 4 == 0) /* a random number is four places in the pool */
            random = dcme_random(&me->stream);
        int32_t word = me->pool[random % POOL];
        s->words[n] = word; /* its row is in the cache: prefetching it again takes 6 % longer */
        s->rows[n] = dcme_replica_row(&me->replicas, word);
        n += word != target;
    }
    s->count = n;
}

static void step(void *thread, const dcme_instance *instance, dcme_loss *loss) {
    thread_state *me = thread;
    const dcme_noise *noise = me->noise;
    const dcme_model *model = me->model;
    const dcme_kernels *kernels = model->kernels;
    const sample *s = &me->samples[(me->prefetched - me->waiting--) % SAMPLES];
    int is_weighted = me->weight != 1;
    real rate = instance->rate;

    if (is_weighted)
        s->rows[s->count] = (real *)instance->h;
    dcme_dots(kernels, me->scores, instance->h, s->rows, s->count + is_weighted, model->size);
    if (is_weighted)
        rate = dcme_implicit_rate(rate, me->weight, me->scores[s->count]);
    for (int64_t i = 0; noise->offset && i < s->count; i++)
        me->scores[i] -= noise->offset[s->words[i]];
    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY))
        dcme_loss_add(loss, dcme_logistic_loss(me->scores, s->count, me->weight));
    kernels->residuals(me->weights, me->scores, s->count);
    for (int64_t i = 1; is_weighted && i < s->count; i++)
        me->weights[i] *= me->weight;
    kernels->update(instance->gradient, instance->h, s->rows, me->weights, rate, s->count,
                    model->size);
    dcme_replicas_step(&me->replicas);
}

#define NOISE_OBJECTIVE(own_prefetch)                                                              \
    {                                                                                              \
        .open = dcme_word_noise_open,                                                              \
        .shared_size = sizeof(dcme_word_noise),                                                    \
        .thread_open = thread_open,                                                                \
        .thread_size = sizeof(thread_state),                                                       \
        .seed = seed,                                                                              \
        .prefetch = own_prefetch,                                                                  \
        .step = step,                                                                              \
        .flush = dcme_replicas_end,                                                                \
    }

const dcme_objective dcme_objective_ns = NOISE_OBJECTIVE(prefetch_pooled);
const dcme_objective dcme_objective_nce = NOISE_OBJECTIVE(prefetch_drawn);
