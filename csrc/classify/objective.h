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
    /* Make what the threads share, in `shared`, shared_size bytes of zeros. */
    void (*open)(void *shared, dcme_arena *arena, const dcme_problem *problem);
    int64_t shared_size;
    dcme_purpose whole;
    /* Make what one thread holds, in `thread`, thread_size bytes of zeros. */
    void (*thread_open)(void *thread, dcme_arena *arena, const dcme_problem *problem, void *shared);
    int64_t thread_size;
    dcme_purpose own;
    /* Name the stream of random numbers for the next batch; NULL if nothing is drawn. */
    void (*seed)(void *thread, uint64_t stream);
    /* Learn the batch's instances at a rate. */
    void (*step)(void *thread, dcme_batch *batch, real rate, dcme_loss *loss);
    /* Put into the weights what the objective keeps beside them, after an epoch; or NULL. */
    void (*fold)(void *shared);
    /* All weights but the biases have been multiplied by `factor`; NULL for nothing to do. */
    void (*shrink)(const dcme_problem *problem, void *shared, real factor);
} dcme_class_objective;

extern const dcme_class_objective dcme_class_softmax_sgd, dcme_class_dcme, dcme_class_dcme_paper,
    dcme_class_nce, dcme_class_ns, dcme_class_low_rank, dcme_class_hinge;

#endif
