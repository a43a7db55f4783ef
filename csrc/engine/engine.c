/* See engine.h. */
#include "engine/engine.h"

#include <math.h>

enum { SPARE_LOSSES = 64 };

static const dcme_purpose THREADS = {"the threads", "lower --threads"};

dcme_status dcme_engine_open(dcme_engine *e, dcme_error *error) {
    e->epoch = -1;
    DCME_TAKE(&e->arena, e->threads, e->thread_count);
    DCME_SAVE(&e->arena, e->epoch);
    DCME_SAVE(&e->arena, e->next);
    for (int32_t i = 0; e->threads && i < e->thread_count; i++) {
        dcme_thread *t = &e->threads[i];
        t->engine = e;
        DCME_SAVE(&t->arena, t->position);
        DCME_SAVE(&t->arena, t->end);
        DCME_SAVE(&t->arena, t->done);
    }
    return dcme_arena_check(&e->arena, THREADS, error);
}

dcme_status dcme_engine_open_workers(dcme_engine *e, dcme_error *error) {
    const dcme_work *work = e->work;
    char *workers = dcme_take(&e->arena, e->thread_count, work->worker_size);
    DCME_TRY(dcme_arena_check(&e->arena, THREADS, error));
    for (dcme_thread *t = e->threads; t < e->threads + e->thread_count; t++) {
        t->worker = workers + (t - e->threads) * work->worker_size;
        DCME_TRY(work->open(e->job, t->worker, t, error));
    }
    return DCME_OK;
}

void dcme_engine_close(dcme_engine *e) {
    for (int32_t i = 0; e->threads && i < e->thread_count; i++)
        dcme_arena_close(&e->threads[i].arena);
    dcme_arena_close(&e->arena);
}

static void publish(dcme_thread *t) {
    const dcme_done *done = &t->done;
    t->trained = done->trained;
    t->subsampled = done->subsampled;
    t->without_context = done->without_context;
    t->losses = done->loss.count;
    t->loss = done->loss.sum;
    t->rate = done->rate;
}

/* Whether the losses so far are plausible for a run that learns. SPARE_LOSSES allows for the first
 * few losses, which may be high by chance. A negative loss would mean a probability above 1. */
static int is_learning(const dcme_thread *t) {
    double sum = t->done.loss.sum, worst = t->engine->worst, spare = worst * SPARE_LOSSES;
    if (!(worst > 0))
        return isfinite(sum);
    return sum >= -spare && sum <= worst * (double)t->done.loss.count + spare;
}

/* Train step by step; a stopped thread can be resumed. */
static void learn_unit(dcme_thread *t) {
    dcme_engine *e = t->engine;
    while (t->position < t->end && !e->stop) {
        t->position = e->work->learn(t->worker, t->position, t->end);
        publish(t);
        if (!is_learning(t)) {
            e->diverged = 1;
            e->stop = 1;
        }
    }
}

/* Train on the current unit, then on further units until none is left or the engine stops. */
static void *learn(void *argument) {
    dcme_thread *t = argument;
    dcme_engine *e = t->engine;
    for (;;) {
        learn_unit(t);
        if (e->stop)
            break;
        int64_t unit = e->next++;
        if (unit >= e->units)
            break;
        e->work->start_unit(t->worker, unit, &t->position, &t->end);
    }
    if (e->work->flush)
        e->work->flush(t->worker);
    return NULL;
}

dcme_status dcme_engine_epoch(dcme_engine *e, int64_t epoch, dcme_error *error) {
    if (e->epoch >= 0 && e->epoch != epoch)
        return dcme_fail(error, DCME_BAD_ARGUMENT, epoch, "another epoch is not finished");
    if (e->epoch < 0)
        e->next = 0;
    e->epoch = epoch;
    if (e->work->begin_epoch)
        e->work->begin_epoch(e->job, epoch);
    dcme_run_threads(learn, e->threads, sizeof *e->threads, e->thread_count);
    if (e->diverged)
        return dcme_fail(error, DCME_DIVERGED, epoch,
                         "the loss is not finite or exceeds the loss without training");
    if (atomic_exchange(&e->stop, 0))
        return dcme_fail(error, DCME_STOPPED, epoch, "stopped");
    e->epoch = -1;
    if (e->work->end_epoch)
        e->work->end_epoch(e->job, epoch);
    /* the losses say nothing about most rows or the last steps, so check all rows */
    if (!dcme_engine_is_finite(e, 0, INT64_MAX))
        return dcme_fail(error, DCME_DIVERGED, epoch, "a %s is not finite", e->row_name);
    return DCME_OK;
}

void dcme_engine_progress(const dcme_engine *e, dcme_progress *progress) {
    *progress = (dcme_progress){.rate = e->schedule.lr};
    for (int32_t i = 0; i < e->thread_count; i++) {
        const dcme_thread *t = &e->threads[i];
        double rate = t->rate;
        progress->trained += t->trained;
        progress->subsampled += t->subsampled;
        progress->without_context += t->without_context;
        progress->losses += t->losses;
        progress->loss += t->loss;
        if (rate > 0 && rate < progress->rate)
            progress->rate = rate;
    }
}

void dcme_engine_stop(dcme_engine *e) { e->stop = 1; }

int64_t dcme_engine_unfinished(const dcme_engine *e) { return e->epoch; }

void dcme_engine_state(const dcme_engine *e, dcme_state *state) {
    dcme_arena_list(&e->arena, state);
    for (int32_t i = 0; i < e->thread_count; i++)
        dcme_arena_list(&e->threads[i].arena, state);
}

dcme_status dcme_engine_check_state(dcme_engine *e, dcme_error *error) {
    int sound = dcme_arena_is_sound(&e->arena) && e->epoch >= -1 && e->epoch < e->schedule.epochs &&
                e->next >= 0;
    for (int32_t i = 0; i < e->thread_count; i++) {
        const dcme_thread *t = &e->threads[i];
        sound &= 0 <= t->position && t->position <= t->end && t->end <= e->schedule.length &&
                 t->end - t->position <= e->longest;
        sound &= dcme_arena_is_sound(&t->arena);
    }
    if (!sound)
        return dcme_fail(error, DCME_BAD_FORMAT, 0, "a saved position is outside the data");
    for (int32_t i = 0; i < e->thread_count; i++)
        publish(&e->threads[i]);
    return DCME_OK;
}

/* x times 0 is 0 if x is finite, otherwise NaN, so one sum checks a whole range. */
static int are_finite(const real *numbers, int64_t count) {
    real sums[DCME_PAD] = {0};
    int64_t i = 0;
    for (; i + DCME_PAD <= count; i += DCME_PAD)
        for (int64_t j = 0; j < DCME_PAD; j++)
            sums[j] += numbers[i + j] * 0;
    for (; i < count; i++)
        sums[0] += numbers[i] * 0;
    for (int64_t j = 1; j < DCME_PAD; j++)
        sums[0] += sums[j];
    return sums[0] == 0;
}

int dcme_engine_is_finite(const dcme_engine *e, int64_t from, int64_t to) {
    int finite = 1;
    for (int i = 0; i < DCME_TABLES; i++) {
        const dcme_table *table = &e->tables[i];
        int64_t begin = dcme_max(from, 0), end = dcme_min(to, table->count);
        if (begin < end)
            finite &=
                are_finite(table->rows + begin * table->stride, (end - begin) * table->stride);
        from -= table->count, to -= table->count;
    }
    return finite;
}
