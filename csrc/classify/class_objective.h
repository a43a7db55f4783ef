/* The interface of every objective of classification: the memory that threads share, the memory of
 * each thread, and one step. */
#pragma once

#include "classify/batch.h"
#include "common/loss.h"

/* An objective may keep pointers to these. */
typedef struct {
    const dcme_linear *model;
    const dcme_instances *instances;
    const dcme_classify_options *options;
    const int64_t *counts; /* (classes) */
    int64_t widest;        /* see dcme_widest() */
} dcme_problem;

typedef struct {
    /* Make what the threads share, in `shared`, shared_size bytes of zeros. */
    void (*open)(void *shared, dcme_arena *arena, const dcme_problem *problem);
    int64_t shared_size;
    /* Make what one thread holds, in `thread`, thread_size bytes of zeros. */
    void (*thread_open)(void *thread, dcme_arena *arena, const dcme_problem *problem, void *shared);
    int64_t thread_size;
    /* Learn the batch's instances at a rate. */
    void (*step)(void *thread, dcme_batch *batch, real rate, dcme_loss *loss);
    /* Put into the weights what the objective keeps beside them, after an epoch; or NULL. */
    void (*fold)(void *shared);
    /* All weights but the biases have been multiplied by `factor`; NULL for nothing to do. */
    void (*shrink)(const dcme_problem *problem, void *shared, real factor);
} dcme_class_objective;

extern const dcme_class_objective dcme_class_softmax, dcme_class_dcme, dcme_class_dcme_paper,
    dcme_class_sampling, dcme_class_hinge;
