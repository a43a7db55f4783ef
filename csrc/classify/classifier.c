/* Opens and closes the training of a classifier, and runs its threads for an epoch.
 *
 * Threads take batches of the shuffled instances from one counter and write to the weights without
 * locks: an update may be lost where two meet, which costs less than waiting (Recht et al. 2011).
 */
#include "classify/objective.h"
#include "common/random.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What a worker has done, published once a batch; nobody else writes to its cache lines. */
typedef struct {
    _Alignas(DCME_LINE) dcme_classifier *classifier;
    void *thread; /* the objective's part */
    dcme_batch batch;
    dcme_loss loss;
    int64_t learned, epoch;
    _Alignas(DCME_LINE) _Atomic int64_t instances;
    _Atomic int64_t losses;
    _Atomic double loss_sum, rate;
} worker;

struct dcme_classifier {
    dcme_classify_options options;
    dcme_sparse_rows documents;
    dcme_instances instances;
    dcme_linear model;
    dcme_problem problem;
    const dcme_class_objective *objective;
    void *shared;                             /* the objective's part */
    int64_t *order;                           /* (instances) this epoch's */
    worker *workers;                          /* (threads) */
    _Alignas(DCME_LINE) _Atomic int64_t next; /* batch, taken by a worker */
    _Alignas(DCME_LINE) _Atomic int stop;
    _Atomic int diverged;
};

static const dcme_class_objective *choose(const dcme_classify_options *options) {
    switch (options->objective) {
    case DCME_CLASSIFY_GD:
        return &dcme_class_softmax_sgd;
    case DCME_CLASSIFY_DCME:
        return options->dcme_update == DCME_PAPER ? &dcme_class_dcme_paper : &dcme_class_dcme;
    case DCME_CLASSIFY_NCE:
        return &dcme_class_nce;
    case DCME_CLASSIFY_NS:
        return &dcme_class_ns;
    default:
        return NULL;
    }
}

dcme_status dcme_clusters_want(dcme_error *error, const dcme_problem *problem) {
    return dcme_fail(error, DCME_NO_MEMORY, problem->options->clusters,
                     "%d clusters over %lld features: lower --clusters or --features",
                     problem->options->clusters, (long long)problem->model->features);
}

static dcme_status open_workers(dcme_classifier *c, dcme_error *error) {
    int32_t threads = c->options.threads;
    c->order = dcme_allocate(c->instances.count, sizeof *c->order);
    c->workers = dcme_allocate_zeros(threads, sizeof *c->workers);
    if (!c->order || !c->workers)
        return dcme_fail(error, DCME_NO_MEMORY, c->instances.count, "the order of the documents");
    for (int32_t i = 0; i < threads; i++) {
        worker *w = &c->workers[i];
        w->classifier = c;
        if (dcme_batch_open(&w->batch, &c->model, c->options.batch, c->problem.widest) != DCME_OK)
            return dcme_fail(error, DCME_NO_MEMORY, c->problem.widest,
                             "a batch of %d documents: lower --batch", c->options.batch);
        dcme_status status = c->objective->thread_open(&w->thread, c->shared, error);
        if (status != DCME_OK)
            return status;
    }
    return DCME_OK;
}

dcme_status dcme_classifier_open(dcme_classifier **classifier, const dcme_classify_options *options,
                                 const dcme_sparse_rows *documents, const dcme_instances *instances,
                                 const int64_t *counts, const dcme_linear *model,
                                 dcme_error *error) {
    dcme_classifier *c = dcme_allocate_zeros(1, sizeof *c);
    if (!c)
        return dcme_fail(error, DCME_NO_MEMORY, sizeof *c, "a classifier");
    c->options = *options, c->documents = *documents, c->instances = *instances, c->model = *model;
    c->problem = (dcme_problem){&c->model, &c->options, counts, dcme_widest(documents)};
    c->objective = choose(options);
    dcme_status status = c->objective && model->kernels ? DCME_OK : DCME_BAD_ARGUMENT;
    if (status != DCME_OK)
        dcme_fail(error, status, 0, "no such objective, or no kernels of that name here");
    else
        status = c->objective->open(&c->shared, &c->problem, error);
    if (status == DCME_OK)
        status = open_workers(c, error);
    if (status != DCME_OK) {
        dcme_classifier_close(c);
        return status;
    }
    *classifier = c;
    return DCME_OK;
}

/* Fisher and Yates. The order is made anew from the seed, so that an epoch can be repeated. */
static void shuffle(dcme_classifier *c, int64_t epoch) {
    uint64_t stream = dcme_stream((uint64_t)c->options.seed, (uint64_t)epoch, 0, DCME_ORDER);
    for (int64_t i = 0; i < c->instances.count; i++) {
        int64_t j = (int64_t)(dcme_random(&stream) % (uint64_t)(i + 1));
        c->order[i] = c->order[j];
        c->order[j] = i;
    }
}

/* The rate falls in a straight line over all epochs. */
static double rate_at(const dcme_classifier *c, int64_t epoch, int64_t position) {
    double total = (double)c->options.epochs * (double)c->instances.count;
    double done = ((double)epoch * (double)c->instances.count + (double)position) / total;
    return c->options.lr + (c->options.min_lr - c->options.lr) * done;
}

