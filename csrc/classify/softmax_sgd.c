/* Exact softmax by stochastic gradient descent on small batches.
 *
 * For scores s = W x and target i, ascend log p_i = s_i - log sum_j exp(s_j):
 * w_j += rate (1[j = i] - p_j) x (the gradient of (4)), for all documents of a batch at once; an
 * instance's weight multiplies its rate.
 */
#include "classify/class_objective.h"

typedef struct {
    const dcme_problem *problem;
    dcme_columns columns;
    real *errors; /* (batch, stride) */
} thread_state;

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    int64_t batch = problem->options->batch;
    (void)shared;
    me->problem = problem;
    DCME_TAKE_UNSET(arena, me->errors, batch * problem->model->stride);
    dcme_columns_open(&me->columns, arena, problem->model, batch, problem->widest);
}

/* The scores of instance d become its errors; returns its loss. */
static double errors_of(const thread_state *me, const dcme_batch *batch, int64_t d) {
    real *row = me->errors + d * batch->model->stride;
    return -dcme_softmax_errors(row, batch->targets[d], batch->model);
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    dcme_batch_scores(batch, me->errors);
    for (int64_t d = 0; d < batch->count; d++)
        dcme_loss_add(loss, (double)batch->weights[d] * errors_of(me, batch, d));
    dcme_columns_fill(&me->columns, batch);
    dcme_columns_update(&me->columns, batch, me->errors, rate);
}

const dcme_class_objective dcme_class_softmax_sgd = {
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .own = {"the scores of a batch", "lower --batch"},
    .step = step,
};
