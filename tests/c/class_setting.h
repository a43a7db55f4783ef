/* A small labeled collection and a model of it, for the tests of classification in double: one
 * step of an objective, its direction, and slopes by central differences.
 */
#ifndef CLASS_SETTING_H
#define CLASS_SETTING_H

#include "classify/class_objective.h"
#include "common/random.h"

#include "differences.h"

#include <stdlib.h>
#include <string.h>

/* Three lines of classes, the last one not full. */
enum { CLASSES = 37, STRIDE = 48, FEATURES = 6, TABLE = (FEATURES + 1) * STRIDE, DOCUMENTS = 7 };
static const double BIAS = 0.5;
static const int64_t STARTS[DOCUMENTS + 1] = {0, 3, 4, 4, 7, 9, 12, 14};
static const int32_t FEATURE[] = {0, 2, 5, 1, 1, 3, 4, 0, 5, 2, 3, 4, 1, 2};
static const double VALUE[] = {1, -2, .5, 2, .7, 1, -1, .3, 1.5, 2, -.4, .6, 1, 1};
static const int64_t DOCUMENT[DOCUMENTS] = {0, 1, 2, 3, 4, 5, 6};
static const int32_t LABEL[DOCUMENTS] = {3, 17, 36, 0, 17, 30, 8};
static const dcme_sparse_rows CORPUS = {STARTS, FEATURE, VALUE, DOCUMENTS};
static const double WEIGHT[DOCUMENTS] = {1, 2, .5, 3, 1, .25, 1.5};
static const dcme_instances INSTANCES = {DOCUMENT, LABEL, DOCUMENTS, WEIGHT, NULL};

typedef struct {
    double weights[TABLE];
    int64_t counts[CLASSES];
    dcme_linear model;
    dcme_classify_options options;
    dcme_problem problem;
    dcme_batch batch;
    const dcme_class_objective *objective;
    dcme_arena memory, arena; /* of the batch; of the objective */
    void *shared, *thread;
    double alpha[CLASSES]; /* of surrogate() */
    int64_t first, last;   /* documents of a step */
} setting;
typedef double function(setting *);

static inline void start(setting *s, const dcme_class_objective *objective) {
    uint64_t stream = 5;
    s->objective = objective;
    s->options = (dcme_classify_options){.negative = 4,
                                         .noise_power = 0.75,
                                         .class_clusters = 3,
                                         .exact_clusters = 1,
                                         .center_interval = 100,
                                         .clusters = 3,
                                         .top_items = 1,
                                         .beta = 100,
                                         .batch = DOCUMENTS,
                                         .epochs = 1,
                                         .threads = 1};
    for (int64_t j = 0; j < CLASSES; j++)
        s->counts[j] = 1 + j % 5;
    for (int64_t i = 0; i < TABLE; i++) {
        double number = (double)(dcme_random(&stream) >> 11) / (1ull << 52) - 1;
        s->weights[i] = i % STRIDE < CLASSES ? number : 0;
    }
    s->model = (dcme_linear){CLASSES, STRIDE, FEATURES, BIAS, s->weights, &dcme_kernels_scalar};
    s->problem =
        (dcme_problem){&s->model, &INSTANCES, &s->options, s->counts, dcme_widest(&CORPUS)};
    s->batch = (dcme_batch){0};
    s->first = 0, s->last = DOCUMENTS;
    s->memory = s->arena = (dcme_arena){0};
    dcme_batch_open(&s->batch, &s->memory, &s->model, DOCUMENTS, dcme_widest(&CORPUS));
    if (s->memory.status != DCME_OK)
        abort();
}

static inline void stop(setting *s) { dcme_arena_close(&s->memory); }

static inline void open_objective(setting *s) {
    s->shared = dcme_take(&s->arena, 1, s->objective->shared_size);
    s->thread = dcme_take(&s->arena, 1, s->objective->thread_size);
    if (s->objective->open)
        s->objective->open(s->shared, &s->arena, &s->problem);
    s->objective->thread_open(s->thread, &s->arena, &s->problem, s->shared);
    if (s->arena.status != DCME_OK)
        abort();
}

static inline void close_objective(setting *s) { dcme_arena_close(&s->arena); }

/* One step on the setting's documents; returns the loss of the sampled ones. */
static inline double step(setting *s, double rate) {
    dcme_loss loss = {0, 0, 0};
    s->batch.count = 0;
    for (int64_t d = s->first; d < s->last; d++)
        dcme_batch_add_instance(&s->batch, &CORPUS, &INSTANCES, d);
    s->batch.stream = 17;
    s->objective->step(s->thread, &s->batch, rate, &loss);
    if (s->objective->fold)
        s->objective->fold(s->shared);
    return loss.sum;
}

/* The function that an objective ascends, at the present weights. */
static inline double ascended(setting *s) {
    double kept[TABLE];
    memcpy(kept, s->weights, sizeof kept);
    open_objective(s);
    double loss = step(s, 0);
    close_objective(s);
    memcpy(s->weights, kept, sizeof kept);
    return -loss;
}

static inline void differentiate(double *slope, function *f, setting *s) {
    for (int64_t i = 0; i < TABLE; i++) {
        double kept = s->weights[i], above, below;
        slope[i] = 0;
        if (i % STRIDE >= CLASSES)
            continue;
        s->weights[i] = kept + EPSILON, above = f(s);
        s->weights[i] = kept - EPSILON, below = f(s);
        s->weights[i] = kept;
        slope[i] = (above - below) / (2 * EPSILON);
    }
}

/* (W after a step - W) / rate */
static inline void direction_of(setting *s, double *direction) {
    const double rate = 0.25;
    double before[TABLE];
    memcpy(before, s->weights, sizeof before);
    open_objective(s);
    step(s, rate);
    close_objective(s);
    for (int64_t i = 0; i < TABLE; i++)
        direction[i] = (s->weights[i] - before[i]) / rate;
    memcpy(s->weights, before, sizeof before);
}

static inline double log_likelihood(setting *s) {
    double sum = 0, scores[DOCUMENTS * STRIDE];
    if (dcme_classify_scores(scores, &s->model, &CORPUS, 0, DOCUMENTS, 2, NULL) != DCME_OK)
        abort();
    for (int64_t d = s->first; d < s->last; d++) {
        double score = scores[d * STRIDE + LABEL[d]];
        sum += WEIGHT[d] * (score - dcme_softmax(scores + d * STRIDE, &s->model));
    }
    return sum;
}

#endif
