/* Continuous bag of words: a word is predicted from the mean of its context (Mikolov et al. 2013).
 *
 * h_t = (1 / m_t) sum of the m_t input rows; the objective returns g_t, the direction of
 * ascent for h_t. The gradient of each input row is g_t / m_t (equation 18 of the DCME paper);
 * word2vec.c omits the division.
 *
 * With word order the score is v . (h_t + l_a + r_b): the words a and b just left and right of the
 * target have rows of their own in two more tables, l and r, in addition to those in h_t. They move
 * by a multiple of g_t at once. A target at an end of its sentence has one neighbor.
 */
#include "train/internal.h"

/* A row of a neighbor meets fewer targets than an input row, and is alone in its sum: it moves by
 * this times the learning rate. */
static const real NEIGHBOR_RATE = 4;

/* The rows of the neighbors of position i, at most two; with word order. */
static int64_t neighbor_rows(const dcme_worker *worker, int64_t i, real **rows) {
    const dcme_model *model = &worker->trainer->model;
    const dcme_sentence_batch *batch = &worker->batch;
    int64_t count = 0;
    if (i > batch->begin[i])
        rows[count++] = model->neighbors[0] + batch->words[i - 1] * model->stride;
    if (i + 1 < batch->end[i])
        rows[count++] = model->neighbors[1] + batch->words[i + 1] * model->stride;
    return count;
}

static void prefetch_neighbors(const dcme_worker *worker, int64_t i) {
    real *rows[2];
    if (!worker->trainer->model.neighbors[0] || i >= worker->batch.length)
        return;
    for (int64_t k = neighbor_rows(worker, i, rows); k-- > 0;)
        dcme_prefetch(rows[k], worker->trainer->model.stride);
}

/* Learn `count` targets from position i on, all of a block, from the contexts in the worker's h,
 * and leave the directions in its gradient. */
static void learn_targets(dcme_worker *worker, int64_t i, int64_t count) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_kernels *kernels = trainer->model.kernels;
    real rate = worker->batch.rate, *rows[2];
    int64_t stride = trainer->model.stride, size = trainer->model.size;
    int has_order = trainer->model.neighbors[0] != NULL;
    dcme_instance instances[DCME_BLOCK_MAX];

    for (int64_t t = 0; t < count; t++) {
        real *h = worker->h + t * stride;
        instances[t] = (dcme_instance){.target = worker->batch.words[i + t],
                                       .rate = rate,
                                       .h = h,
                                       .gradient = worker->gradient + t * stride};
        if (has_order)
            kernels->weighted_sum(h, rows, (const real[]){1, 1}, neighbor_rows(worker, i + t, rows),
                                  size);
    }
    if (trainer->objective->step_block)
        trainer->objective->step_block(worker->thread, instances, count, &worker->done->loss);
    else
        trainer->objective->step(worker->thread, instances, &worker->done->loss);
    for (int64_t t = 0; has_order && t < count; t++)
        dcme_rank1_update(kernels, rows, (const real[]){NEIGHBOR_RATE * rate, NEIGHBOR_RATE * rate},
                          instances[t].gradient, neighbor_rows(worker, i + t, rows), size);
}

/* Share of g_t for each input row if the weights sum to `total`. */
static real share(const dcme_train_options *options, real total) {
    return options->gradient == DCME_EXACT ? 1 / total : 1;
}

static void prefetch_input(const dcme_worker *worker, int64_t i) {
    const dcme_model *model = &worker->trainer->model;
    if (i < worker->batch.length)
        dcme_prefetch(model->input + worker->batch.words[i] * model->stride, model->stride);
}

void dcme_learn_cbow(dcme_worker *worker) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_model *model = &trainer->model;
    const dcme_kernels *kernels = model->kernels;
    const dcme_sentence_batch *batch = &worker->batch;
    int64_t ahead = trainer->options.window + 1 + DCME_AHEAD;
    real **rows = worker->rows, step = batch->rate;

    /* rows[] has no entry for the target, so that the rows of a context are adjacent: entries
     * before it are the words' own, later ones are one place down. */
    for (int64_t i = 1; i < batch->length; i++)
        rows[i - 1] = model->input + batch->words[i] * model->stride;
    for (int64_t i = 0; i < ahead; i++)
        prefetch_input(worker, i);
    dcme_prefetch_first(worker);
    for (int64_t i = 0; i < batch->length; i++) {
        dcme_span near = dcme_window_at(worker, i);
        real **context = rows + near.from;
        int64_t count = near.to - near.from - 1;
        prefetch_input(worker, i + ahead);
        dcme_prefetch_target(worker, i + DCME_AHEAD);
        prefetch_neighbors(worker, i + DCME_AHEAD);
        kernels->mean(worker->h, 1 / (real)count, context, count, model->size);
        learn_targets(worker, i, 1);
        kernels->add_to_rows(context, step * share(&trainer->options, (real)count),
                             worker->gradient, count, model->size);
        rows[i] = model->input + batch->words[i] * model->stride; /* the gap moves on */
    }
}

