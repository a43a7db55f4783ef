/* Exact softmax of low rank by stochastic gradient descent on small batches.
 *
 * The hidden layer h = W^T x has fewer columns than there are classes, and scores are s_j = f_j .
 * h. For target i, ascend log p_i: with e_j = 1[j = i] - p_j, f_j += rate e_j h, and W += rate x
 * g^T, g = sum_j e_j f_j; an instance's weight multiplies its rate. Biases of the classes come from
 * the constant feature of x, through h.
 */
#include "classify/class_objective.h"

typedef struct {
    dcme_linear classes; /* for the softmax: no weights */
    dcme_columns columns;
    real *hidden;    /* (batch, the model's stride) */
    real *gradients; /* the same */
    real *scores;    /* (stride of the classes) */
    real **rows;     /* (classes) f_j */
} thread_state;

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    int64_t batch = problem->options->batch, stride = problem->model->stride;
    int64_t classes = problem->output->classes;
    (void)shared;
    me->classes = (dcme_linear){
        .classes = classes, .stride = dcme_stride(classes), .kernels = problem->model->kernels};
    DCME_TAKE_UNSET(arena, me->hidden, batch * stride);
    DCME_TAKE_UNSET(arena, me->gradients, batch * stride);
    DCME_TAKE(arena, me->scores, me->classes.stride);
    DCME_TAKE(arena, me->rows, classes);
    dcme_columns_open(&me->columns, arena, problem->model, batch, problem->widest);
    for (int64_t j = 0; me->rows && j < classes; j++)
        me->rows[j] = problem->output->weights + j * stride;
}

/* Learn f_j of all classes from an instance; its gradient by h stays. Returns -log p_i. */
static double learn(thread_state *me, const dcme_batch *batch, int64_t d, real rate) {
    const dcme_kernels *kernels = me->classes.kernels;
    int64_t stride = batch->model->stride, classes = me->classes.classes;
    const real *h = me->hidden + d * stride;
    kernels->dots(me->scores, h, me->rows, classes, stride);
    double log_p = dcme_softmax_errors(me->scores, batch->targets[d], &me->classes);
    kernels->update(me->gradients + d * stride, h, me->rows, me->scores, rate * batch->weights[d],
                    classes, stride);
    return -log_p;
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    dcme_batch_scores(batch, me->hidden);
    for (int64_t d = 0; d < batch->count; d++)
        dcme_loss_add(loss, (double)batch->weights[d] * learn(me, batch, d, rate));
    dcme_columns_fill(&me->columns, batch);
    dcme_columns_update(&me->columns, batch, me->gradients, rate);
}

static void shrink(const dcme_problem *problem, void *shared, real factor) {
    const dcme_output *output = problem->output;
    (void)shared;
    dcme_scale(output->weights, factor, output->weights, output->classes * problem->model->stride);
}

const dcme_class_objective dcme_class_low_rank = {
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .own = {"the scores of a batch", "lower --batch"},
    .step = step,
    .shrink = shrink,
};
