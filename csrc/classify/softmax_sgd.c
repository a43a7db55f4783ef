/* Exact softmax by stochastic gradient descent on small batches.
 *
 * For scores s = W x and target i, ascend log p_i = s_i - log sum_j exp(s_j):
 * w_j += rate (1[j = i] - p_j) x (the gradient of (4)), for all documents of a batch at once; an
 * instance's weight multiplies its rate.
 */
#include "classify/objective.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const dcme_problem *problem;
    dcme_columns columns;
    real *errors; /* (batch, stride) */
} thread_state;

static dcme_status open_shared(void **shared, const dcme_problem *problem, dcme_error *error) {
    (void)error;
    *shared = (void *)problem;
    return DCME_OK;
}

static void close_shared(void *shared) { (void)shared; /* nothing of its own */ }

static void thread_close(void *thread) {
    thread_state *me = thread;
    if (!me)
        return;
    dcme_columns_close(&me->columns);
    free(me->errors);
    free(me);
}

static dcme_status thread_open(void **thread, void *shared, dcme_error *error) {
    const dcme_problem *problem = shared;
    int64_t batch = problem->options->batch;
    thread_state *me = dcme_allocate_zeros(1, sizeof *me);
    dcme_status status = DCME_NO_MEMORY;
    if (me) {
        me->problem = problem;
        me->errors = dcme_allocate(batch * problem->model->stride, sizeof *me->errors);
        status = dcme_columns_open(&me->columns, problem->model, batch, problem->widest);
    }
    if (status != DCME_OK || !me->errors) {
        thread_close(me);
        int64_t errors = batch * problem->model->stride * (int64_t)sizeof(real);
        int64_t columns = dcme_columns_bytes(problem->model->features + 1, batch, problem->widest);
        return dcme_no_memory(error, errors + columns, "the scores of a batch", "lower --batch");
    }
    *thread = me;
    return DCME_OK;
}

static void seed(void *thread, uint64_t stream) {
    (void)thread, (void)stream; /* nothing is drawn */
}

/* Probabilities become errors 1[j = i] - p_j; returns log p_i. */
static double to_errors(real *scores, int32_t target, const dcme_linear *model) {
    real score = scores[target];
    double partition = dcme_softmax(scores, model);
    for (int64_t j = 0; j < model->classes; j++)
        scores[j] = -scores[j];
    scores[target] += 1;
    return (double)score - partition;
}

/* W += rate X^T E */
static void update(thread_state *me, const dcme_batch *batch, real rate) {
    const dcme_linear *model = me->problem->model;
    dcme_columns *columns = &me->columns;
    int64_t total = columns->starts[columns->count];
    for (int64_t i = 0; i < total; i++)
        columns->values[i] *= rate * batch->weights[columns->documents[i]];
    for (int64_t column = 0; column < model->stride; column += DCME_BLOCK) {
        int64_t left = model->stride - column, width = left < DCME_BLOCK ? left : DCME_BLOCK;
        for (int64_t c = 0; c < columns->count; c++) {
            int64_t begin = columns->starts[c], n = columns->starts[c + 1] - begin;
            for (int64_t i = 0; i < n; i++)
                columns->rows[i] =
                    me->errors + columns->documents[begin + i] * model->stride + column;
            model->kernels->weighted_sum(model->weights + columns->feature[c] * model->stride +
                                             column,
                                         columns->rows, columns->values + begin, n, width);
        }
    }
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    const dcme_linear *model = batch->model;
    dcme_batch_scores(batch, 0, batch->count, me->errors, batch->rows);
    for (int64_t d = 0; d < batch->count; d++)
        dcme_loss_add(loss, -(double)batch->weights[d] * to_errors(me->errors + d * model->stride,
                                                                   batch->targets[d], model));
    dcme_columns_fill(&me->columns, batch);
    update(me, batch, rate);
}

const dcme_class_objective dcme_class_softmax_sgd = {
    .name = "gd",
    .open = open_shared,
    .close = close_shared,
    .thread_open = thread_open,
    .thread_close = thread_close,
    .seed = seed,
    .step = step,
};
