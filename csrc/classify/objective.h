/* The interface of every objective of classification, as that of word vectors
 * (../objectives/objective.h): what it shares, what each thread holds, and one step. */
#ifndef DCME_CLASSIFY_OBJECTIVE_H
#define DCME_CLASSIFY_OBJECTIVE_H

#include "classify/batch.h"
#include "objectives/objective.h"

/* The loss of one document in DCME_LOSS_EVERY is sampled: there are fewer of them than of words. */
enum { DCME_CLASS_LOSS_EVERY = 16 };

/* What an objective may keep pointers to. */
typedef struct {
    const dcme_linear *model;
    const dcme_instances *instances;
    const dcme_classify_options *options;
    const int64_t *counts;     /* (classes) */
    const dcme_output *output; /* NULL: the model's columns are the classes */
    int64_t widest;            /* see dcme_widest() */
} dcme_problem;

typedef struct {
    const char *name;
    dcme_status (*open)(void **shared, const dcme_problem *problem, dcme_error *error);
    void (*close)(void *shared);
    dcme_status (*thread_open)(void **thread, void *shared, dcme_error *error);
    void (*thread_close)(void *thread);
    /* Name the stream of random numbers for the next batch. */
    void (*seed)(void *thread, uint64_t stream);
    /* Learn the batch's instances at a rate. */
    void (*step)(void *thread, dcme_batch *batch, real rate, dcme_loss *loss);
    /* Put into the weights what the objective keeps beside them, after an epoch; or NULL. */
    void (*fold)(void *shared);
    /* All weights but the biases have been multiplied by `factor`; NULL for nothing to do. */
    void (*shrink)(void *shared, real factor);
    /* List what steps have changed, beside the weights. NULL where there is nothing. */
    void (*shared_state)(void *shared, dcme_state *state);
    void (*thread_state)(void *thread, dcme_state *state);
} dcme_class_objective;

/* For objectives whose threads share only the problem, and that draw nothing. */
static inline dcme_status dcme_share_problem(void **shared, const dcme_problem *problem,
                                             dcme_error *error) {
    (void)error;
    *shared = (void *)problem;
    return DCME_OK;
}

static inline void dcme_close_nothing(void *shared) { (void)shared; }

static inline void dcme_draw_nothing(void *thread, uint64_t stream) { (void)thread, (void)stream; }

extern const dcme_class_objective dcme_class_softmax_sgd, dcme_class_dcme, dcme_class_dcme_paper,
    dcme_class_nce, dcme_class_ns, dcme_class_low_rank;

#endif
