/* Targets in blocks that share their noise samples: negative sampling and noise-contrastive
 * estimation.
 *
 * For the targets i_t of a block, with contexts h_t, and S samples j drawn once for all of them,
 * scores x_tj = v_j . h_t - offset_j and weights
 *
 *     of the target i_t       w_ti = 1 - sigma(x_ti)
 *     of a sample j != i_t    w_tj = -(nu / S) sigma(x_tj); 0 for j = i_t
 *
 * h_t moves along g_t = sum_j w_tj v_j with the rows as they were scored, v_j by
 * sum_t rate_t w_tj h_t. So a sample's row is read and written once for a block, and all sums are
 * products of small matrices in the cache. Steps are implicit in h_t, see noise.h: a row meets many
 * similar contexts at once.
 *
 * Legend: T targets of a block, S samples, nu virtual draws.
 */
#include "objectives/noise.h"
#include "objectives/objective.h"
#include "objectives/row_replicas.h"

/* Samples that are scored before the rows of as many of the next block's are asked for; a multiple
 * of the rows in a tile. */
enum { AT_ONCE = 12 };

/* GCC would unroll the loop at once, then take every sixteenth number for a vector. */
#define ALONG_BLOCK(t) _Pragma("GCC unroll 1") for (int t = 0; t < DCME_BLOCK_MAX; t++)

typedef struct {
    dcme_row_replicas replicas; /* first, for dcme_replicas_end() */
    const dcme_model *model;
    const dcme_noise *noise;
    int64_t draws; /* S */
    real weight;   /* nu / S */
    uint64_t stream;
    uint64_t *randoms; /* (S) of the next block's samples, whose cells have been asked for */
    int is_picked;     /* whether `upcoming` is of these random numbers */
    int32_t *upcoming; /* (S) the next block's samples */
    int32_t *words;    /* (S) */
    real **rows;       /* (S) */
    real *memory;      /* (S + 2, DCME_BLOCK_MAX) a row that is not used, then the next */
    real *weights;     /* (S + 1, DCME_BLOCK_MAX) scores, then weights; targets come last */
    int32_t targets[DCME_BLOCK_MAX];
    real rates[DCME_BLOCK_MAX]; /* 0 beyond the last target of a block */
    real *target_rows[DCME_BLOCK_MAX], *contexts[DCME_BLOCK_MAX], *gradients[DCME_BLOCK_MAX];
} thread_state;

static void thread_open(void *thread, dcme_arena *arena, void *shared) {
    thread_state *me = thread;
    const dcme_word_noise *s = shared;
    int64_t n = s->draws + 1;
    me->model = s->model;
    me->noise = &s->noise;
    me->draws = s->draws;
    me->weight = s->weight;
    DCME_TAKE(arena, me->upcoming, n);
    DCME_TAKE(arena, me->words, n);
    DCME_TAKE(arena, me->rows, n);
    DCME_TAKE(arena, me->memory, (n + 1) * DCME_BLOCK_MAX);
    me->weights = me->memory ? me->memory + DCME_BLOCK_MAX : NULL;
    dcme_replicas_open(&me->replicas, arena, s->model, s->threads);
    /* between sentence batches no block waits, so that its samples need not be saved */
    DCME_SAVE(arena, me->stream);
    DCME_TAKE_SAVED(arena, me->randoms, s->draws, 0);
}

/* A new random number for sample k, whose cell is asked for. */
static void next_random(thread_state *me, int64_t k) {
    me->randoms[k] = dcme_random(&me->stream);
    __builtin_prefetch(&me->noise->alias[dcme_alias_cell(me->randoms[k], me->noise->items)]);
}

static void seed(void *thread, uint64_t stream) {
    thread_state *me = thread;
    me->stream = stream;
    me->is_picked = 0;
    dcme_replicas_seed(&me->replicas, stream);
    for (int64_t k = 0; k < me->draws; k++)
        next_random(me, k);
}

static void fetch(const thread_state *me, int32_t word) {
    if (me->noise->offset)
        __builtin_prefetch(&me->noise->offset[word]);
    dcme_prefetch(dcme_replica_row(&me->replicas, word), me->model->stride);
}

/* Sample k of the block after the last one drawn. */
static int32_t next_word(const thread_state *me, int64_t k) {
    int64_t cell = dcme_alias_cell(me->randoms[k], me->noise->items);
    return dcme_alias_pick(me->noise->alias, cell, me->randoms[k]);
}

static void draw(thread_state *me) {
    for (int64_t k = 0; k < me->draws; k++) {
        me->words[k] = me->is_picked ? me->upcoming[k] : next_word(me, k);
        me->rows[k] = dcme_replica_row(&me->replicas, me->words[k]);
        next_random(me, k);
    }
}

/* Name a target of the next block. The rows of its samples have been asked for. */
static void prefetch(void *thread, int32_t target) {
    thread_state *me = thread;
    dcme_replicas_begin(&me->replicas);
    fetch(me, target);
}

static void name_targets(thread_state *me, const dcme_instance *instances, int64_t count) {
    for (int64_t t = 0; t < count; t++) {
        me->targets[t] = instances[t].target;
        me->target_rows[t] = dcme_replica_row(&me->replicas, me->targets[t]);
        me->contexts[t] = (real *)instances[t].h;
        me->gradients[t] = instances[t].gradient;
    }
    for (int64_t t = count; t < DCME_BLOCK_MAX; t++)
        me->rates[t] = 0;
}

