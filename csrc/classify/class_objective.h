/* The interface of every classification objective: memory shared by the threads, memory of each
 * thread, and one training step. */
#pragma once

#include "classify/batch.h"
#include "common/loss.h"

/* The problem that an objective is opened with. The objective may keep the pointers in it. */
typedef struct {
    const dcme_linear *model;
    const dcme_instances *instances;
    const dcme_classify_options *options;
    const int64_t *counts; /* (classes) */
    int64_t widest;        /* see dcme_widest() */
} dcme_problem;

typedef struct {
    /* Initialize the shared memory `shared`, which is shared_size bytes of zeros. */
    void (*open)(void *shared, dcme_arena *arena, const dcme_problem *problem);
    int64_t shared_size;
    /* Initialize one thread's memory `thread`, which is thread_size bytes of zeros. */
    void (*thread_open)(void *thread, dcme_arena *arena, const dcme_problem *problem, void *shared);
    int64_t thread_size;
    /* Train on the instances of the batch with this learning rate. */
    void (*step)(void *thread, dcme_batch *batch, real rate, dcme_loss *loss);
    /* After an epoch, apply the updates to the weights that the objective has deferred; may be
     * NULL. */
    void (*fold)(void *shared);
    /* Called after all weights except the biases were multiplied by `factor`; NULL if there is
     * nothing to do. */
    void (*shrink)(const dcme_problem *problem, void *shared, real factor);
} dcme_class_objective;

extern const dcme_class_objective dcme_class_softmax, dcme_class_dcme, dcme_class_dcme_paper,
    dcme_class_sampling, dcme_class_hinge, dcme_class_dual_hinge;
