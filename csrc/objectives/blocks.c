/* Targets in blocks that share their noise samples: negative sampling and noise-contrastive
 * estimation.
 *
 * For the targets i_t of a block, with contexts h_t, and S samples j drawn once for all of them,
 * scores x_tj = v_j . h_t - offset_j and weights
 *
 *     of the target i_t       w_ti = 1 - sigma(x_ti)
 *     of a sample j != i_t    w_tj = -(nu / S) sigma(x_tj); 0 for j = i_t
 *
 * h_t moves along g_t = sum_j w_tj v_j with the rows as they were scored, v_j by sum_t rate_t w_tj
 * h_t. So the row of a sample is read and written once per block, and all sums are products of
 * small matrices in the cache. Steps along h_t are implicit (see noise.h), because a row is updated
 * by many similar contexts at once.
 *
 * Legend: T targets of a block, S samples, nu virtual draws.
 */
#include "objectives/blocks.h"

/* After this many samples were scored, the same number of rows is prefetched for the next block. A
 * multiple of the number of rows in a tile. */
enum { AT_ONCE = 12 };

/* Without this, GCC would unroll the loop first and then vectorize it with a stride of 16 numbers.
 */
#define ALONG_BLOCK(t) _Pragma("GCC unroll 1") for (int t = 0; t < DCME_BLOCK_MAX; t++)

void dcme_blocks_open(dcme_blocks *me, dcme_arena *arena, dcme_draws *draws, real *h,
                      real *gradients) {
    int64_t n = draws->negative + 1;
    me->draws = draws;
    me->model = draws->model;
    me->noise = draws->noise;
    me->samples = draws->negative;
    me->weight = draws->weight;
    for (int t = 0; h && gradients && t < DCME_BLOCK_MAX; t++) {
        me->contexts[t] = h + t * me->model->stride;
        me->gradients[t] = gradients + t * me->model->stride;
    }
    DCME_TAKE(arena, me->words, n);
    DCME_TAKE(arena, me->rows, n);
    DCME_TAKE(arena, me->memory, (n + 1) * DCME_BLOCK_MAX);
    me->weights = me->memory ? me->memory + DCME_BLOCK_MAX : NULL;
    DCME_TAKE_SAVED(arena, me->upcoming, me->samples, me->model->items);
    DCME_TAKE_SAVED(arena, me->randoms, me->samples, 0);
}

/* Draw a random number for sample k, and prefetch its cell. */
static void next_random(dcme_blocks *me, int64_t k) {
    const dcme_noise *noise = me->noise;
    me->randoms[k] = dcme_random(&me->draws->stream);
    __builtin_prefetch(&noise->alias[dcme_below(me->randoms[k], noise->items)]);
}

/* Select sample k of the next block by its random number. */
static void next_word(const dcme_blocks *me, int64_t k) {
    const dcme_noise *noise = me->noise;
    int64_t cell = dcme_below(me->randoms[k], noise->items);
    me->upcoming[k] = dcme_alias_pick(noise->alias, cell, me->randoms[k]);
}

void dcme_blocks_seed(dcme_blocks *me) {
    for (int64_t k = 0; k < me->samples; k++)
        next_random(me, k);
    for (int64_t k = 0; k < me->samples; k++)
        next_word(me, k);
}

static void draw(dcme_blocks *me) {
    for (int64_t k = 0; k < me->samples; k++) {
        me->words[k] = me->upcoming[k];
        me->rows[k] = dcme_replica_row(&me->draws->replicas, me->words[k]);
        next_random(me, k);
    }
}

static void name_targets(dcme_blocks *me, const int32_t *targets, int64_t count) {
    for (int64_t t = 0; t < count; t++) {
        me->targets[t] = targets[t];
        me->target_rows[t] = dcme_replica_row(&me->draws->replicas, me->targets[t]);
    }
    for (int64_t t = count; t < DCME_BLOCK_MAX; t++)
        me->rates[t] = 0;
}

/* Subtract a word's offset from its scores in all contexts. */
static void subtract_offset(const dcme_blocks *me, int32_t word, real *scores) {
    real offset = me->noise->offset ? me->noise->offset[word] : 0;
    for (int t = 0; t < DCME_BLOCK_MAX; t++)
        scores[t] -= offset;
}

/* Compute the negated scores of the targets, and the rates of implicit steps along their contexts.
 */
