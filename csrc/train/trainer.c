/* Opens and closes a training run, and runs its threads for an epoch. */
#include "train/internal.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

dcme_status dcme_table_initialise(real *table, int64_t items, int64_t dim, int64_t seed) {
    int64_t stride = dcme_row_stride(items, dim);
    for (int64_t i = 0; i < items; i++) {
        uint64_t stream = dcme_stream((uint64_t)seed, 0, (uint64_t)i, DCME_INITIAL);
        for (int64_t d = 0; d < stride; d++)
            table[i * stride + d] =
                d < dim ? ((real)(dcme_random(&stream) >> 40) / 16777216 - (real)0.5) / (real)dim
                        : 0;
    }
    return DCME_OK;
}

/* A word of share f is kept with probability sqrt(s / f) + s / f (word2vec.c's form). */
static void fill_keep(uint32_t *keep, const dcme_corpus *corpus, double sample) {
    double words = 0;
    for (int64_t i = 0; i < corpus->items; i++)
        words += (double)corpus->counts[i];
    for (int64_t i = 0; i < corpus->items; i++) {
        double ratio = sample * words / (double)corpus->counts[i];
        double p = sqrt(ratio) + ratio;
        keep[i] = p >= 1 ? UINT32_MAX : (uint32_t)(p * 4294967295.0);
    }
}

static dcme_status open_workers(dcme_trainer *t, dcme_error *error) {
    int32_t threads = t->options.threads;
    t->counters = dcme_allocate_zeros(threads, sizeof *t->counters);
    t->workers = dcme_allocate_zeros(threads, sizeof *t->workers);
    if (!t->counters || !t->workers)
        return dcme_no_memory(error, threads * (int64_t)sizeof *t->workers, "the threads",
                              "lower --threads");
    for (int32_t i = 0; i < threads; i++) {
        t->workers[i].trainer = t;
        t->workers[i].counters = &t->counters[i];
    }
    for (int32_t i = 0; i < threads; i++) {
        dcme_status status = dcme_worker_open(&t->workers[i], t, error);
        if (status != DCME_OK)
            return status;
    }
    return DCME_OK;
}

static dcme_status open_parts(dcme_trainer *t, dcme_error *error) {
    const dcme_corpus *corpus = &t->corpus;
    if (t->options.sample > 0) {
        t->keep = dcme_allocate(corpus->items, sizeof *t->keep);
        if (!t->keep)
            return dcme_no_memory(error, corpus->items * (int64_t)sizeof *t->keep,
                                  "the shares of words that are kept", "lower --max-vocab");
        fill_keep(t->keep, corpus, t->options.sample);
    }
    dcme_status status = dcme_shards_cut(&t->starts, &t->shards, corpus);
    if (status == DCME_BAD_ARGUMENT)
        return dcme_fail(error, status, corpus->items, "an id is none of the words'");
    if (status != DCME_OK)
        return dcme_no_memory(error, (t->shards + 1) * (int64_t)sizeof *t->starts,
                              "the list of shards", "split the corpus");
    t->zeros = dcme_allocate_zeros(t->model.stride, sizeof *t->zeros);
    if (!t->zeros)
        return dcme_no_memory(error, t->model.stride * (int64_t)sizeof *t->zeros, "a row",
                              "lower --dim");
    status = t->objective->open(&t->shared, &t->model, &t->options, error);
    return status == DCME_OK ? open_workers(t, error) : status;
}

dcme_status dcme_trainer_open(dcme_trainer **trainer, const dcme_train_options *options,
                              const dcme_corpus *corpus, real *input, real *output,
                              const char *kernels, dcme_error *error) {
    dcme_trainer *t = dcme_allocate_zeros(1, sizeof *t);
    if (!t)
        return dcme_no_memory(error, sizeof *t, "a trainer", "end other programs");
    t->options = *options;
    if (options->deterministic)
        t->options.threads = 1; /* what several do at once depends on time */
    t->epoch = -1;
    t->corpus = *corpus;
    t->objective = dcme_objective_choose(options);
    t->model = (dcme_model){corpus->items,  dcme_row_stride(corpus->items, options->dim),
                            input,          output,
                            corpus->counts, dcme_kernels_choose(kernels)};
    dcme_status status = t->objective && t->model.kernels ? DCME_OK : DCME_BAD_ARGUMENT;
    if (status != DCME_OK)
        dcme_fail(error, status, 0, "no such objective, or no kernels of that name here");
    else
        status = open_parts(t, error);
    if (status != DCME_OK) {
        dcme_trainer_close(t);
        return status;
    }
    dcme_release_freed(); /* what counting took, and the noise distribution's weights */
    *trainer = t;
    return DCME_OK;
}

typedef struct {
    dcme_worker *worker;
    int64_t epoch;
    pthread_t thread;
    int started;
} job;

static void *run(void *argument) {
    job *j = argument;
    dcme_worker_epoch(j->worker, j->epoch);
    return NULL;
}

