/* Continuous bag of words: a word is predicted from the mean of its context (Mikolov et al. 2013).
 *
 * h_t = (1 / m_t) sum of the m_t context rows; the objective answers with g_t, the direction of
 * ascent for h_t. The gradient of each context row is g_t / m_t (equation 18 of the DCME paper);
 * word2vec.c leaves the division out.
 */
#include "train/internal.h"

#include <stddef.h>

/* Share of g_t that goes to each context row whose weights sum to `total`. */
static real share(const dcme_train_options *options, real total) {
    return options->gradient == DCME_EXACT ? 1 / total : 1;
}

static void prefetch_input(const dcme_worker *worker, int64_t i) {
    const dcme_model *model = &worker->trainer->model;
    if (i < worker->passage.length)
        dcme_prefetch(model->input + worker->passage.words[i] * model->stride, model->stride);
}

static void announce(dcme_worker *worker, int64_t i) {
    if (i < worker->passage.length)
        worker->trainer->objective->announce(worker->member, worker->passage.words[i]);
}

static void announce_first(dcme_worker *worker) {
    for (int64_t i = 0; i < DCME_AHEAD; i++)
        announce(worker, i);
}

void dcme_learn_cbow(dcme_worker *worker) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_model *model = &trainer->model;
    const dcme_kernels *kernels = model->kernels;
    const dcme_passage *passage = &worker->passage;
    int64_t ahead = trainer->options.window + 1 + DCME_AHEAD;

    for (int64_t i = 0; i < ahead; i++)
        prefetch_input(worker, i);
    announce_first(worker);
    for (int64_t i = 0; i < passage->length; i++) {
        int64_t half = dcme_half_window(worker), count = 0;
        int64_t from = i - half > passage->begin[i] ? i - half : passage->begin[i];
        int64_t to = i + half + 1 < passage->end[i] ? i + half + 1 : passage->end[i];
        prefetch_input(worker, i + ahead);
        announce(worker, i + DCME_AHEAD);
        for (int64_t j = from; j < to; j++)
            if (j != i)
                worker->rows[count++] = model->input + passage->words[j] * model->stride;
        kernels->mean(worker->h, 1 / (real)count, worker->rows, count, model->stride);
        dcme_instance instance = {passage->words[i], passage->rate, worker->h, worker->gradient};
        trainer->objective->step(worker->member, &instance, &worker->loss);
        kernels->spread(worker->rows,
                        worker->input_scale * passage->rate * share(&trainer->options, (real)count),
                        worker->gradient, count, model->stride);
    }
    worker->trained += passage->length;
}

/* Sum of the weights of `count` words on one side. */
static int64_t side_weight(int64_t count, int64_t window, int linear) {
    if (count > window)
        count = window;
    return linear ? count * (window + 1) - count * (count + 1) / 2 : count;
}

/* The row that left the window last gets the sum of the directions it is owed. */
static void settle(dcme_worker *worker, int64_t i) {
    const dcme_passage *passage = &worker->passage;
    const dcme_model *model = &worker->trainer->model;
    dcme_sliding_sum(&worker->gradients, worker->moved, worker->input_scale * passage->rate);
    model->kernels->axpy(model->input + passage->words[i] * model->stride, 1, worker->moved,
                         model->stride);
}

/* One sentence with a fixed or linear window: contexts are running sums, and a row moves once, when
 * it leaves the window, by the running sum of the directions of all whose context it was. */
static void learn_sentence(dcme_worker *worker, int64_t begin, int64_t end) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_model *model = &trainer->model;
    const dcme_passage *passage = &worker->passage;
    int64_t c = trainer->options.window;
    int linear = worker->contexts.linear, exact = trainer->options.gradient == DCME_EXACT;

    dcme_sliding_reset(&worker->contexts);
    dcme_sliding_reset(&worker->gradients);
    for (int64_t p = begin; p < end + c; p++) { /* p enters the window of i = p - c */
        int64_t i = p - c;
        prefetch_input(worker, p + 2);
        dcme_sliding_push(&worker->contexts,
                          p < end ? model->input + passage->words[p] * model->stride : NULL, 1);
        if (i < begin)
            continue;
        real total =
            (real)(side_weight(i - begin, c, linear) + side_weight(end - 1 - i, c, linear));
        announce(worker, i + DCME_AHEAD);
        dcme_sliding_sum(&worker->contexts, worker->h, 1 / total);
        dcme_instance instance = {passage->words[i], passage->rate, worker->h, worker->gradient};
        trainer->objective->step(worker->member, &instance, &worker->loss);
        real scale = exact ? 1 / total : linear ? 1 / (real)c : 1;
        dcme_sliding_push(&worker->gradients, worker->gradient, scale);
        if (i - c >= begin)
            settle(worker, i - c);
    }
    for (int64_t i = end > begin + c ? end - c : begin; i < end; i++) {
        /* after the last word, the last c rows leave the window one by one */
        while (worker->gradients.pushed - 1 - c < i - begin)
            dcme_sliding_push(&worker->gradients, NULL, 1);
        settle(worker, i);
    }
}

void dcme_learn_cbow_sliding(dcme_worker *worker) {
    const dcme_passage *passage = &worker->passage;
    announce_first(worker);
    for (int64_t begin = 0; begin < passage->length; begin = passage->end[begin])
        learn_sentence(worker, begin, passage->end[begin]);
    worker->trained += passage->length;
}
