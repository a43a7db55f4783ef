/* Every objective of words and of classes with several threads, stopped in the middle and resumed:
 * nothing is lost. Meant for the thread sanitizer (make tsan), which detects data races.
 *
 * Compile it with all of csrc; include path csrc. Returns 0 on success.
 */
#include "small_problems.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 3, EPOCHS = 2 };

/* The caller, beside the threads: polls, and requests a stop. */
static void *watch(void *engine) {
    dcme_progress progress;
    for (int i = 0; i < 200; i++) {
        dcme_engine_progress(engine, &progress);
        dcme_engine_is_finite(engine, 0, 2 * WORD_COUNT);
    }
    dcme_engine_stop(engine);
    return NULL;
}

/* Run all epochs; whether `length` positions were learned in each. */
static int run(dcme_engine *engine, int64_t length) {
    dcme_error error = {0};
    dcme_progress progress;
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        pthread_t watcher;
        int watched = pthread_create(&watcher, NULL, watch, engine) == 0;
        dcme_status status;
        do
            status = dcme_engine_epoch(engine, epoch, &error);
        while (status == DCME_STOPPED);
        if (watched)
            pthread_join(watcher, NULL);
        if (status != DCME_OK) {
            printf("threads: %s\n", error.message);
            return 0;
        }
    }
    dcme_engine_progress(engine, &progress);
    return progress.trained + progress.subsampled + progress.without_context == length * EPOCHS;
}

static int check_words(int32_t model, int32_t window_mode, int32_t form) {
    dcme_train_options options = word_options(model, window_mode, form, THREADS);
    dcme_trainer *trainer;
    if (open_words(&trainer, &options, NULL) != DCME_OK)
        return 0;
    int good = run(dcme_trainer_engine(trainer), TOKENS);
    dcme_trainer_close(trainer);
    return good;
}

static int check_classes(int32_t form) {
    dcme_classify_options options = class_options(form, THREADS);
    dcme_classifier *classifier;
    if (open_classes(&classifier, &options, NULL) != DCME_OK)
        return 0;
    int good = run(dcme_classifier_engine(classifier), DOCUMENTS);
    dcme_classifier_close(classifier);
    return good;
}

int main(void) {
    int good = 1, runs = 0;
    make_problems();
    for (int32_t form = 0; form < FORMS; form++)
        for (int32_t kind = 0; kind < 4; kind++, runs++)
            good &= check_words(kind == 3 ? DCME_SKIPGRAM : DCME_CBOW, kind % 3, form);
    for (int32_t form = 0; form < CLASS_FORMS; form++, runs++)
        good &= check_classes(form);
    printf("threads: %d runs of %d threads\n", runs, THREADS);
    return good ? 0 : 1;
}
