/* Negative sampling and noise-contrastive estimation for classes.
 *
 * For target i and k classes j_1 .. j_k drawn from q, q_j in proportion to count_j^power, ascend
 *     log sigma(s_i - o_i) + sum_j log sigma(-(s_j - o_j)),
 * where a draw may be the target: if such draws were dropped, the noise would be biased when there
 * are few classes. NCE has o_j = log(k q_j) + log C: scores are w_j . x - log C, so that weights
 * near zero give every class 1/C and the partition function starts at 1. For negative sampling o_j
 * = 0, which makes w_j . x learn log p_j - log(k q_j).
 */
#include "classify/class_objective.h"
#include "objectives/noise.h"

#include <math.h>

typedef struct {
    const dcme_problem *problem;
    const dcme_noise *noise; /* offset: o_j, or NULL for zeros */
    int32_t *classes;        /* (negative + 1), the target first */
    real *scores;            /* dcme_stride(negative + 1) */
    real *weights;           /* dcme_stride(negative + 1) */
} thread_state;

static void open_shared(void *shared, dcme_arena *arena, const dcme_problem *problem) {
    const dcme_classify_options *options = problem->options;
    int64_t classes = problem->model->classes;
    double draws = options->objective == DCME_CLASSIFY_NCE ? options->negative : 0;
    dcme_noise_open(shared, arena, problem->counts, classes, options->noise_power, draws,
                    log(classes));
}

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    int64_t n = problem->options->negative + 1;
    me->problem = problem;
    me->noise = shared;
    DCME_TAKE(arena, me->classes, n);
    DCME_TAKE(arena, me->scores, dcme_stride(n));
    DCME_TAKE(arena, me->weights, dcme_stride(n));
}

/* Draw noise classes, and store them after the target. */
static void draw(thread_state *me, int32_t target, uint64_t *stream) {
    me->classes[0] = target;
    for (int32_t k = 1; k <= me->problem->options->negative; k++) {
        uint64_t random = dcme_random(stream);
        int64_t cell = dcme_below(random, me->noise->items);
        me->classes[k] = dcme_alias_pick(me->noise->alias, cell, random);
    }
}

/* Return -log sigma(s_0) - sum_j log sigma(-s_j), where s_0 is the score of the target and the
 * other scores belong to the noise classes. */
static double loss_of(const real *scores, int64_t count) {
    double loss = dcme_softplus(-(double)scores[0]);
    for (int64_t j = 1; j < count; j++)
        loss += dcme_softplus(scores[j]);
    return loss;
}

/* Turn scores into the weights 1[j = i] - sigma(s_j - o_j). */
static void to_errors(thread_state *me, int64_t count, real weight, dcme_loss *loss) {
    const dcme_noise *noise = me->noise;
    for (int64_t j = 0; noise->offset && j < count; j++)
        me->scores[j] -= noise->offset[me->classes[j]];
    if (dcme_loss_wanted(loss, DCME_CLASS_LOSS_EVERY))
        dcme_loss_add(loss, weight * loss_of(me->scores, count));
    me->problem->model->kernels->residuals(me->weights, me->scores, count);
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    const dcme_linear *model = batch->model;
    int64_t count = me->problem->options->negative + 1;
    for (int64_t d = 0; d < batch->count; d++) {
        const real *values = batch->values + batch->starts[d], weighted = rate * batch->weights[d];
        int64_t n = dcme_batch_rows(batch, d, model->weights, model->stride, 0, batch->rows);
        draw(me, batch->targets[d], &batch->stream);
        DCME_CLEAR(me->scores, count);
        for (int64_t r = 0; r < n; r++)
            for (int64_t j = 0; j < count; j++)
                me->scores[j] += values[r] * batch->rows[r][me->classes[j]];
        to_errors(me, count, batch->weights[d], loss);
        for (int64_t r = 0; r < n; r++)
            for (int64_t j = 0; j < count; j++)
                batch->rows[r][me->classes[j]] += weighted * values[r] * me->weights[j];
    }
}

const dcme_class_objective dcme_class_sampling = {
    .open = open_shared,
    .shared_size = sizeof(dcme_noise),
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .step = step,
};
