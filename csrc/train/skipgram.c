/* Skip-gram: a word's row predicts each word of its context (Mikolov et al. 2013). */
#include "train/internal.h"

/* The pairs are learned one behind the pair that was prefetched, so that rows are in the cache. */
typedef struct {
    int32_t word, target;
    real weight; /* 1, or less for a distant word of a linear window */
} pair;

static void learn_pair(dcme_worker *worker, pair p) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_model *model = &trainer->model;
    real *h = model->input + p.word * model->stride;
    dcme_instance instance = {.target = p.target,
                              .rate = p.weight * worker->batch.rate,
                              .h = h,
                              .gradient = worker->gradient};
    trainer->objective->step(worker->thread, &instance, &worker->done->loss);
    model->kernels->axpy(h, worker->input_scale * instance.rate, worker->gradient, model->stride);
}

void dcme_learn_skipgram(dcme_worker *worker) {
    const dcme_trainer *trainer = worker->trainer;
    const dcme_sentence_batch *batch = &worker->batch;
    int64_t window = trainer->options.window;
    int linear = trainer->options.window_mode == DCME_LINEAR;
    pair waiting = {-1, -1, 0};

    for (int64_t i = 0; i < batch->length; i++) {
        int64_t half = dcme_half_window(worker);
        int64_t from = i - half > batch->begin[i] ? i - half : batch->begin[i];
        int64_t to = i + half + 1 < batch->end[i] ? i + half + 1 : batch->end[i];
        for (int64_t j = from; j < to; j++) {
            if (j == i)
                continue;
            int64_t distance = j < i ? i - j : j - i;
            trainer->objective->prefetch(worker->thread, batch->words[j]);
            if (waiting.word >= 0)
                learn_pair(worker, waiting);
            waiting = (pair){batch->words[i], batch->words[j],
                             linear ? (real)(window + 1 - distance) / (real)window : 1};
        }
    }
    if (waiting.word >= 0)
        learn_pair(worker, waiting);
}
