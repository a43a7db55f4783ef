/* The interface of every objective: the memory that threads share, the memory of each, and one
 * step.
 *
 * A new objective is one file that fills a dcme_objective, and one line in objectives.c. The
 * training loop forms context vectors and hands them over; the objective moves the output rows and
 * returns the direction in which the context vectors should move.
 */
#pragma once

#include "common/arena.h"
#include "common/loss.h"
#include "dcme.h"
#include "model/model.h"
#include "model/train_options.h"

/* One instance: a context vector and the word that it should predict. */
typedef struct {
    int32_t target;
    real rate;      /* step of the output rows */
    const real *h;  /* (stride) context vector */
    real *gradient; /* (stride) out: ascent direction for h, not scaled by a rate */
} dcme_instance;

/* The loss of one word in so many is sampled; of a block, a loss takes a logarithm a sample. */
enum { DCME_LOSS_EVERY = 64, DCME_BLOCK_LOSS_EVERY = 4 * DCME_LOSS_EVERY };

/* Targets that may be prefetched and not learned yet. */
enum { DCME_AHEAD = 2 };

/* Instances of a block, at most. */
enum { DCME_BLOCK_MAX = 16 };

typedef struct dcme_objective {
    /* Make what the threads share, in `shared`, shared_size bytes of zeros; the model and the
     * options outlive it. */
    void (*open)(void *shared, dcme_arena *arena, const dcme_model *model,
                 const dcme_train_options *options);
    int64_t shared_size;

    /* Make what one thread holds, in `thread`, thread_size bytes of zeros. `seed` names the stream
     * of random numbers for what follows. No target that was prefetched waits then. */
    void (*thread_open)(void *thread, dcme_arena *arena, void *shared);
    int64_t thread_size;
    void (*seed)(void *thread, uint64_t stream);

    /* Name a target up to DCME_AHEAD steps ahead, so that its rows are on their way from memory.
     * Each step takes the oldest target prefetched. */
    void (*prefetch)(void *thread, int32_t target);
    void (*step)(void *thread, const dcme_instance *instance, dcme_loss *loss);

    /* Instead of `step`: all instances of a block at once, whose targets have been prefetched. */
    void (*step_block)(void *thread, const dcme_instance *instances, int64_t count,
                       dcme_loss *loss);

    /* The thread stops and may be resumed: apply all deferred updates. NULL if there are none. */
    void (*flush)(void *thread);

    /* Write the center of cluster k, a distribution over the items. NULL without clusters. */
    void (*center)(const void *shared, int64_t k, real *alpha);
} dcme_objective;

extern const dcme_objective dcme_objective_ns, dcme_objective_nce, dcme_objective_dcme,
    dcme_objective_hs, dcme_objective_blocks;

/* The objective of the options. */
const dcme_objective *dcme_objective_choose(const dcme_train_options *options);
