/* Exact softmax by stochastic gradient descent on small batches.
 *
 * For scores s = W x and target i, ascend log p_i = s_i - log sum_j exp(s_j):
 * w_j += rate (1[j = i] - p_j) x (the gradient of (4)), for all documents of a batch at once; an
 * instance's weight multiplies its rate.
 */
#include "classify/objective.h"

#include <stdlib.h>

typedef struct {
    const dcme_problem *problem;
    dcme_columns columns;
    real *errors; /* (batch, stride) */
} thread_state;

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

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    const dcme_linear *model = batch->model;
    dcme_batch_scores(batch, 0, batch->count, me->errors, batch->rows);
    for (int64_t d = 0; d < batch->count; d++)
        dcme_loss_add(loss, -(double)batch->weights[d] *
                                dcme_softmax_errors(me->errors + d * model->stride,
                                                    batch->targets[d], model));
    dcme_columns_fill(&me->columns, batch);
    dcme_columns_update(&me->columns, batch, me->errors, rate);
}

const dcme_class_objective dcme_class_softmax_sgd = {
    .name = "gd",
    .open = dcme_share_problem,
    .close = dcme_close_nothing,
    .thread_open = thread_open,
    .thread_close = thread_close,
    .seed = dcme_draw_nothing,
    .step = step,
};
