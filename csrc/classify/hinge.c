/* The squared one-vs-rest hinge loss, by stochastic gradient descent on small batches: with y_j =
 * 1 for a document's labels, y_j = -1 for all other classes, and scores s = W x, descend sum_j
 * max(0, M - y_j s_j)^2 / 2. A document is one example with the set of its labels.
 *
 * The loss is a sum over classes, so scores, errors and updates are computed for one strip of
 * classes at a time, whose weights stay in the cache in between. Most errors are 0: only lines of
 * classes (DCME_PAD, a cache line of weights) with an error are updated. If documents have label
 * sets, most classes are rare. Then a line whose scores were all at most -M - SLACK at the
 * document's last visit is not scored again, as in the shrinking of Joachims (1999) and LIBLINEAR.
 * Lines with one of the document's labels are always scored.
 */
#include "classify/hinge.h"

/* With this value, epochs after the first take a third of the time on EURLEX57K, and the precision
 * stays the same. */
#define SLACK ((real)1)

/* Number of classes per strip. The weights of a strip for a batch's features fit in the cache, and
 * one byte has a bit for each line of the strip. */
enum { STRIP = 8 * DCME_PAD };

typedef struct {
    const dcme_problem *problem;
    int64_t strips;
    uint8_t *awake; /* (instances, strips) one bit per line to score; NULL: all lines */
} shared_state;

typedef struct {
    const shared_state *shared;
    real *errors; /* (batch, STRIP) */
    real *steps;  /* (widest) a document's values times the learning rate */
    hinge_batch at;
} thread_state;

static void open_shared(void *shared, dcme_arena *arena, const dcme_problem *problem) {
    shared_state *state = shared;
    state->problem = problem;
    state->strips = (problem->model->stride + STRIP - 1) / STRIP;
    if (!problem->instances->sets)
        return;
    int64_t bytes = problem->instances->count * state->strips;
    DCME_TAKE_SAVED(arena, state->awake, bytes, 0);
    if (state->awake)
        memset(state->awake, 255, bytes);
}

static void thread_open(void *thread, dcme_arena *arena, const dcme_problem *problem,
                        void *shared) {
    thread_state *me = thread;
    int64_t batch = problem->options->batch;
    me->shared = shared;
    DCME_TAKE_UNSET(arena, me->errors, batch * STRIP);
    DCME_TAKE_UNSET(arena, me->steps, problem->widest);
    open_hinge_batch(&me->at, arena, batch);
}

static real missing(real score) { return MARGIN > score ? MARGIN - score : 0; }

/* Turn the scores of some classes into errors y_j max(0, M - y_j s_j), and add their squares to the
 * document's loss. `label` is the document's next label; return the first label after the strip. */
static const int32_t *become_errors(real *scores, int64_t column, int64_t width,
                                    const int32_t *label, const int32_t *end, double *loss) {
    real missed[STRIP];
    const int32_t *next = label;
    for (; next < end && *next < column + width; next++)
        missed[next - label] = missing(scores[*next - column]);
    for (int64_t j = 0; j < width; j++)
        scores[j] = -missing(-scores[j]);
    for (const int32_t *one = label; one < next; one++)
        scores[*one - column] = missed[one - label];
    for (int64_t j = 0; j < width; j++)
        *loss += scores[j] * (double)scores[j];
    return next;
}

/* w_j += rate e_j x for the classes of a strip that have an error. */
static void update(thread_state *me, dcme_batch *batch, int64_t d, int64_t column, int64_t width,
                   real rate) {
    const dcme_linear *model = batch->model;
    const real *values = batch->values + batch->starts[d], *errors = me->errors + d * STRIP;
    int64_t n = batch->starts[d + 1] - batch->starts[d];
    dcme_scale(me->steps, rate * batch->weights[d], values, n);
    for (int64_t line = 0; line < width; line += DCME_PAD) {
        if (!has_number(errors + line))
            continue;
        dcme_batch_rows(batch, d, model->weights, model->stride, column + line, batch->rows);
        dcme_rank1_update(model->kernels, batch->rows, me->steps, errors + line, n, DCME_PAD);
    }
}

/* Score the active lines; the others have no error. */
static void score(real *scores, dcme_batch *batch, int64_t d, int64_t column, int64_t width,
                  uint8_t awake) {
    const dcme_linear *model = batch->model;
    for (int64_t line = 0, end; line < width; line = end) {
        int scored = awake >> line / DCME_PAD & 1;
        for (end = line + DCME_PAD; end < width && (awake >> end / DCME_PAD & 1) == scored;)
            end += DCME_PAD;
        for (int64_t j = line; j < end; j++)
            scores[j] = scored ? 0 : -2 * MARGIN;
        if (!scored)
            continue;
        dcme_batch_multiply(batch, d, model->weights, model->stride, column + line, end - line,
                            scores + line);
    }
}

/* Return the lines of a strip to score: lines that were active, and lines that contain a label of
 * the document. */
static uint8_t lines_to_score(const thread_state *me, int64_t instance, int64_t d, int64_t column) {
    const shared_state *state = me->shared;
    const int32_t *labels = state->problem->instances->labels;
    if (!state->awake)
        return 255;
    uint8_t awake = state->awake[instance * state->strips + column / STRIP];
    for (int64_t i = me->at.places[d]; i < me->at.ends[d] && labels[i] < column + STRIP; i++)
        awake |= (uint8_t)(1 << (labels[i] - column) / DCME_PAD);
    return awake;
}

static void stay_awake(const thread_state *me, int64_t instance, const real *scores, int64_t column,
                       int64_t classes) {
    uint8_t awake = 0;
    if (!me->shared->awake)
        return;
    for (int64_t line = 0; line < classes; line += DCME_PAD) {
        int32_t above = 0;
        for (int64_t j = line; j < line + DCME_PAD; j++)
            above |= scores[j] > -MARGIN - SLACK;
        awake |= (uint8_t)(above << line / DCME_PAD);
    }
    me->shared->awake[instance * me->shared->strips + column / STRIP] = awake;
}

/* Train classes column .. column + STRIP - 1 on a batch. */
static void learn_strip(thread_state *me, dcme_batch *batch, int64_t column, real rate) {
    const dcme_linear *model = batch->model;
    const int32_t *labels = me->shared->problem->instances->labels;
    int64_t width = dcme_min(model->stride - column, STRIP);
    int64_t classes = dcme_min(model->classes - column, width);
    for (int64_t d = 0; d < batch->count; d++) {
        real *scores = me->errors + d * STRIP;
        score(scores, batch, d, column, width, lines_to_score(me, batch->numbers[d], d, column));
        stay_awake(me, batch->numbers[d], scores, column, classes);
        const int32_t *next = become_errors(scores, column, classes, labels + me->at.places[d],
                                            labels + me->at.ends[d], me->at.losses + d);
        me->at.places[d] = next - labels;
        for (int64_t j = classes; j < width; j++)
            scores[j] = 0;
    }
    for (int64_t d = 0; d < batch->count; d++)
        update(me, batch, d, column, width, rate);
}

static void step(void *thread, dcme_batch *batch, real rate, dcme_loss *loss) {
    thread_state *me = thread;
    begin_hinge_batch(&me->at, batch, me->shared->problem->instances->sets);
    for (int64_t column = 0; column < batch->model->stride; column += STRIP)
        learn_strip(me, batch, column, rate);
    end_hinge_batch(&me->at, batch, loss);
}

const dcme_class_objective dcme_class_hinge = {
    .open = open_shared,
    .shared_size = sizeof(shared_state),
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .step = step,
};
