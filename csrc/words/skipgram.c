/* Skip-gram: the vector of a word, which is its row or the mean of its subword rows, predicts each
 * word of its context (Mikolov et al. 2013). */
#include "words/internal.h"

/* A word that predicts another word. Each pair is trained on after the next pair has been
 * prefetched, so that its rows are in the cache. */
typedef struct {
    int64_t position; /* position of the word, or -1 for none */
    int32_t target;
} pair;

/* Return the vector of the word in a pair. With subwords, if the word differs from the previous
 * one, the previous word leaves the window. */
static real *vector_of(dcme_worker *worker, int64_t position, int64_t *current) {
    const dcme_model *model = &worker->trainer->model;
    if (!worker->trainer->corpus.subwords)
        return position < 0 ? NULL : model->input + worker->batch.words[position] * model->stride;
    if (position != *current) {
        if (*current >= 0)
            dcme_word_leave(worker, *current);
        *current = position;
        if (position >= 0)
            dcme_word_enter(worker, position);
    }
    return position < 0 ? NULL : dcme_word_vector(worker, position);
}

static void learn_pair(dcme_worker *worker, pair p, int64_t *current) {
    const dcme_trainer *trainer = worker->trainer;
    real *h = vector_of(worker, p.position, current);
    if (!h)
        return;
    dcme_learn_target(worker, p.target, h, worker->gradient);
    dcme_axpy(trainer->model.kernels, h, worker->batch.rate, worker->gradient, trainer->model.size);
}

void dcme_learn_skipgram(dcme_worker *worker) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_sentence_batch *batch = &worker->batch;
    int64_t current = -1;
    pair none = {-1, -1}, waiting = none;

    for (int64_t i = 0; i < batch->length; i++) {
        dcme_span near = dcme_window_at(worker, i);
        if (trainer->corpus.subwords)
            dcme_word_prefetch(worker, i + 1);
        for (int64_t j = near.from; j < near.to; j++) {
            if (j == i)
                continue;
            dcme_draw_ahead(worker, j);
            if (waiting.position >= 0)
                learn_pair(worker, waiting, &current);
            waiting = (pair){i, batch->words[j]};
        }
    }
    learn_pair(worker, waiting, &current);
    learn_pair(worker, none, &current);
}
