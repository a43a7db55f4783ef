/* Exact softmax by stochastic gradient descent on small batches.
 *
 * For scores s = W x and target i, ascend log p_i = s_i - log sum_j exp(s_j):
 * w_j += rate e_j x with e_j = 1[j = i] - p_j (the gradient of (4)), for all documents of a batch
 * at once; an instance's weight multiplies its rate.
 *
 * Of low rank, the hidden layer h = W^T x has fewer columns than there are classes, and scores are
 * s_j = f_j . h. Then f_j += rate e_j h, and W += rate x g^T, g = sum_j e_j f_j. Biases of the
 * classes come from the constant feature of x, through h.
 */
#include "classify/class_objective.h"

typedef struct {
    dcme_columns columns;
    real *scores; /* (batch, stride) errors afterwards; of low rank: h */
    real *errors; /* the same, or the gradients by h */

    /* of low rank */
    dcme_linear classes; /* for the softmax: no weights */
    real *own;           /* (stride of the classes) scores */
    real **rows;         /* (classes) f_j; NULL if the columns of W are the classes */
} thread_state;

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    const dcme_linear *model = problem->model;
    const dcme_output *output = problem->output;
    int64_t batch = problem->options->batch;
    (void)shared;
    DCME_TAKE_UNSET(arena, me->scores, batch * model->stride);
    me->errors = me->scores;
    dcme_columns_open(&me->columns, arena, model, batch, problem->widest);
    if (!output)
        return;
    me->classes = (dcme_linear){.classes = output->classes,
                                .stride = dcme_stride(output->classes),
                                .kernels = model->kernels};
    DCME_TAKE_UNSET(arena, me->errors, batch * model->stride);
    DCME_TAKE(arena, me->own, me->classes.stride);
    DCME_TAKE(arena, me->rows, output->classes);
    for (int64_t j = 0; me->rows && j < output->classes; j++)
        me->rows[j] = output->weights + j * model->stride;
}

/* Instance d's scores become errors, or learn f_j of all classes from it; returns log p_i. */
static double learn(thread_state *me, const dcme_batch *batch, int64_t d, real rate) {
    const dcme_kernels *kernels = batch->model->kernels;
    int64_t stride = batch->model->stride, classes = me->classes.classes;
    real *h = me->scores + d * stride;
    if (!me->rows)
        return dcme_softmax_errors(h, batch->targets[d], batch->model);
    dcme_dots(kernels, me->own, h, me->rows, classes, stride);
    double log_p = dcme_softmax_errors(me->own, batch->targets[d], &me->classes);
    kernels->update(me->errors + d * stride, h, me->rows, me->own, rate * batch->weights[d],
                    classes, stride);
    return log_p;
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    dcme_batch_scores(batch, me->scores);
    for (int64_t d = 0; d < batch->count; d++)
        dcme_loss_add(loss, batch->weights[d] * -learn(me, batch, d, rate));
    dcme_columns_fill(&me->columns, batch);
    dcme_columns_update(&me->columns, batch, me->errors, rate);
}

static void shrink(const dcme_problem *problem, void *shared, real factor) {
    const dcme_output *output = problem->output;
    (void)shared;
    if (output)
        dcme_scale(output->weights, factor, output->weights,
                   output->classes * problem->model->stride);
}

const dcme_class_objective dcme_class_softmax = {
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .own = {"the scores of a batch", "lower --batch"},
    .step = step,
    .shrink = shrink,
};
