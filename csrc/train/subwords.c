/* See subwords.h. CBOW and skip-gram with subwords, for all window modes. */
#include "train/subwords.h"

#include "train/internal.h"

#include <stdlib.h>
#include <string.h>

int dcme_subwords_valid(const dcme_subwords *subwords, int64_t items) {
    for (int64_t i = 0; i < items; i++)
        if (subwords->starts[i] > subwords->starts[i + 1])
            return 0;
    for (int64_t k = subwords->starts[0]; k < subwords->starts[items]; k++)
        if (subwords->ngrams[k] < 0 || subwords->ngrams[k] >= subwords->buckets)
            return 0;
    return subwords->starts[0] == 0;
}

static int64_t most_rows(const dcme_subwords *subwords, int64_t items) {
    int64_t most = 0;
    for (int64_t i = 0; i < items; i++) {
        int64_t count = subwords->starts[i + 1] - subwords->starts[i];
        most = count > most ? count : most;
    }
    return most + 1;
}

dcme_status dcme_word_window_open(dcme_word_window *window, const dcme_subwords *subwords,
                                  int64_t items, int64_t half_window, int64_t stride) {
    if (!subwords)
        return DCME_OK;
    window->slots = 2 * half_window + 1;
    window->vectors = dcme_allocate_zeros(window->slots * stride, sizeof *window->vectors);
    window->before = dcme_allocate_zeros(window->slots * stride, sizeof *window->before);
    window->rows = dcme_allocate(most_rows(subwords, items), sizeof *window->rows);
    window->weights = dcme_allocate(window->slots, sizeof *window->weights);
    window->context = dcme_allocate(window->slots, sizeof *window->context);
    int whole = window->vectors && window->before && window->rows && window->weights;
    return whole && window->context ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_word_window_close(dcme_word_window *window) {
    free(window->vectors);
    free(window->before);
    free(window->rows);
    free(window->weights);
    free(window->context);
}

/* List the rows of the word at a position of the batch; return how many there are. */
static int64_t rows_at(dcme_worker *worker, int64_t position) {
    const dcme_model *model = &worker->trainer->model;
    const dcme_subwords *subwords = worker->trainer->corpus.subwords;
    int64_t word = worker->batch.words[position], count = 1;
    real **rows = worker->words.rows, *ngrams = model->input + model->items * model->stride;
    rows[0] = model->input + word * model->stride;
    for (int64_t k = subwords->starts[word]; k < subwords->starts[word + 1]; k++)
        rows[count++] = ngrams + subwords->ngrams[k] * model->stride;
    return count;
}

static void prefetch_rows(dcme_worker *worker, int64_t position) {
    if (position >= worker->batch.length)
        return;
    int64_t count = rows_at(worker, position);
    for (int64_t k = 0; k < count; k++)
        dcme_prefetch(worker->words.rows[k], worker->trainer->model.stride);
}

static void prefetch_target(dcme_worker *worker, int64_t i) {
    if (i < worker->batch.length)
        worker->trainer->objective->prefetch(worker->thread, worker->batch.words[i]);
}

static real *vector_at(dcme_worker *worker, int64_t position) {
    const dcme_word_window *words = &worker->words;
    return words->vectors + position % words->slots * worker->trainer->model.stride;
}

static real *before_at(dcme_worker *worker, int64_t position) {
    const dcme_word_window *words = &worker->words;
    return words->before + position % words->slots * worker->trainer->model.stride;
}

/* A word enters the window. */
static void enter(dcme_worker *worker, int64_t position) {
    const dcme_model *model = &worker->trainer->model;
    int64_t count = rows_at(worker, position);
    real *vector = vector_at(worker, position);
    model->kernels->mean(vector, 1 / (real)count, worker->words.rows, count, model->stride);
    memcpy(before_at(worker, position), vector, (size_t)model->stride * sizeof *vector);
}

/* A word leaves the window: all its rows move as its vector has. */
static void leave(dcme_worker *worker, int64_t position) {
    const dcme_model *model = &worker->trainer->model;
    int64_t count = rows_at(worker, position);
    const real *vector = vector_at(worker, position);
    real *moved = before_at(worker, position);
    for (int64_t d = 0; d < model->stride; d++)
        moved[d] = vector[d] - moved[d];
    model->kernels->add_to_rows(worker->words.rows, 1, moved, count, model->stride);
}

/* List the vectors around position i with their weights, and return the sum of these. */
static real look_around(dcme_worker *worker, int64_t i, int64_t half, int64_t *count) {
    const dcme_train_options *options = &worker->trainer->options;
    const dcme_sentence_batch *batch = &worker->batch;
    dcme_word_window *words = &worker->words;
    int64_t from = i - half > batch->begin[i] ? i - half : batch->begin[i];
    int64_t to = i + half + 1 < batch->end[i] ? i + half + 1 : batch->end[i];
    real total = 0;
    *count = 0;
    for (int64_t j = from; j < to; j++) {
        int64_t distance = j < i ? i - j : j - i;
        if (j == i)
            continue;
        real weight =
            options->window_mode == DCME_LINEAR ? (real)(options->window + 1 - distance) : 1;
        words->weights[*count] = weight;
        words->context[(*count)++] = vector_at(worker, j);
        total += weight;
    }
    return total;
}

/* Scale the weights of `count` words. */
static void scale(dcme_worker *worker, int64_t count, real factor) {
    for (int64_t k = 0; k < count; k++)
        worker->words.weights[k] *= factor;
}

static void learn_target(dcme_worker *worker, int64_t i) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_train_options *options = &trainer->options;
    const dcme_kernels *kernels = trainer->model.kernels;
    const dcme_word_window *words = &worker->words;
    int64_t stride = trainer->model.stride, count;
    real total = look_around(worker, i, dcme_half_window(worker), &count);
    real rate = worker->batch.rate, share = 1 / (real)options->window;

    memset(worker->h, 0, (size_t)stride * sizeof *worker->h);
    scale(worker, count, 1 / total);
    kernels->weighted_sum(worker->h, words->context, words->weights, count, stride);
    dcme_instance instance = {.target = worker->batch.words[i],
                              .rate = rate,
                              .h = worker->h,
                              .gradient = worker->gradient};
    trainer->objective->step(worker->thread, &instance, &worker->done->loss);
    /* the weights are those of the exact gradient now; word2vec's is not divided */
    if (options->gradient != DCME_EXACT)
        scale(worker, count, options->window_mode == DCME_LINEAR ? total * share : total);
    scale(worker, count, worker->input_scale * rate);
    kernels->rank1_update(words->context, words->weights, worker->gradient, count, stride);
}

