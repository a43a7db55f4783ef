/* Continuous bag of words with fixed windows. Contexts are running sums. A row is updated only
 * once, when it leaves the window, by the running sum of the directions of all contexts that
 * contained the row. */
#include "words/internal.h"

/* Add the next direction to the window. If there is a position i, its row leaves the window and
 * receives the sum of its pending directions. */
static void push_direction(dcme_worker *worker, const real *direction, real scale, int64_t i) {
    const dcme_sentence_batch *batch = &worker->batch;
    const dcme_model *model = &worker->trainer->model;
    int64_t word = batch->words[dcme_max(i, 0)];
    dcme_sliding_push(&worker->gradients, direction, scale, model->input + word * model->stride,
                      batch->rate * dcme_input_rate(model, word));
}

/* Compute the context of position i from the rows up to the last one in its window. */
static void find_context(dcme_worker *worker, int64_t i, real *h, real total) {
    const dcme_sentence_batch *batch = &worker->batch;
    const dcme_model *model = &worker->trainer->model;
    int64_t begin = batch->begin[i], end = batch->end[i];
    dcme_sliding *contexts = &worker->contexts;
    for (int64_t p; (p = begin + contexts->pushed) <= i + contexts->window;) {
        dcme_prefetch_input(worker, p + 1 + worker->trainer->options.block);
        dcme_sliding_push(contexts, p < end ? model->input + batch->words[p] * model->stride : NULL,
                          1, h, 1 / total);
    }
}

/* Train on a sentence in blocks of nearly equal size, or of one target each if samples are not
 * shared. */
static void learn_sentence(dcme_worker *worker, int64_t begin, int64_t end) {
    const dcme_trainer *trainer = worker->trainer;
    int64_t c = trainer->options.window, stride = trainer->model.stride, length = end - begin;
    int64_t blocks = (length + trainer->options.block - 1) / trainer->options.block;
    int64_t ahead = trainer->options.block > 1 ? 0 : DCME_AHEAD; /* 0: this block */
    real totals[DCME_BLOCK_MAX];

    dcme_sliding_reset(&worker->contexts);
    dcme_sliding_reset(&worker->gradients);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = begin + length * b / blocks;
        int64_t count = begin + length * (b + 1) / blocks - first;
        DCME_CLEAR(worker->h, count * stride);
        for (int64_t t = 0, i = first; t < count; t++, i++) {
            totals[t] = (real)(dcme_min(i - begin, c) + dcme_min(end - 1 - i, c));
            dcme_draw_ahead(worker, i + ahead); /* one at a time: more would stall */
            find_context(worker, i, worker->h + t * stride, totals[t]);
        }
        dcme_sliding_finish(&worker->contexts);
        dcme_learn_targets(worker, first, count);
        for (int64_t t = 0, i = first; t < count; t++, i++) {
            real scale = dcme_input_weight(worker, totals[t]);
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

void dcme_learn_fixed_windows(dcme_worker *worker) {
    const dcme_sentence_batch *batch = &worker->batch;
    if (worker->trainer->options.block == 1)
        dcme_prefetch_first(worker);
    for (int64_t begin = 0; begin < batch->length; begin = batch->end[begin])
        learn_sentence(worker, begin, batch->end[begin]);
}