static void score_targets(dcme_blocks *me, int64_t count, real rate) {
    const dcme_model *model = me->model;
    real products[DCME_BLOCK_MAX][2];
    model->kernels->pair_dots(products[0], me->contexts, me->target_rows, count, model->size);
    for (int64_t t = 0; t < count; t++) {
        real square = products[t][0], score = products[t][1];
        me->rates[t] = dcme_implicit_rate(rate, me->weight, square);
        me->weights[me->samples * DCME_BLOCK_MAX + t] =
            (me->noise->offset ? me->noise->offset[me->targets[t]] : 0) - score;
    }
}

/* Compute the scores of the samples in all contexts, and the negated scores of the targets. */
static void score(dcme_blocks *me, int64_t count, real rate) {
    const dcme_model *model = me->model;
    for (int64_t k = 0; k < me->samples; k += AT_ONCE) {
        int64_t n = dcme_min(me->samples - k, AT_ONCE);
        model->kernels->dots(me->weights + k * DCME_BLOCK_MAX, DCME_BLOCK_MAX, me->rows + k, n,
                             me->contexts, count, model->size);
        for (int64_t i = k; i < k + n; i++) {
            subtract_offset(me, me->words[i], me->weights + i * DCME_BLOCK_MAX);
            next_word(me, i);
            dcme_draws_fetch(me->draws, me->upcoming[i]);
        }
    }
    score_targets(me, count, rate);
}

/* Return the noise-contrastive loss of a target from its scores. */
static double loss_of(const dcme_blocks *me, int64_t t) {
    double loss = dcme_softplus(me->weights[me->samples * DCME_BLOCK_MAX + t]), noise = 0;
    for (int64_t k = 0; k < me->samples; k++)
        if (me->words[k] != me->targets[t])
            noise += dcme_softplus(me->weights[k * DCME_BLOCK_MAX + t]);
    return loss + me->weight * noise;
}

/* Turn scores into weights. A target's weight is 1 - sigma(x) = sigma(-x), and -x is its stored
 * score. The kernel treats its first number as a target, so the first row is unused. */
static void to_weights(dcme_blocks *me) {
    real *weights = me->weights, weight = me->weight;
    me->model->kernels->residuals(me->memory, me->memory, (me->samples + 2) * DCME_BLOCK_MAX);
    for (int64_t k = 0; k < me->samples; k++, weights += DCME_BLOCK_MAX) {
        int32_t word = me->words[k];
        ALONG_BLOCK(t) {
            real w = weight * weights[t];
            weights[t] = word == me->targets[t] ? 0 : w;
        }
    }
    for (int t = 0; t < DCME_BLOCK_MAX; t++)
        weights[t] = -weights[t];
}

/* Compute g_t for every target from the rows before they are updated. */
static void find_directions(dcme_blocks *me, int64_t count) {
    const dcme_model *model = me->model;
    model->kernels->weighted_sums(me->gradients, count, me->weights, 1, DCME_BLOCK_MAX, me->rows,
                                  me->samples, model->size, me->target_rows,
                                  me->weights + me->samples * DCME_BLOCK_MAX);
}

/* Update the samples' rows, then the targets'. */
static void move(dcme_blocks *me, int64_t count) {
    const dcme_model *model = me->model;
    real rates[DCME_BLOCK_MAX], *weights = me->weights;
    DCME_COPY(rates, me->rates, DCME_BLOCK_MAX);
    for (int64_t k = 0; k < me->samples; k++, weights += DCME_BLOCK_MAX) {
        real rate = dcme_rate_of(model, me->words[k]);
        ALONG_BLOCK(t) { weights[t] *= rate * rates[t]; }
    }
    for (int64_t t = 0; t < count; t++)
        weights[t] *= rates[t] * dcme_rate_of(model, me->targets[t]);
    model->kernels->weighted_sums(me->rows, me->samples, me->weights, DCME_BLOCK_MAX, 1,
                                  me->contexts, count, model->size, NULL, NULL);
    for (int64_t t = 0; t < count; t++)
        dcme_axpy(model->kernels, me->target_rows[t], me->weights[me->samples * DCME_BLOCK_MAX + t],
                  me->contexts[t], model->size);
}

void dcme_blocks_step(dcme_blocks *me, const int32_t *targets, int64_t count, real rate,
                      dcme_loss *loss) {
    draw(me);
    name_targets(me, targets, count);
    score(me, count, rate);
    for (int64_t t = 0; t < count; t++)
        if (dcme_loss_wanted(loss, DCME_BLOCK_LOSS_EVERY))
            dcme_loss_add(loss, loss_of(me, t));
    to_weights(me);
    find_directions(me, count);
    move(me, count);
    for (int64_t t = 0; t < count; t++)
        dcme_replicas_step(&me->draws->replicas);
}