/* The next direction enters the window, which moves on to position i, if there is one: the row
 * there leaves, and gets the sum of its pending directions. */
static void push_direction(dcme_worker *worker, const real *direction, real scale, int64_t i) {
    const dcme_sentence_batch *batch = &worker->batch;
    const dcme_model *model = &worker->trainer->model;
    real *row = model->input + batch->words[dcme_max(i, 0)] * model->stride;
    dcme_sliding_push(&worker->gradients, direction, scale, row, batch->rate);
}

/* Prefetch rows that are needed soon: of a target of this block, or one some steps ahead. */
static void prefetch_step(dcme_worker *worker, int64_t i) {
    i += worker->trainer->objective->step_block ? 0 : DCME_AHEAD;
    dcme_prefetch_target(worker, i);
    prefetch_neighbors(worker, i);
}

/* The context of position i, from rows up to the last one of its window. */
static void find_context(dcme_worker *worker, int64_t i, real *h, real total) {
    const dcme_sentence_batch *batch = &worker->batch;
    const dcme_model *model = &worker->trainer->model;
    int64_t begin = batch->begin[i], end = batch->end[i];
    dcme_sliding *contexts = &worker->contexts;
    for (int64_t p; (p = begin + contexts->pushed) <= i + contexts->window;) {
        prefetch_input(worker, p + 1 + worker->trainer->options.block);
        dcme_sliding_push(contexts, p < end ? model->input + batch->words[p] * model->stride : NULL,
                          1, h, 1 / total);
    }
}

/* One sentence with a fixed window: contexts are running sums, and a row moves once, when
 * it leaves the window, by the running sum of the directions of all whose context it was. It is
 * learned in blocks of nearly equal size, of one target each if no samples are shared. */
static void learn_sentence(dcme_worker *worker, int64_t begin, int64_t end) {
    const dcme_trainer *trainer = worker->trainer;
    int64_t c = trainer->options.window, stride = trainer->model.stride, length = end - begin;
    int64_t blocks = (length + trainer->options.block - 1) / trainer->options.block;
    int exact = trainer->options.gradient == DCME_EXACT;
    real totals[DCME_BLOCK_MAX];

    dcme_sliding_reset(&worker->contexts);
    dcme_sliding_reset(&worker->gradients);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = begin + length * b / blocks;
        int64_t count = begin + length * (b + 1) / blocks - first;
        DCME_CLEAR(worker->h, count * stride);
        for (int64_t t = 0, i = first; t < count; t++, i++) {
            totals[t] = (real)(dcme_min(i - begin, c) + dcme_min(end - 1 - i, c));
            prefetch_step(worker, i); /* not of all at once, which would wait for memory */
            find_context(worker, i, worker->h + t * stride, totals[t]);
        }
        dcme_sliding_finish(&worker->contexts);
        learn_targets(worker, first, count);
        for (int64_t t = 0, i = first; t < count; t++, i++) {
            real scale = exact ? 1 / totals[t] : 1;
            push_direction(worker, worker->gradient + t * stride, scale, i - c);
        }
        dcme_sliding_finish(&worker->gradients);
    }
    for (int64_t i = dcme_max(end - c, begin); i < end; i++) {
        /* after the last word, the last c rows leave the window one by one */
        while (worker->gradients.pushed - 1 - c < i - begin)
            push_direction(worker, NULL, 1, i);
    }
    dcme_sliding_finish(&worker->gradients);
}

void dcme_learn_cbow_sliding(dcme_worker *worker) {
    const dcme_sentence_batch *batch = &worker->batch;
    if (!worker->trainer->objective->step_block)
        dcme_prefetch_first(worker);
    for (int64_t begin = 0; begin < batch->length; begin = batch->end[begin])
        learn_sentence(worker, begin, batch->end[begin]);
}