static void publish(worker *w, double rate) {
    atomic_store_explicit(&w->instances, w->learned, memory_order_relaxed);
    atomic_store_explicit(&w->losses, w->loss.count, memory_order_relaxed);
    atomic_store_explicit(&w->loss_sum, w->loss.sum, memory_order_relaxed);
    atomic_store_explicit(&w->rate, rate, memory_order_relaxed);
}

static void learn_batch(worker *w, int64_t number, int64_t begin) {
    dcme_classifier *c = w->classifier;
    int64_t left = c->instances.count - begin;
    int64_t end = begin + (left < c->options.batch ? left : c->options.batch);
    double rate = rate_at(c, w->epoch, begin);
    dcme_batch_clear(&w->batch);
    for (int64_t i = begin; i < end; i++)
        dcme_batch_add(&w->batch, &c->documents, c->instances.documents[c->order[i]],
                       c->instances.labels[c->order[i]]);
    c->objective->seed(w->thread, dcme_stream((uint64_t)c->options.seed, (uint64_t)w->epoch,
                                              (uint64_t)number, DCME_NOISE));
    c->objective->step(w->thread, &w->batch, (real)rate, &w->loss);
    w->learned += end - begin;
    publish(w, rate);
    if (!isfinite(w->loss.sum)) {
        atomic_store(&c->diverged, 1);
        atomic_store(&c->stop, 1);
    }
}

static void *run(void *argument) {
    worker *w = argument;
    dcme_classifier *c = w->classifier;
    while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
        int64_t number = atomic_fetch_add(&c->next, 1), begin = number * c->options.batch;
        if (begin >= c->instances.count)
            break;
        learn_batch(w, number, begin);
    }
    return NULL;
}

static void run_threads(dcme_classifier *c, pthread_t *threads) {
    int32_t started = 1; /* the first worker is the caller */
    while (started < c->options.threads &&
           pthread_create(&threads[started], NULL, run, &c->workers[started]) == 0)
        started++;
    run(&c->workers[0]);
    for (int32_t i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* The decay that --l2 asks for, for a whole epoch at its end, as an implicit step: W + rate g =
 * W (1 + rate l2) holds where the gradient g of the loss is l2 W, at the optimum. */
static void shrink(dcme_classifier *c, int64_t epoch) {
    double mean = (rate_at(c, epoch, 0) + rate_at(c, epoch, c->instances.count)) / 2;
    real factor = (real)(1 / (1 + c->options.l2 * mean * (double)c->instances.count));
    int64_t count = c->model.features * c->model.stride;
    for (int64_t i = 0; i < count; i++)
        c->model.weights[i] *= factor;
    if (c->objective->shrink)
        c->objective->shrink(c->shared, factor);
}

/* Whether all weights are finite: the other numbers times zero are not zero. */
static int is_finite(const dcme_linear *model) {
    int64_t count = (model->features + 1) * model->stride;
    real sums[DCME_PAD] = {0};
    for (int64_t i = 0; i < count; i += DCME_PAD)
        for (int64_t j = 0; j < DCME_PAD; j++)
            sums[j] += model->weights[i + j] * 0;
    for (int64_t j = 1; j < DCME_PAD; j++)
        sums[0] += sums[j];
    return sums[0] == 0;
}

dcme_status dcme_classifier_epoch(dcme_classifier *c, int64_t epoch, dcme_error *error) {
    pthread_t *threads = dcme_allocate(c->options.threads, sizeof *threads);
    if (!threads)
        return dcme_fail(error, DCME_NO_MEMORY, c->options.threads, "threads");
    atomic_store(&c->next, 0);
    shuffle(c, epoch);
    for (int32_t i = 0; i < c->options.threads; i++)
        c->workers[i].epoch = epoch;
    run_threads(c, threads);
    free(threads);
    if (atomic_load(&c->diverged))
        return dcme_fail(error, DCME_DIVERGED, epoch, "a loss is not finite");
    if (atomic_load(&c->stop))
        return dcme_fail(error, DCME_STOPPED, epoch, "stopped");
    if (c->objective->settle)
        c->objective->settle(c->shared);
    if (c->options.l2 > 0)
        shrink(c, epoch);
    if (!is_finite(&c->model))
        return dcme_fail(error, DCME_DIVERGED, epoch, "a weight is not finite");
    return DCME_OK;
}

void dcme_classifier_progress(dcme_classifier *c, dcme_classify_progress *progress) {
    *progress = (dcme_classify_progress){.rate = c->options.lr};
    for (int32_t i = 0; i < c->options.threads; i++) {
        worker *w = &c->workers[i];
        progress->instances += atomic_load_explicit(&w->instances, memory_order_relaxed);
        progress->losses += atomic_load_explicit(&w->losses, memory_order_relaxed);
        progress->loss += atomic_load_explicit(&w->loss_sum, memory_order_relaxed);
        double rate = atomic_load_explicit(&w->rate, memory_order_relaxed);
        if (rate > 0 && rate < progress->rate)
            progress->rate = rate;
    }
}

void dcme_classifier_stop(dcme_classifier *c) { atomic_store(&c->stop, 1); }

void dcme_classifier_close(dcme_classifier *c) {
    if (!c)
        return;
    for (int32_t i = 0; c->workers && i < c->options.threads; i++) {
        if (c->workers[i].thread)
            c->objective->thread_close(c->workers[i].thread);
        dcme_batch_close(&c->workers[i].batch);
    }
    if (c->shared)
        c->objective->close(c->shared);
    free(c->workers);
    free(c->order);
    free(c);
}
