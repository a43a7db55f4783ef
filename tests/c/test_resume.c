/* A run that is stopped inside an epoch, saved, and restored into another run ends with the same
 * numbers as an uninterrupted one, for every objective of words and of classes; and a stop is
 * over once it was obeyed. With several threads, stopped at any time, nothing is lost: meant for
 * the thread sanitizer (make tsan), which detects data races.
 *
 * Compile it with all of csrc; include path csrc. Returns 0 on success.
 */
#define ALONE 250000 /* a shard is several sentence batches: a stop is inside it */
#include "small_problems.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECES = 4096, EPOCHS = 2, THREADS = 3 };

/* A run of words or of classes: its arguments and its tables. */
typedef struct {
    int32_t form, model, window_mode, threads; /* model -1: classes */
    dcme_trainer *trainer;
    dcme_classifier *classifier;
    dcme_engine *engine;
    real *numbers;
    size_t size;
    int64_t steps; /* until it stops, or -1 */
    dcme_work work;
} job;

/* The engine's own work, with a request to stop after some steps. */
static job *current;
static int64_t step(void *worker, int64_t position, int64_t end) {
    if (current->steps-- == 0)
        dcme_engine_stop(current->engine);
    return current->work.learn(worker, position, end);
}

static void open_job(job *j) {
    static dcme_work stepped;
    dcme_train_options words = word_options(j->model, j->window_mode, j->form, j->threads);
    dcme_classify_options classes = class_options(j->form, j->threads);
    if (j->model >= 0 && open_words(&j->trainer, &words, NULL) == DCME_OK)
        j->engine = dcme_trainer_engine(j->trainer);
    else if (j->model < 0 && open_classes(&j->classifier, &classes, NULL) == DCME_OK)
        j->engine = dcme_classifier_engine(j->classifier);
    else
        abort();
    j->numbers = j->model < 0 ? weights : tables;
    j->size = j->model < 0 ? sizeof weights : sizeof tables;
    j->steps = -1;
    j->work = *j->engine->work;
    stepped = j->work;
    stepped.learn = step;
    j->engine->work = &stepped;
    current = j;
}

static void close_job(job *j) {
    dcme_trainer_close(j->trainer);
    dcme_classifier_close(j->classifier);
    j->trainer = NULL, j->classifier = NULL;
}

static void open_job_again(job *j) {
    close_job(j);
    open_job(j);
}

static int run_from(job *j, int64_t epoch) {
    for (; epoch < EPOCHS; epoch++)
        if (dcme_engine_epoch(j->engine, epoch, NULL) != DCME_OK)
            return 0;
    return 1;
}

/* Copy the pieces of the state from or to `bytes`. */
static void copy_state(job *j, char *bytes, int put_back) {
    static dcme_piece pieces[PIECES];
    dcme_state state = {pieces, PIECES, 0};
    size_t at = 0;
    dcme_engine_state(j->engine, &state);
    for (int64_t i = 0; i < state.count; i++) {
        size_t size = (size_t)pieces[i].size;
        memcpy(put_back ? pieces[i].bytes : bytes + at, put_back ? bytes + at : pieces[i].bytes,
               size);
        at += size;
    }
}

static int same(const dcme_progress *a, const dcme_progress *b) {
    return a->trained == b->trained && a->subsampled == b->subsampled && a->loss == b->loss &&
           a->losses == b->losses && a->rate == b->rate;
}