/* The numbers that are not finite give no zero when they are multiplied by it. */
int dcme_trainer_is_finite(const dcme_trainer *t, int64_t from, int64_t to) {
    enum { ROWS = 64 };
    const dcme_model *model = &t->model;
    real *rows[ROWS], sums[ROWS];
    int finite = 1;
    for (int64_t j = from, n; j < to; j += n) {
        for (n = 0; n < ROWS && j + n < to; n++)
            rows[n] = j + n < model->items ? model->input + (j + n) * model->stride
                                           : model->output + (j + n - model->items) * model->stride;
        model->kernels->dots(sums, t->zeros, rows, n, model->stride);
        for (int64_t i = 0; i < n; i++)
            finite &= sums[i] == 0;
    }
    return finite;
}

dcme_status dcme_trainer_epoch(dcme_trainer *t, int64_t epoch, dcme_error *error) {
    int32_t threads = t->options.threads;
    if (t->epoch >= 0 && t->epoch != epoch)
        return dcme_fail(error, DCME_BAD_ARGUMENT, epoch, "another epoch is not finished");
    job *jobs = dcme_allocate_zeros(threads, sizeof *jobs);
    if (!jobs)
        return dcme_no_memory(error, threads * (int64_t)sizeof *jobs, "the threads",
                              "lower --threads");
    if (t->epoch < 0)
        atomic_store(&t->next_shard, 0);
    t->epoch = epoch;
    for (int32_t i = 0; i < threads; i++) {
        jobs[i].worker = &t->workers[i];
        jobs[i].epoch = epoch;
        /* the first worker is the caller; one that cannot start leaves its share to the others */
        jobs[i].started = i > 0 && pthread_create(&jobs[i].thread, NULL, run, &jobs[i]) == 0;
    }
    run(&jobs[0]);
    for (int32_t i = 1; i < threads; i++)
        if (jobs[i].started)
            pthread_join(jobs[i].thread, NULL);
        else
            run(&jobs[i]); /* it may have a shard at hand from before a stop */
    free(jobs);
    if (atomic_load(&t->diverged))
        return dcme_fail(error, DCME_DIVERGED, epoch, "a loss is not finite");
    if (atomic_exchange(&t->stop, 0))
        return dcme_fail(error, DCME_STOPPED, epoch, "stopped");
    t->epoch = -1;
    /* few losses are looked at, and none after the last steps */
    if (!dcme_trainer_is_finite(t, 0, 2 * t->model.items))
        return dcme_fail(error, DCME_DIVERGED, epoch, "a vector is not finite");
    return DCME_OK;
}

void dcme_trainer_progress(dcme_trainer *t, dcme_progress *progress) {
    *progress = (dcme_progress){0};
    progress->rate = t->options.lr;
    for (int32_t i = 0; i < t->options.threads; i++) {
        dcme_counters *c = &t->counters[i];
        progress->trained += atomic_load_explicit(&c->trained, memory_order_relaxed);
        progress->subsampled += atomic_load_explicit(&c->subsampled, memory_order_relaxed);
        progress->without_context +=
            atomic_load_explicit(&c->without_context, memory_order_relaxed);
        progress->losses += atomic_load_explicit(&c->losses, memory_order_relaxed);
        progress->loss += atomic_load_explicit(&c->loss, memory_order_relaxed);
        double rate = atomic_load_explicit(&c->rate, memory_order_relaxed);
        if (rate > 0 && rate < progress->rate)
            progress->rate = rate;
    }
}

void dcme_trainer_stop(dcme_trainer *t) { atomic_store(&t->stop, 1); }

int64_t dcme_trainer_unfinished(const dcme_trainer *t) { return t->epoch; }

void dcme_trainer_state(dcme_trainer *t, dcme_state *state) {
    dcme_state_add(state, &t->epoch, 1, sizeof t->epoch);
    dcme_state_add(state, &t->next_shard, 1, sizeof t->next_shard);
    if (t->objective->shared_state)
        t->objective->shared_state(t->shared, state);
    for (int32_t i = 0; i < t->options.threads; i++)
        dcme_worker_state(&t->workers[i], state);
}

dcme_status dcme_trainer_restored(dcme_trainer *t, dcme_error *error) {
    int sound = t->epoch >= -1 && t->epoch < t->options.epochs && atomic_load(&t->next_shard) >= 0;
    for (int32_t i = 0; i < t->options.threads; i++) {
        const dcme_worker *worker = &t->workers[i];
        sound &= 0 <= worker->position && worker->position <= worker->end &&
                 worker->end <= t->corpus.length;
    }
    if (!sound)
        return dcme_fail(error, DCME_BAD_FORMAT, 0, "it names places that the corpus has not");
    for (int32_t i = 0; i < t->options.threads; i++)
        dcme_worker_publish(&t->workers[i]);
    return DCME_OK;
}

int64_t dcme_trainer_clusters(const dcme_trainer *t) {
    return t->objective->centre ? t->options.clusters : 0;
}

void dcme_trainer_centre(const dcme_trainer *t, int64_t k, real *alpha) {
    t->objective->centre(t->shared, k, alpha);
}

const char *dcme_trainer_kernels(const dcme_trainer *t) { return t->model.kernels->name; }

void dcme_trainer_close(dcme_trainer *t) {
    if (!t)
        return;
    for (int32_t i = 0; t->workers && i < t->options.threads; i++)
        dcme_worker_close(&t->workers[i]);
    if (t->shared)
        t->objective->close(t->shared);
    free(t->workers);
    free(t->counters);
    free(t->starts);
    free(t->zeros);
    free(t->keep);
    free(t);
}
