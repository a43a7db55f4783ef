/* The squared one-vs-rest hinge loss, minimized by coordinate descent in the dual problem (Hsieh
 * et al. 2008). With y_j = 1 for a document's labels and -1 for all other classes, and scores
 * s = W x, it minimizes
 *     lambda |W|^2 / 2 + sum_i c_i sum_j max(0, M - y_j s_ij)^2 / 2,
 * where c_i is the weight of document i and lambda = l2 sum_i c_i. The weights are W = sum_i a_i
 * x_i^T, and at the optimum a_ij = y_j c_i / lambda max(0, M - y_j s_ij). A visit to a document
 * sets its a_ij to the values for which this equation holds while all others stay the same, so
 * there is no learning rate and no decay.
 *
 * Classes do not depend on each other. A batch is learned one strip of classes at a time: all
 * documents of the batch train the strip, one after the other, while its weights stay in the cache.
 * Then the next strip follows.
 */
#include "classify/hinge.h"

enum { STRIP = 8 * DCME_PAD };

typedef struct {
    const dcme_problem *problem;
    real *dual;    /* (instances, stride) a */
    double lambda; /* as above */
} shared_state;

typedef struct {
    const shared_state *shared;
    real *steps;     /* (widest) room for a document's values */
    double *squares; /* (batch) squared length of each document, including the bias */
    hinge_batch at;
} thread_state;

static void open_shared(void *shared, dcme_arena *arena, const dcme_problem *problem) {
    shared_state *state = shared;
    const dcme_instances *instances = problem->instances;
    double total = 0;
    for (int64_t i = 0; i < instances->count; i++)
        total += instances->weights ? instances->weights[i] : 1;
    state->problem = problem;
    state->lambda = problem->options->l2 * total;
    DCME_TAKE_SAVED(arena, state->dual, instances->count * problem->model->stride, 0);
}

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    int64_t batch = problem->options->batch;
    me->shared = shared;
    DCME_TAKE_UNSET(arena, me->steps, problem->widest);
    DCME_TAKE_UNSET(arena, me->squares, batch);
    open_hinge_batch(&me->at, arena, batch);
}

/* Return the step that makes a dual variable a_j optimal for a score, under the condition that y_j
 * a_j >= 0. */
static real step_of(real score, real dual, real sign, real ridge, real factor) {
    real next = dual + factor * (sign * MARGIN - score - ridge * dual);
    return (sign * next > 0 ? next : 0) - dual;
}

/* Turn the scores of some classes into steps, and add them to the dual variables; return the
 * loss. */
static double become_steps(real *scores, real *dual, int64_t width, const int32_t *label,
                           const int32_t *end, int64_t column, real ridge, real square) {
    real factor = 1 / (ridge + square);
    real own[STRIP];
    double loss = 0;
    for (const int32_t *one = label; one < end; one++)
        own[one - label] = scores[*one - column];
    for (int64_t j = 0; j < width; j++) {
        real missing = MARGIN + scores[j] > 0 ? MARGIN + scores[j] : 0;
        loss += missing * (double)missing;
        scores[j] = step_of(scores[j], dual[j], -1, ridge, factor);
    }
    for (const int32_t *one = label; one < end; one++) {
        real score = own[one - label], wrong = MARGIN + score > 0 ? MARGIN + score : 0;
        real missing = MARGIN > score ? MARGIN - score : 0;
        loss += missing * (double)missing - wrong * (double)wrong;
        scores[*one - column] = step_of(score, dual[*one - column], 1, ridge, factor);
    }
    for (int64_t j = 0; j < width; j++)
        dual[j] += scores[j];
    return loss;
}

/* Train classes column .. column + STRIP - 1 on a document. */
static void learn_strip(thread_state *me, dcme_batch *batch, int64_t d, int64_t column) {
    const dcme_linear *model = batch->model;
    const int32_t *labels = me->shared->problem->instances->labels;
    int64_t width = dcme_min(model->stride - column, STRIP);
    int64_t classes = dcme_min(model->classes - column, width);
    int64_t begin = me->at.places[d], n = batch->starts[d + 1] - batch->starts[d];
    real scores[STRIP], *values = batch->values + batch->starts[d];
    for (int64_t j = 0; j < width; j++)
        scores[j] = 0;
    dcme_batch_multiply(batch, d, model->weights, model->stride, column, width, scores);
    while (me->at.places[d] < me->at.ends[d] && labels[me->at.places[d]] < column + classes)
        me->at.places[d]++;
    me->at.losses[d] +=
        become_steps(scores, me->shared->dual + batch->numbers[d] * model->stride + column, classes,
                     labels + begin, labels + me->at.places[d], column,
                     (real)(me->shared->lambda / batch->weights[d]), (real)me->squares[d]);
    for (int64_t j = classes; j < width; j++)
        scores[j] = 0;
    for (int64_t line = 0, end; line < width; line = end) {
        int32_t moves = has_number(scores + line);
        for (end = line + DCME_PAD; end < width && has_number(scores + end) == moves;)
            end += DCME_PAD;
        if (!moves)
            continue;
        if (line > 0) /* dcme_batch_multiply has listed the rows from line 0 on */
            dcme_batch_rows(batch, d, model->weights, model->stride, column + line, batch->rows);
        dcme_rank1_update(model->kernels, batch->rows, values, scores + line, n, end - line);
    }
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    (void)rate;
    thread_state *me = thread;
    begin_hinge_batch(&me->at, batch, me->shared->problem->instances->sets);
    for (int64_t d = 0; d < batch->count; d++) {
        double sums[4] = {0, 0, 0, 0}; /* the additions need not wait for each other */
        for (int64_t at = batch->starts[d]; at < batch->starts[d + 1]; at++)
            sums[at & 3] += batch->values[at] * (double)batch->values[at];
        me->squares[d] = sums[0] + sums[1] + sums[2] + sums[3];
    }
    for (int64_t column = 0; column < batch->model->stride; column += STRIP)
        for (int64_t d = 0; d < batch->count; d++)
            learn_strip(me, batch, d, column);
    end_hinge_batch(&me->at, batch, loss);
}

const dcme_class_objective dcme_class_dual_hinge = {
    .open = open_shared,
    .shared_size = sizeof(shared_state),
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .step = step,
};
