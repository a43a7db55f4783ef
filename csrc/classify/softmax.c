/* Exact softmax by stochastic gradient descent on small batches.
 *
 * For scores s = W x and target i, ascend log p_i = s_i - log sum_j exp(s_j):
 * w_j += rate e_j x with e_j = 1[j = i] - p_j (the gradient of (4)), for all documents of a batch
 * at once; an instance's weight, about 1 at most, multiplies its rate.
 */
#include "classify/class_objective.h"

typedef struct {
    dcme_columns columns;
    real *scores; /* (batch, stride) scores, which are replaced by the errors */
} thread_state;

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    int64_t batch = problem->options->batch;
    (void)shared;
    DCME_TAKE_UNSET(arena, me->scores, batch * problem->model->stride);
    dcme_columns_open(&me->columns, arena, problem->model, batch, problem->widest);
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    dcme_batch_scores(batch, me->scores);
    for (int64_t d = 0; d < batch->count; d++) {
        real *scores = me->scores + d * batch->model->stride;
        double log_p = dcme_softmax_errors(scores, batch->targets[d], batch->model);
        dcme_loss_add(loss, batch->weights[d] * -log_p);
    }
    dcme_columns_fill(&me->columns, batch);
    dcme_columns_update(&me->columns, batch, me->scores, rate);
}

const dcme_class_objective dcme_class_softmax = {
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .step = step,
};
