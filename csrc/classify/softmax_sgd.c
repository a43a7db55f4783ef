/* Exact softmax, or the squared hinge loss, by stochastic gradient descent on small batches.
 *
 * For scores s = W x and target i, ascend log p_i = s_i - log sum_j exp(s_j):
 * w_j += rate (1[j = i] - p_j) x (the gradient of (4)), for all documents of a batch at once; an
 * instance's weight multiplies its rate. The squared hinge loss is one class against the rest:
 * with y_j = 1 if j = i, else -1, descend sum_j max(0, M - y_j s_j)^2 / 2.
 */
#include "classify/objective.h"

/* M. The weights are proportional to it, so it has no effect on which score is the highest; with
 * this one, softmax of the scores is near the probabilities of the classes. */
#define MARGIN ((real)4)

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
    me->errors = dcme_take_unset(arena, batch * problem->model->stride, sizeof *me->errors);
    dcme_columns_open(&me->columns, arena, problem->model, batch, problem->widest);
}

static real missing(real score) { return MARGIN > score ? MARGIN - score : 0; }

/* The other labels of an instance's document, which are next to it, have no error: they are
 * examples of their own. */
static void pass_over_others(real *scores, const dcme_instances *instances, int64_t i) {
    for (int64_t k = i - 1; k >= 0 && instances->documents[k] == instances->documents[i]; k--)
        scores[instances->labels[k]] = -MARGIN;
    for (int64_t k = i + 1;
         k < instances->count && instances->documents[k] == instances->documents[i]; k++)
        scores[instances->labels[k]] = -MARGIN;
}

/* Scores become errors y_j max(0, M - y_j s_j); returns the loss for M = 1. */
static double hinge_errors(real *scores, int32_t target, const dcme_linear *model) {
    double sum = 0;
    for (int64_t j = 0; j < model->classes; j++) {
        real error = j == target ? missing(scores[j]) : -missing(-scores[j]);
        sum += (double)error * (double)error;
        scores[j] = error;
    }
    return sum / (2 * (double)MARGIN * (double)MARGIN);
}

/* The scores of instance d become its errors; returns its loss. */
static double errors_of(const thread_state *me, const dcme_batch *batch, int64_t d) {
    real *row = me->errors + d * batch->model->stride;
    if (me->problem->options->loss == DCME_CLASSIFY_SOFTMAX)
        return -dcme_softmax_errors(row, batch->targets[d], batch->model);
    pass_over_others(row, me->problem->instances, batch->numbers[d]);
    return hinge_errors(row, batch->targets[d], batch->model);
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    dcme_batch_scores(batch, 0, batch->count, me->errors, batch->rows);
    for (int64_t d = 0; d < batch->count; d++)
        dcme_loss_add(loss, (double)batch->weights[d] * errors_of(me, batch, d));
    dcme_columns_fill(&me->columns, batch);
    dcme_columns_update(&me->columns, batch, me->errors, rate);
}

const dcme_class_objective dcme_class_softmax_sgd = {
    .name = "gd",
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .own = {"the scores of a batch", "lower --batch"},
    .step = step,
};