/* Subtract the offset from a word's scores in all contexts. */
static void subtract_offset(const thread_state *me, int32_t word, real *scores) {
    real offset = me->noise->offset ? me->noise->offset[word] : 0;
    for (int t = 0; t < DCME_BLOCK_MAX; t++)
        scores[t] -= offset;
}

/* Minus the scores of the targets, and the rates of implicit steps along their contexts. */
static void score_targets(thread_state *me, const dcme_instance *instances, int64_t count) {
    const dcme_model *model = me->model;
    real products[DCME_BLOCK_MAX][2];
    model->kernels->pair_dots(products[0], me->contexts, me->target_rows, count, model->size);
    for (int64_t t = 0; t < count; t++) {
        const dcme_instance *instance = &instances[t];
        real square = products[t][0], score = products[t][1];
        me->rates[t] = dcme_implicit_rate(instance->rate, me->weight, square);
        me->weights[me->draws * DCME_BLOCK_MAX + t] =
            (me->noise->offset ? me->noise->offset[instance->target] : 0) - score;
    }
}

/* Scores of the samples in all contexts, and minus the scores of the targets. */
static void score(thread_state *me, const dcme_instance *instances, int64_t count) {
    const dcme_model *model = me->model;
    for (int64_t k = 0; k < me->draws; k += AT_ONCE) {
        int64_t n = dcme_min(me->draws - k, AT_ONCE);
        model->kernels->dots(me->weights + k * DCME_BLOCK_MAX, DCME_BLOCK_MAX, me->rows + k, n,
                             me->contexts, count, model->size);
        for (int64_t i = k; i < k + n; i++) {
            subtract_offset(me, me->words[i], me->weights + i * DCME_BLOCK_MAX);
            me->upcoming[i] = next_word(me, i);
            fetch(me, me->upcoming[i]);
        }
    }
    me->is_picked = 1;
    score_targets(me, instances, count);
}

/* The noise-contrastive loss of a target, by its scores. */
static double loss_of(const thread_state *me, int64_t t) {
    double loss = dcme_softplus(me->weights[me->draws * DCME_BLOCK_MAX + t]), noise = 0;
    for (int64_t k = 0; k < me->draws; k++)
        if (me->words[k] != me->targets[t])
            noise += dcme_softplus(me->weights[k * DCME_BLOCK_MAX + t]);
    return loss + me->weight * noise;
}

/* Scores become weights. The weight of a target is 1 - sigma(x) = sigma(-x), and -x is its score.
 * The kernel's first number is a target's; it is in the row that is not used. */
static void to_weights(thread_state *me) {
    real *weights = me->weights, weight = me->weight;
    me->model->kernels->residuals(me->memory, me->memory, (me->draws + 2) * DCME_BLOCK_MAX);
    for (int64_t k = 0; k < me->draws; k++, weights += DCME_BLOCK_MAX) {
        int32_t word = me->words[k];
        ALONG_BLOCK(t) {
            real w = weight * weights[t];
            weights[t] = word == me->targets[t] ? 0 : w;
        }
    }
    for (int t = 0; t < DCME_BLOCK_MAX; t++)
        weights[t] = -weights[t];
}

/* g_t of every target, with the rows as they were scored. */
static void find_directions(thread_state *me, int64_t count) {
    const dcme_model *model = me->model;
    model->kernels->weighted_sums(me->gradients, count, me->weights, 1, DCME_BLOCK_MAX, me->rows,
                                  me->draws, model->size, me->target_rows,
                                  me->weights + me->draws * DCME_BLOCK_MAX);
}

/* Move the samples' rows, then the targets'. */
static void move(thread_state *me, int64_t count) {
    const dcme_model *model = me->model;
    real rates[DCME_BLOCK_MAX], *weights = me->weights;
    DCME_COPY(rates, me->rates, DCME_BLOCK_MAX);
    for (int64_t k = 0; k <= me->draws; k++, weights += DCME_BLOCK_MAX)
        ALONG_BLOCK(t)
    weights[t] *= rates[t];
    model->kernels->weighted_sums(me->rows, me->draws, me->weights, DCME_BLOCK_MAX, 1, me->contexts,
                                  count, model->size, NULL, NULL);
    for (int64_t t = 0; t < count; t++)
        dcme_axpy(model->kernels, me->target_rows[t], me->weights[me->draws * DCME_BLOCK_MAX + t],
                  me->contexts[t], model->size);
}

static void step_block(void *thread, const dcme_instance *instances, int64_t count,
                       dcme_loss *loss) {
    thread_state *me = thread;
    draw(me);
    name_targets(me, instances, count);
    score(me, instances, count);
    for (int64_t t = 0; t < count; t++)
        if (dcme_loss_wanted(loss, DCME_BLOCK_LOSS_EVERY))
            dcme_loss_add(loss, loss_of(me, t));
    to_weights(me);
    find_directions(me, count);
    move(me, count);
    for (int64_t t = 0; t < count; t++)
        dcme_replicas_step(&me->replicas);
}

static void flush(void *thread) {
    thread_state *me = thread;
    me->is_picked = 0; /* a state may be restored, with other random numbers */
    dcme_replicas_end(thread);
}

const dcme_objective dcme_objective_blocks = {
    .open = dcme_word_noise_open,
    .shared_size = sizeof(dcme_word_noise),
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .seed = seed,
    .prefetch = prefetch,
    .step_block = step_block,
    .flush = flush,
};
