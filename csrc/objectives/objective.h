/* The interface of every objective: what it shares, what each thread holds, and one step.
 *
 * A new objective is one file that fills a dcme_objective, and one line in objectives.c. The
 * training loop forms context vectors and hands them over; the objective moves the output rows and
 * returns the direction in which the context vectors should move.
 */
#ifndef DCME_OBJECTIVE_H
#define DCME_OBJECTIVE_H

#include "dcme.h"
#include "train/model.h"
#include "train/options.h"
#include "train/state.h"

/* One instance: a context vector and the word that it should predict. */
typedef struct {
    int32_t target;
    real rate;      /* step of the output rows */
    const real *h;  /* (stride) context vector */
    real *gradient; /* (stride) out: ascent direction for h, not scaled by a rate */
} dcme_instance;

/* Sum of the losses of the instances that were looked at. Computing logarithms for every instance
 * would cost more than learning from it, so one word in DCME_LOSS_EVERY is looked at. */
enum { DCME_LOSS_EVERY = 64 };
typedef struct {
    double sum;
    int64_t count;
    int64_t seen;
} dcme_loss;

/* Targets that may be announced and not learned yet. */
enum { DCME_AHEAD = 2 };

typedef struct dcme_objective {
    const char *name;

    /* What the threads share; `open` may keep the pointers, which outlive it. */
    dcme_status (*open)(void **shared, const dcme_model *model, const dcme_train_options *options,
                        dcme_error *error);
    void (*close)(void *shared);

    /* What one thread holds. `begin` names the stream of random numbers for what follows and
     * forgets targets that were announced but not learned. */
    dcme_status (*join)(void **member, void *shared, dcme_error *error);
    void (*leave)(void *member);
    void (*begin)(void *member, uint64_t stream);

    /* Announce a target up to DCME_AHEAD steps ahead, so that its rows are on their way from
     * memory. Each step takes the oldest target announced. */
    void (*announce)(void *member, int32_t target);
    void (*step)(void *member, const dcme_instance *instance, dcme_loss *loss);

    /* The thread stops, perhaps to go on later: make all moves that wait. NULL where none do. */
    void (*rest)(void *member);

    /* List what steps have changed, beside the model's tables. NULL where there is nothing. */
    void (*shared_state)(void *shared, dcme_state *state);
    void (*member_state)(void *member, dcme_state *state);

    /* Write the centre of cluster k, a distribution over the items. NULL without clusters. */
    void (*centre)(const void *shared, int64_t k, real *alpha);
} dcme_objective;

extern const dcme_objective dcme_objective_ns, dcme_objective_nce, dcme_objective_dcme,
    dcme_objective_dcme_paper;

/* The objective that the options ask for. */
const dcme_objective *dcme_objective_choose(const dcme_train_options *options);

/* Whether this instance's loss is wanted, where one in `every` is. */
static inline int dcme_loss_wanted(dcme_loss *loss, int every) { return loss->seen++ % every == 0; }

static inline void dcme_loss_add(dcme_loss *loss, double value) {
    loss->sum += value;
    loss->count++;
}

#endif