void dcme_learn_cbow_subwords(dcme_worker *worker) {
    const dcme_sentence_batch *batch = &worker->batch;
    int64_t c = worker->trainer->options.window;
    for (int64_t i = 0; i < DCME_AHEAD; i++)
        prefetch_target(worker, i);
    for (int64_t begin = 0, end; begin < batch->length; begin = end) {
        end = batch->end[begin];
        for (int64_t p = begin; p < end + c; p++) { /* p enters the window of p - c */
            if (p < end) {
                prefetch_rows(worker, p + 1);
                enter(worker, p);
            }
            if (p - c < begin)
                continue;
            prefetch_target(worker, p - c + DCME_AHEAD);
            learn_target(worker, p - c);
            if (p - 2 * c >= begin)
                leave(worker, p - 2 * c);
        }
        for (int64_t p = end - c > begin ? end - c : begin; p < end; p++)
            leave(worker, p);
    }
}

/* A word that predicts another one. */
typedef struct {
    int64_t position; /* of the word; -1 for none */
    int32_t target;
    real weight; /* 1, or less for a distant word of a linear window */
} pair;

static void learn_pair(dcme_worker *worker, pair p, int64_t *current) {
    const dcme_trainer *trainer = worker->trainer;
    if (p.position != *current) {
        if (*current >= 0)
            leave(worker, *current);
        *current = p.position;
        if (p.position >= 0)
            enter(worker, p.position);
    }
    if (p.position < 0)
        return;
    real *h = vector_at(worker, p.position);
    dcme_instance instance = {.target = p.target,
                              .rate = p.weight * worker->batch.rate,
                              .h = h,
                              .gradient = worker->gradient};
    trainer->objective->step(worker->thread, &instance, &worker->done->loss);
    trainer->model.kernels->axpy(h, worker->input_scale * instance.rate, worker->gradient,
                                 trainer->model.stride);
}

void dcme_learn_skipgram_subwords(dcme_worker *worker) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_sentence_batch *batch = &worker->batch;
    int64_t window = trainer->options.window, current = -1;
    int linear = trainer->options.window_mode == DCME_LINEAR;
    pair waiting = {-1, -1, 0};

    prefetch_rows(worker, 0);
    for (int64_t i = 0; i < batch->length; i++) {
        int64_t half = dcme_half_window(worker);
        int64_t from = i - half > batch->begin[i] ? i - half : batch->begin[i];
        int64_t to = i + half + 1 < batch->end[i] ? i + half + 1 : batch->end[i];
        prefetch_rows(worker, i + 1);
        for (int64_t j = from; j < to; j++) {
            if (j == i)
                continue;
            int64_t distance = j < i ? i - j : j - i;
            trainer->objective->prefetch(worker->thread, batch->words[j]);
            if (waiting.position >= 0)
                learn_pair(worker, waiting, &current);
            waiting = (pair){i, batch->words[j],
                             linear ? (real)(window + 1 - distance) / (real)window : 1};
        }
    }
    learn_pair(worker, waiting, &current);
    learn_pair(worker, (pair){-1, -1, 0}, &current);
}