/* Stop after some steps of the second epoch. */
static int check(job j) {
    static char whole[sizeof tables], stopped[sizeof tables], state[1 << 20];
    dcme_progress wanted, found;
    int good = 1;
    open_job(&j);
    good &= run_from(&j, 0);
    dcme_engine_progress(j.engine, &wanted);
    memcpy(whole, j.numbers, j.size);
    close_job(&j);

    open_job(&j);
    good &= dcme_engine_epoch(j.engine, 0, NULL) == DCME_OK;
    j.steps = 5;
    good &= dcme_engine_epoch(j.engine, 1, NULL) == DCME_STOPPED;
    good &= dcme_engine_unfinished(j.engine) == 1 && j.steps < 0;
    memcpy(stopped, j.numbers, j.size);
    copy_state(&j, state, 0);
    good &= dcme_engine_epoch(j.engine, 0, NULL) == DCME_BAD_ARGUMENT;
    good &= run_from(&j, 1) && memcmp(j.numbers, whole, j.size) == 0; /* the stop is over */
    close_job(&j);

    open_job(&j);
    copy_state(&j, state, 1);
    memcpy(j.numbers, stopped, j.size);
    good &= dcme_engine_restored(j.engine, NULL) == DCME_OK;
    good &= dcme_engine_unfinished(j.engine) == 1 && run_from(&j, 1);
    dcme_engine_progress(j.engine, &found);
    good &= memcmp(j.numbers, whole, j.size) == 0 && same(&wanted, &found);
    close_job(&j);
    if (!good)
        printf("resume: model %d, objective %d: differs from an uninterrupted run\n", j.model,
               j.form);
    return good;
}

/* Each number of a state of int32 and int64 that is far too large is an error or does no harm: what
 * it could name is not there. Meant for the address sanitizer. */
static int64_t check_crafted(job j) {
    static char state[1 << 20], bytes[1 << 20];
    static dcme_piece pieces[PIECES];
    dcme_state listed = {pieces, PIECES, 0};
    int64_t refused = 0;
    open_job(&j);
    j.steps = 5;
    if (dcme_engine_epoch(j.engine, 0, NULL) != DCME_STOPPED)
        abort();
    copy_state(&j, state, 0);
    dcme_engine_state(j.engine, &listed);
    for (int64_t i = 0, at = 0; i < listed.count; at += pieces[i++].size) {
        open_job_again(&j);
        memcpy(bytes, state, sizeof bytes);
        memset(bytes + at, 0x7d, (size_t)pieces[i].size);
        copy_state(&j, bytes, 1);
        if (dcme_engine_restored(j.engine, NULL) == DCME_OK)
            dcme_engine_epoch(j.engine, dcme_engine_unfinished(j.engine), NULL);
        else
            refused++;
        listed.count = 0;
        dcme_engine_state(j.engine, &listed);
    }
    close_job(&j);
    return refused;
}

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

/* All positions are learned in each epoch. */
static int check_threads(job j) {
    dcme_progress progress;
    dcme_status status = DCME_OK;
    j.threads = THREADS;
    open_job(&j);
    j.engine->work = &j.work; /* which counts no steps */
    for (int64_t epoch = 0; epoch < EPOCHS && status == DCME_OK; epoch++) {
        pthread_t watcher;
        int watched = pthread_create(&watcher, NULL, watch, j.engine) == 0;
        do
            status = dcme_engine_epoch(j.engine, epoch, NULL);
        while (status == DCME_STOPPED);
        if (watched)
            pthread_join(watcher, NULL);
    }
    dcme_engine_progress(j.engine, &progress);
    close_job(&j);
    int64_t learned = progress.trained + progress.subsampled + progress.without_context;
    int good = status == DCME_OK && learned == (j.model < 0 ? DOCUMENTS : TOKENS) * EPOCHS;
    if (!good)
        printf("threads: model %d, objective %d: positions are lost\n", j.model, j.form);
    return good;
}

int main(void) {
    int good = 1;
    make_problems();
    for (int32_t form = 0; form < FORMS; form++)
        for (int32_t kind = 0; kind < 4; kind++) {
            job words = {.form = form,
                         .model = kind == 3 ? DCME_SKIPGRAM : DCME_CBOW,
                         .window_mode = kind % 2,
                         .threads = 1};
            good &= check(words) & check_threads(words);
            if (kind == 1)
                good &= check_crafted(words) >= 3;
        }
    for (int32_t form = 0; form < CLASS_FORMS; form++) {
        job classes = {.form = form, .model = -1, .threads = 1};
        good &= check(classes) & check_threads(classes) & (check_crafted(classes) >= 3);
    }
    if (good)
        printf("resume: %d runs stopped and resumed\n", 4 * FORMS + CLASS_FORMS);
    return good ? 0 : 1;
}
