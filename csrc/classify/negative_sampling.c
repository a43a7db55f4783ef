/* Negative sampling and noise-contrastive estimation for classes.
 *
 * For target i and k classes j_1 .. j_k drawn from q, q_j in proportion to count_j^power, ascend
 *     log sigma(s_i - o_i) + sum_j log sigma(-(s_j - o_j)),
 * where a draw may be the target: without these draws the noise of few classes would be biased. NCE
 * has o_j = log(k q_j) + log C: scores are w_j . x - log C, so that weights near zero give every
 * class 1/C and the partition function starts at 1. For negative sampling o_j = 0, which makes w_j
 * . x learn log p_j - log(k q_j).
 */
#include "classify/objective.h"
#include "common/alias.h"
#include "objectives/noise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const dcme_problem *problem;
    dcme_alias *alias; /* (classes) */
    real *offset;      /* (classes) o_j, or NULL for zeros */
} noise_state;

typedef struct {
    const noise_state *noise;
    uint64_t stream;
    int32_t *classes; /* (negative + 1), the target first */
    real *scores;     /* dcme_stride(negative + 1) */
    real *weights;    /* dcme_stride(negative + 1) */
} thread_state;

static void close_shared(void *shared) {
    noise_state *noise = shared;
    free(noise->alias), free(noise->offset), free(noise);
}

static dcme_status fill(noise_state *noise, int with_offset) {
    const dcme_problem *problem = noise->problem;
    int64_t classes = problem->model->classes;
    double *q = dcme_allocate(classes, sizeof *q);
    noise->alias = dcme_allocate(classes, sizeof *noise->alias);
    noise->offset = with_offset ? dcme_allocate(classes, sizeof *noise->offset) : NULL;
    dcme_status status = DCME_NO_MEMORY;
    if (q && noise->alias && (noise->offset || !with_offset)) {
        double total =
            dcme_noise_weights(q, problem->counts, classes, problem->options->noise_power);
        for (int64_t j = 0; with_offset && j < classes; j++)
            noise->offset[j] =
                (real)(log((double)classes) + log(problem->options->negative * q[j] / total));
        status = dcme_alias_build(noise->alias, q, classes);
    }
    free(q);
    return status;
}

static dcme_status open_noise(void **shared, const dcme_problem *problem, int with_offset,
                              dcme_error *error) {
    noise_state *noise = dcme_allocate_zeros(1, sizeof *noise);
    dcme_status status = DCME_NO_MEMORY;
    if (noise) {
        noise->problem = problem;
        status = fill(noise, with_offset);
    }
    if (status != DCME_OK) {
        if (noise)
            close_shared(noise);
        if (status == DCME_BAD_ARGUMENT)
            return dcme_fail(error, status, 0, "no noise can be drawn by counts to this power");
        return dcme_no_memory(error, problem->model->classes * (int64_t)sizeof(double) * 3,
                              "the noise distribution", "give fewer classes");
    }
    *shared = noise;
    return DCME_OK;
}

static dcme_status open_ns(void **shared, const dcme_problem *problem, dcme_error *error) {
    return open_noise(shared, problem, 0, error);
}

static dcme_status open_nce(void **shared, const dcme_problem *problem, dcme_error *error) {
    return open_noise(shared, problem, 1, error);
}

static void thread_close(void *thread) {
    thread_state *me = thread;
    if (!me)
        return;
    free(me->classes), free(me->scores), free(me->weights), free(me);
}

static dcme_status thread_open(void **thread, void *shared, dcme_error *error) {
    const noise_state *noise = shared;
    int64_t n = noise->problem->options->negative + 1;
    thread_state *me = dcme_allocate_zeros(1, sizeof *me);
    if (me) {
        me->noise = noise;
        me->classes = dcme_allocate(n, sizeof *me->classes);
        me->scores = dcme_allocate_zeros(dcme_stride(n), sizeof *me->scores);
        me->weights = dcme_allocate_zeros(dcme_stride(n), sizeof *me->weights);
    }
    if (!me || !me->classes || !me->scores || !me->weights) {
        thread_close(me);
        return dcme_no_memory(error, dcme_stride(n) * 3 * (int64_t)sizeof(real),
                              "a thread's samples", "lower --threads or --negative");
    }
    *thread = me;
    return DCME_OK;
}

static void seed(void *thread, uint64_t stream) { ((thread_state *)thread)->stream = stream; }

/* The target and the draws. */
static void draw(thread_state *me, int32_t target) {
    const dcme_problem *problem = me->noise->problem;
    me->classes[0] = target;
    for (int32_t k = 1; k <= problem->options->negative; k++)
        me->classes[k] = dcme_alias_draw(me->noise->alias, problem->model->classes, &me->stream);
}

/* Scores become the weights 1[j = i] - sigma(s_j - o_j). */
static void to_errors(thread_state *me, int64_t count, real weight, dcme_loss *loss) {
    const noise_state *noise = me->noise;
    for (int64_t j = 0; noise->offset && j < count; j++)
        me->scores[j] -= noise->offset[me->classes[j]];
    if (dcme_loss_wanted(loss, DCME_CLASS_LOSS_EVERY))
        dcme_loss_add(loss, (double)weight * dcme_logistic_loss(me->scores, count));
    noise->problem->model->kernels->residuals(me->weights, me->scores, count);
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    const dcme_linear *model = batch->model;
    int64_t count = me->noise->problem->options->negative + 1;
    for (int64_t d = 0; d < batch->count; d++) {
        const real *values = batch->values + batch->starts[d], weighted = rate * batch->weights[d];
        int64_t n = dcme_batch_rows(batch, d, model->weights, model->stride, 0, batch->rows);
        draw(me, batch->targets[d]);
        memset(me->scores, 0, (size_t)count * sizeof *me->scores);
        for (int64_t r = 0; r < n; r++)
            for (int64_t j = 0; j < count; j++)
                me->scores[j] += values[r] * batch->rows[r][me->classes[j]];
        to_errors(me, count, batch->weights[d], loss);
        for (int64_t r = 0; r < n; r++)
            for (int64_t j = 0; j < count; j++)
                batch->rows[r][me->classes[j]] += weighted * values[r] * me->weights[j];
    }
}

const dcme_class_objective dcme_class_nce = {
    .name = "nce",
    .open = open_nce,
    .close = close_shared,
    .thread_open = thread_open,
    .thread_close = thread_close,
    .seed = seed,
    .step = step,
};

const dcme_class_objective dcme_class_ns = {
    .name = "ns",
    .open = open_ns,
    .close = close_shared,
    .thread_open = thread_open,
    .thread_close = thread_close,
    .seed = seed,
    .step = step,
};
