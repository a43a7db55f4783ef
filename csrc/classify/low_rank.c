/* Exact softmax of low rank by stochastic gradient descent on small batches.
 *
 * The hidden layer h = W^T x has fewer columns than there are classes, and scores are s_j = f_j .
 * h. For target i, ascend log p_i: with e_j = 1[j = i] - p_j, f_j += rate e_j h, and W += rate x
 * g^T, g = sum_j e_j f_j; an instance's weight multiplies its rate. Biases of the classes come from
 * the constant feature of x, through h.
 */
#include "classify/objective.h"

#include <stdlib.h>

typedef struct {
    const dcme_problem *problem;
    dcme_linear classes; /* for the softmax: no weights */
    dcme_columns columns;
    real *hidden;    /* (batch, the model's stride) */
    real *gradients; /* the same */
    real *scores;    /* (stride of the classes) */
    real **rows;     /* (classes) f_j */
} thread_state;

static void thread_close(void *thread) {
    thread_state *me = thread;
    if (!me)
        return;
    dcme_columns_close(&me->columns);
    free(me->hidden), free(me->gradients), free(me->scores), free(me->rows);
    free(me);
}

static dcme_status allocate(thread_state *me, const dcme_problem *problem) {
    int64_t batch = problem->options->batch, stride = problem->model->stride;
    int64_t classes = problem->output->classes;
    me->problem = problem;
    me->classes = (dcme_linear){
        .classes = classes, .stride = dcme_stride(classes), .kernels = problem->model->kernels};
    me->hidden = dcme_allocate(batch * stride, sizeof *me->hidden);
    me->gradients = dcme_allocate(batch * stride, sizeof *me->gradients);
    me->scores = dcme_allocate(me->classes.stride, sizeof *me->scores);
    me->rows = dcme_allocate(classes, sizeof *me->rows);
    dcme_status status = dcme_columns_open(&me->columns, problem->model, batch, problem->widest);
    if (!me->hidden || !me->gradients || !me->scores || !me->rows)
        return DCME_NO_MEMORY;
    for (int64_t j = 0; j < classes; j++)
        me->rows[j] = problem->output->weights + j * stride;
    return status;
}

static dcme_status thread_open(void **thread, void *shared, dcme_error *error) {
    const dcme_problem *problem = shared;
    thread_state *me = dcme_allocate_zeros(1, sizeof *me);
    if (!me || allocate(me, problem) != DCME_OK) {
        thread_close(me);
        int64_t batch = problem->options->batch;
        int64_t layers = 2 * batch * problem->model->stride * (int64_t)sizeof(real);
        int64_t columns = dcme_columns_bytes(problem->model->features + 1, batch, problem->widest);
        return dcme_no_memory(error, layers + columns, "the scores of a batch", "lower --batch");
    }
    *thread = me;
    return DCME_OK;
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
    dcme_batch_scores(batch, 0, batch->count, me->hidden, batch->rows);
    for (int64_t d = 0; d < batch->count; d++)
        dcme_loss_add(loss, (double)batch->weights[d] * learn(me, batch, d, rate));
    dcme_columns_fill(&me->columns, batch);
    dcme_columns_update(&me->columns, batch, me->gradients, rate);
}

static void shrink(void *shared, real factor) {
    const dcme_problem *problem = shared;
    int64_t count = problem->output->classes * problem->model->stride;
    for (int64_t i = 0; i < count; i++)
        problem->output->weights[i] *= factor;
}

const dcme_class_objective dcme_class_low_rank = {
    .name = "gd, of low rank",
    .open = dcme_share_problem,
    .close = dcme_close_nothing,
    .thread_open = thread_open,
    .thread_close = thread_close,
    .seed = dcme_draw_nothing,
    .step = step,
    .shrink = shrink,
};
