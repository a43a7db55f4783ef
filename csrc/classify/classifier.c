/* Trains a linear classifier: the engine's callbacks, with mini-batches as units. */
#include "classify/class_objective.h"
#include "common/random.h"

typedef struct {
    _Alignas(DCME_LINE) dcme_classifier *classifier; /* no two workers share a cache line */
    dcme_done *done;                                 /* read by the engine */
    void *thread;                                    /* the objective's memory */
    dcme_batch batch;
} worker;

struct dcme_classifier {
    dcme_engine engine;
    dcme_classify_options options;
    dcme_sparse_rows documents;
    dcme_instances instances;
    dcme_linear model;
    dcme_problem problem;
    const dcme_class_objective *objective;
    void *shared;   /* the objective's memory */
    int64_t *order; /* (instances) their order in this epoch */
    double weight;  /* sum of the instances' weights */
};

static const dcme_class_objective *choose(const dcme_classify_options *options) {
    switch (options->objective) {
    case DCME_CLASSIFY_GD:
        if (options->loss == DCME_CLASSIFY_HINGE)
            return options->dual ? &dcme_class_dual_hinge : &dcme_class_hinge;
        return &dcme_class_softmax;
    case DCME_CLASSIFY_DCME:
        return options->dcme_update == DCME_PAPER ? &dcme_class_dcme_paper : &dcme_class_dcme;
    case DCME_CLASSIFY_NCE:
    case DCME_CLASSIFY_NS:
        return &dcme_class_sampling;
    default:
        return NULL;
    }
}

static void start_batch(void *argument, int64_t number, int64_t *begin, int64_t *end) {
    const dcme_classifier *c = ((worker *)argument)->classifier;
    *begin = number * c->options.batch;
    *end = dcme_min(*begin + c->options.batch, c->instances.count);
}

static int64_t learn_batch(void *argument, int64_t begin, int64_t end) {
    worker *w = argument;
    dcme_classifier *c = w->classifier;
    uint64_t number = begin / c->options.batch, epoch = c->engine.epoch;
    w->done->rate = dcme_learning_rate(&c->engine.schedule, c->engine.epoch, begin);
    w->batch.count = 0;
    for (int64_t i = begin; i < end; i++)
        dcme_batch_add_instance(&w->batch, &c->documents, &c->instances, c->order[i]);
    w->batch.stream = dcme_stream(c->options.seed, epoch, number, DCME_NOISE);
    c->objective->step(w->thread, &w->batch, (real)w->done->rate, &w->done->loss);
    w->done->trained += end - begin;
    return end;
}

/* Fisher-Yates shuffle. The order depends only on the seed and the epoch, so that an epoch can be
 * repeated. */
static void shuffle(void *job, int64_t epoch) {
    dcme_classifier *c = job;
    uint64_t stream = dcme_stream(c->options.seed, epoch, 0, DCME_ORDER);
    for (int64_t i = 0; i < c->instances.count; i++) {
        int64_t j = dcme_random(&stream) % (i + 1);
        c->order[i] = c->order[j];
        c->order[j] = i;
    }
}

/* Apply the decay of --l2 for a whole epoch at its end, as an implicit step: W + rate g = W (1 +
 * rate l2) holds where the gradient g of the loss equals l2 W, which is the optimum. */
static void shrink(dcme_classifier *c, int64_t epoch) {
    const dcme_schedule *schedule = &c->engine.schedule;
    double first = dcme_learning_rate(schedule, epoch, 0);
    double last = dcme_learning_rate(schedule, epoch, c->instances.count);
    double mean = (first + last) / 2;
    real factor = (real)(1 / (1 + c->options.l2 * mean * c->weight));
    real *weights = c->model.weights;
    dcme_scale(weights, factor, weights, c->model.features * c->model.stride);
    if (c->objective->shrink)
        c->objective->shrink(&c->problem, c->shared, factor);
}

static void end_epoch(void *job, int64_t epoch) {
    dcme_classifier *c = job;
    if (c->objective->fold)
        c->objective->fold(c->shared);
    if (c->options.l2 > 0 && !c->options.dual)
        shrink(c, epoch);
}

static dcme_status open_worker(void *job, void *argument, dcme_thread *thread, dcme_error *error) {
    const dcme_purpose memory = {"the memory of a thread",
                                 "lower --threads, --batch or --features"};
    dcme_classifier *c = job;
    worker *w = argument;
    const dcme_class_objective *objective = c->objective;
    w->classifier = c;
    w->done = &thread->done;
    dcme_batch_open(&w->batch, &thread->arena, &c->model, c->options.batch, c->problem.widest);
    w->thread = dcme_take(&thread->arena, 1, objective->thread_size);
    DCME_TRY(dcme_arena_check(&thread->arena, memory, error));
    objective->thread_open(w->thread, &thread->arena, &c->problem, c->shared);
    return dcme_arena_check(&thread->arena, memory, error);
}

static const dcme_work WORK = {
    .open = open_worker,
    .worker_size = sizeof(worker),
    .start_unit = start_batch,
    .learn = learn_batch,
    .begin_epoch = shuffle,
    .end_epoch = end_epoch,
};

static dcme_status open_parts(dcme_classifier *c, dcme_error *error) {
    const dcme_purpose shared = {"what the threads share",
                                 "lower --features, or use fewer documents"};
    dcme_arena *arena = &c->engine.arena;
    DCME_TRY(dcme_engine_open(&c->engine, error));
    DCME_TAKE(arena, c->order, c->instances.count);
    c->shared = dcme_take(arena, 1, c->objective->shared_size);
    DCME_TRY(dcme_arena_check(arena, shared, error));
    if (c->objective->open)
        c->objective->open(c->shared, arena, &c->problem);
    DCME_TRY(dcme_arena_check(arena, shared, error));
    return dcme_engine_open_workers(&c->engine, error);
}

dcme_status dcme_classifier_open(dcme_classifier **classifier, const dcme_classify_options *options,
                                 const dcme_sparse_rows *documents, const dcme_instances *instances,
                                 const int64_t *counts, const dcme_linear *model,
                                 dcme_error *error) {
    dcme_classifier *c = *classifier = dcme_allocate_zeros(1, sizeof *c);
    if (!c)
        return dcme_no_memory(error, sizeof *c, "a classifier", "end other programs");
    c->options = *options, c->documents = *documents, c->instances = *instances, c->model = *model;
    c->problem =
        (dcme_problem){&c->model, &c->instances, &c->options, counts, dcme_widest(documents)};
    for (int64_t i = 0; i < instances->count; i++)
        c->weight += instances->weights ? instances->weights[i] : 1;
    c->objective = choose(options);
    c->engine = (dcme_engine){
        .work = &WORK,
        .job = c,
        .thread_count = options->threads,
        .units = (instances->count + options->batch - 1) / options->batch,
        .longest = options->batch,
        .schedule = {options->lr, options->min_lr, instances->count, options->epochs},
        .tables = {{model->weights, model->features + 1, model->stride}},
        .row_name = "weight",
    };
    if (!c->objective || !model->kernels)
        return dcme_fail(error, DCME_BAD_ARGUMENT, 0,
                         "unknown objective, or kernels that this processor lacks");
    return open_parts(c, error);
}

dcme_engine *dcme_classifier_engine(dcme_classifier *c) { return &c->engine; }

void dcme_classifier_close(dcme_classifier *c) {
    if (c)
        dcme_engine_close(&c->engine);
    dcme_free(c);
}
