/* CBOW with subwords, for all window modes. A word's vector is the mean of several rows: the word's
 * own row and the rows of its character n-grams (Bojanowski et al. 2017). The vector is computed
 * once, when the word enters the window; each target updates it; and the rows of the word are
 * updated once, when the word leaves the window. Each row moves by the whole sum of these updates,
 * as in fastText. */
#include "words/internal.h"

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
    for (int64_t i = 0; i < items; i++)
        most = dcme_max(subwords->starts[i + 1] - subwords->starts[i], most);
    return most + 1;
}

void dcme_word_window_open(dcme_word_window *window, dcme_arena *arena,
                           const dcme_subwords *subwords, int64_t items, int64_t half_window,
                           int64_t stride) {
    if (!subwords)
        return;
    window->slots = 2 * half_window + 1;
    DCME_TAKE(arena, window->vectors, window->slots * stride);
    DCME_TAKE(arena, window->before, window->slots * stride);
    DCME_TAKE(arena, window->rows, most_rows(subwords, items));
    DCME_TAKE(arena, window->weights, window->slots);
    DCME_TAKE(arena, window->context, window->slots);
}

/* List the rows of the word at a position in the batch, and return their number. */
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

void dcme_word_prefetch(dcme_worker *worker, int64_t position) {
    if (position >= worker->batch.length)
        return;
    int64_t count = rows_at(worker, position);
    for (int64_t k = 0; k < count; k++)
        dcme_prefetch(worker->words.rows[k], worker->trainer->model.stride);
}

real *dcme_word_vector(const dcme_worker *worker, int64_t position) {
    const dcme_word_window *words = &worker->words;
    return words->vectors + position % words->slots * worker->trainer->model.stride;
}

static real *before_at(const dcme_worker *worker, int64_t position) {
    return worker->words.before + (dcme_word_vector(worker, position) - worker->words.vectors);
}

void dcme_word_enter(dcme_worker *worker, int64_t position) {
    const dcme_model *model = &worker->trainer->model;
    int64_t count = rows_at(worker, position);
    real *vector = dcme_word_vector(worker, position);
    model->kernels->mean(vector, 1 / (real)count, worker->words.rows, count, model->stride);
    DCME_COPY(before_at(worker, position), vector, model->stride);
}

/* Add the change of the word's vector to each row of the word. */
void dcme_word_leave(dcme_worker *worker, int64_t position) {
    const dcme_model *model = &worker->trainer->model;
    int64_t count = rows_at(worker, position);
    const real *vector = dcme_word_vector(worker, position);
    real *moved = before_at(worker, position);
    for (int64_t d = 0; d < model->stride; d++)
        moved[d] = vector[d] - moved[d];
    model->kernels->weighted_sums(worker->words.rows, count, (const real[]){1}, 0, 0, &moved, 1,
                                  model->stride, NULL, NULL);
}

/* List the vectors around position i, and return their number. */
static int64_t look_around(dcme_worker *worker, int64_t i) {
    dcme_span window = dcme_window_at(worker, i);
    int64_t count = 0;
    for (int64_t j = window.from; j < window.to; j++)
        if (j != i)
            worker->words.context[count++] = dcme_word_vector(worker, j);
    return count;
}

static void set_weights(dcme_worker *worker, int64_t count, real weight) {
    for (int64_t k = 0; k < count; k++)
        worker->words.weights[k] = weight;
}

static void learn_target(dcme_worker *worker, int64_t i) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_kernels *kernels = trainer->model.kernels;
    const dcme_word_window *words = &worker->words;
    int64_t stride = trainer->model.stride, count = look_around(worker, i);
    DCME_CLEAR(worker->h, stride);
    set_weights(worker, count, 1 / (real)count);
    kernels->weighted_sum(worker->h, words->context, words->weights, count, stride);
    dcme_learn_target(worker, worker->batch.words[i], worker->h, worker->gradient);
    set_weights(worker, count, dcme_input_weight(worker, (real)count) * worker->batch.rate);
    dcme_rank1_update(kernels, words->context, words->weights, worker->gradient, count, stride);
}

void dcme_learn_subwords(dcme_worker *worker) {
    const dcme_sentence_batch *batch = &worker->batch;
    int64_t c = worker->trainer->options.window;
    dcme_prefetch_first(worker);
    for (int64_t begin = 0, end; begin < batch->length; begin = end) {
        end = batch->end[begin];
        for (int64_t p = begin; p < end + c;
             p++) { /* position p enters the window of position p - c */
            if (p < end) {
                dcme_word_prefetch(worker, p + 1);
                dcme_word_enter(worker, p);
            }
            if (p - c < begin)
                continue;
            dcme_draw_ahead(worker, p - c + DCME_AHEAD);
            learn_target(worker, p - c);
            if (p - 2 * c >= begin)
                dcme_word_leave(worker, p - 2 * c);
        }
        for (int64_t p = dcme_max(end - c, begin); p < end; p++)
            dcme_word_leave(worker, p);
    }
}
