/* Every objective and model with several threads, stopped in the middle and gone on with: no token
 * is lost. Meant for the thread sanitizer (make tsan), which sees what threads share.
 *
 * Compile it with all of csrc; include path csrc. Returns 0 on success.
 */
#include "train/train.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 60, LENGTH = 12000, DIM = 8, THREADS = 3, EPOCHS = 2 };

static uint32_t ids[LENGTH];
static int64_t counts[ITEMS];
static _Alignas(64) real tables[2 * ITEMS * DCME_PAD];

static dcme_train_options options_of(int32_t model, int32_t window_mode, int32_t objective,
                                     int32_t dcme_update) {
    return (dcme_train_options){.model = model,
                                .objective = objective,
                                .dim = DIM,
                                .window = 3,
                                .window_mode = window_mode,
                                .negative = 4,
                                .noise_power = 0.75,
                                .prior = 0.5,
                                .clusters = 4,
                                .top_items = 5,
                                .beta = 0.5,
                                .dcme_update = dcme_update,
                                .epochs = EPOCHS,
                                .sample = 1e-2,
                                .lr = 0.01,
                                .min_lr = 0.001,
                                .input_rate = 1,
                                .threads = THREADS};
}

/* What a caller does beside the threads: looks, and asks them to stop. */
static void *watch(void *trainer) {
    dcme_progress progress;
    for (int i = 0; i < 200; i++) {
        dcme_trainer_progress(trainer, &progress);
        dcme_trainer_is_finite(trainer, 0, 2 * ITEMS);
    }
    dcme_trainer_stop(trainer);
    return NULL;
}

static int check(dcme_train_options options) {
    dcme_corpus corpus = {ids, LENGTH, counts, ITEMS};
    dcme_trainer *trainer = NULL;
    dcme_progress progress;
    dcme_error error = {0};
    real *output = tables + ITEMS * dcme_stride(DIM);
    memset(tables, 0, sizeof tables);
    dcme_table_initialise(tables, ITEMS, DIM, 1);
    dcme_status status =
        dcme_trainer_open(&trainer, &options, &corpus, tables, output, NULL, &error);
    for (int64_t epoch = 0; epoch < EPOCHS && status == DCME_OK; epoch++) {
        pthread_t watcher;
        int watched = pthread_create(&watcher, NULL, watch, trainer) == 0;
        do
            status = dcme_trainer_epoch(trainer, epoch, &error);
        while (status == DCME_STOPPED);
        if (watched)
            pthread_join(watcher, NULL);
    }
    if (status != DCME_OK) {
        printf("threads: %s\n", error.message);
        return 0;
    }
    dcme_trainer_progress(trainer, &progress);
    dcme_trainer_close(trainer);
    return progress.trained + progress.subsampled + progress.without_context ==
           (int64_t)LENGTH * EPOCHS;
}

int main(void) {
    int good = 1, runs = 0;
    uint64_t random = 1;
    for (int64_t i = 0; i < LENGTH; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t a = (uint32_t)(random >> 33) % ITEMS, b = (uint32_t)(random >> 40) % ITEMS;
        uint32_t word = a < b ? a : b;
        ids[i] = word | (i % 17 == 16 ? DCME_SENTENCE_END : 0);
        counts[word]++;
    }
    for (int32_t objective = 0; objective < 4; objective++)
        for (int32_t kind = 0; kind < 4; kind++, runs++) {
            int32_t model = kind == 3 ? DCME_SKIPGRAM : DCME_CBOW;
            good &= check(options_of(model, kind % 3, objective < 3 ? objective : DCME_DCME,
                                     objective == 3 ? DCME_PAPER : DCME_ROBUST));
        }
    printf("threads: %d runs of %d threads\n", runs, THREADS);
    return good ? 0 : 1;
}
