/* The training of a linear classifier: its work for the engine, whose units are mini-batches. */
#include "classify/objective.h"
#include "common/random.h"

#include <stdlib.h>

typedef struct {
    _Alignas(DCME_LINE) dcme_classifier *classifier; /* no other worker in its cache lines */
    dcme_done *done;                                 /* the engine's */
    void *thread;                                    /* the objective's part */
    dcme_batch batch;
} worker;

struct dcme_classifier {
    dcme_engine engine;
    dcme_classify_options options;
    dcme_sparse_rows documents;
    dcme_instances instances;
    dcme_linear model;
    dcme_output output;
    dcme_problem problem;
    const dcme_class_objective *objective;
    void *shared;    /* the objective's part */
    int64_t *order;  /* (instances) this epoch's */
    double weight;   /* sum of the instances' weights */
    worker *workers; /* (threads) */
};

static const dcme_class_objective *choose(const dcme_classify_options *options,
                                          const dcme_output *output) {
    if (output)
        return options->objective == DCME_CLASSIFY_GD ? &dcme_class_low_rank : NULL;
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

static void take_batch(void *argument, int64_t number, int64_t *begin, int64_t *end) {
    const dcme_classifier *c = ((worker *)argument)->classifier;
    *begin = number * c->options.batch;
    *end = *begin + c->options.batch;
    *end = *end < c->instances.count ? *end : c->instances.count;
}

static int64_t learn_batch(void *argument, int64_t begin, int64_t end) {
    worker *w = argument;
    dcme_classifier *c = w->classifier;
    uint64_t number = (uint64_t)(begin / c->options.batch);
    w->done->rate = dcme_learning_rate(&c->engine.schedule, c->engine.epoch, begin);
    dcme_batch_clear(&w->batch);
    for (int64_t i = begin; i < end; i++)
        dcme_batch_add_instance(&w->batch, &c->documents, &c->instances, c->order[i]);
    c->objective->seed(w->thread, dcme_stream((uint64_t)c->options.seed, (uint64_t)c->engine.epoch,
                                              number, DCME_NOISE));
    c->objective->step(w->thread, &w->batch, (real)w->done->rate, &w->done->loss);
    w->done->trained += end - begin;
    return end;
}

/* Fisher and Yates. The order is computed from the seed, so that an epoch can be repeated. */
static void shuffle(void *job, int64_t epoch) {
    dcme_classifier *c = job;
    uint64_t stream = dcme_stream((uint64_t)c->options.seed, (uint64_t)epoch, 0, DCME_ORDER);
    for (int64_t i = 0; i < c->instances.count; i++) {
        int64_t j = (int64_t)(dcme_random(&stream) % (uint64_t)(i + 1));
        c->order[i] = c->order[j];
        c->order[j] = i;
    }
}

/* The decay of --l2 for a whole epoch, applied at its end as an implicit step: W + rate g =
 * W (1 + rate l2) holds where the gradient g of the loss is l2 W, at the optimum. */
static void shrink(dcme_classifier *c, int64_t epoch) {
    const dcme_schedule *schedule = &c->engine.schedule;
    double first = dcme_learning_rate(schedule, epoch, 0);
    double last = dcme_learning_rate(schedule, epoch, c->instances.count);
    double mean = (first + last) / 2;
    real factor = (real)(1 / (1 + c->options.l2 * mean * c->weight));
    int64_t count = c->model.features * c->model.stride;
    for (int64_t i = 0; i < count; i++)
        c->model.weights[i] *= factor;
    if (c->objective->shrink)
        c->objective->shrink(c->shared, factor);
}

static void end_epoch(void *job, int64_t epoch) {
    dcme_classifier *c = job;
    if (c->objective->fold)
        c->objective->fold(c->shared);
    if (c->options.l2 > 0)
        shrink(c, epoch);
}

static void list_classifier_state(void *job, dcme_state *state) {
    dcme_classifier *c = job;
    if (c->objective->shared_state)
        c->objective->shared_state(c->shared, state);
}

static void list_worker_state(void *argument, dcme_state *state) {
    worker *w = argument;
    if (w->classifier->objective->thread_state)
        w->classifier->objective->thread_state(w->thread, state);
}

static const dcme_work WORK = {
    .take = take_batch,
    .step = learn_batch,
    .begin = shuffle,
    .end = end_epoch,
    .job_state = list_classifier_state,
    .worker_state = list_worker_state,
};

static dcme_status open_worker(dcme_classifier *c, int32_t i, dcme_error *error) {
    worker *w = &c->workers[i];
    int64_t size = c->options.batch, widest = c->problem.widest;
    w->classifier = c;
    w->done = &c->engine.threads[i].done;
    c->engine.threads[i].worker = w;
    if (dcme_batch_open(&w->batch, &c->model, size, widest) != DCME_OK)
        return dcme_no_memory(error, dcme_batch_bytes(size, widest), "the documents of a batch",
                              "lower --batch");
    return c->objective->thread_open(&w->thread, c->shared, error);
}

static dcme_status open_workers(dcme_classifier *c, dcme_error *error) {
    int32_t threads = c->options.threads;
    c->order = dcme_allocate(c->instances.count, sizeof *c->order);
    if (!c->order)
        return dcme_no_memory(error, c->instances.count * (int64_t)sizeof *c->order,
                              "the order of the documents", "give fewer documents");
    c->workers = dcme_allocate_zeros(threads, sizeof *c->workers);
    if (!c->workers)
        return dcme_no_memory(error, threads * (int64_t)sizeof *c->workers, "the threads",
                              "lower --threads");
    dcme_status status = dcme_engine_open(&c->engine, error);
    for (int32_t i = 0; status == DCME_OK && i < threads; i++)
        status = open_worker(c, i, error);
    return status;
}

dcme_status dcme_classifier_open(dcme_classifier **classifier, const dcme_classify_options *options,
                                 const dcme_sparse_rows *documents, const dcme_instances *instances,
                                 const int64_t *counts, const dcme_linear *model,
                                 const dcme_output *output, dcme_error *error) {
    dcme_classifier *c = dcme_allocate_zeros(1, sizeof *c);
    if (!c)
        return dcme_no_memory(error, sizeof *c, "a classifier", "end other programs");
    c->options = *options, c->documents = *documents, c->instances = *instances, c->model = *model;
    c->problem =
        (dcme_problem){&c->model, &c->instances, &c->options, counts, NULL, dcme_widest(documents)};
    if (output) {
        c->output = *output;
        c->problem.output = &c->output;
    }
    for (int64_t i = 0; i < instances->count; i++)
        c->weight += instances->weights ? (double)instances->weights[i] : 1;
    c->objective = choose(options, output);
    c->engine = (dcme_engine){
        .work = &WORK,
        .job = c,
        .thread_count = options->threads,
        .units = (instances->count + options->batch - 1) / options->batch,
        .schedule = {options->lr, options->min_lr, instances->count, options->epochs},
        .tables = {{model->weights, model->features + 1, model->stride}},
        .row_name = "weight",
    };
    if (output)
        c->engine.tables[1] = (dcme_table){output->weights, output->classes, model->stride};
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

dcme_engine *dcme_classifier_engine(dcme_classifier *c) { return &c->engine; }

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
    dcme_engine_close(&c->engine);
    free(c->workers);
    free(c->order);
    free(c);
}
