/* Learning against noise words, shared by negative sampling and NCE, which differ only in what is
 * taken off a score before the logistic. */
#ifndef DCME_NOISE_H
#define DCME_NOISE_H

#include "objectives/objective.h"
#include "train/alias.h"

typedef struct {
    const dcme_model *model;
    int32_t draws; /* k noise words a target */
    int32_t threads;
    dcme_alias *alias; /* (items) the noise distribution q */
    real *offset;      /* (items) taken off the scores, or NULL for none */
} dcme_noise;

/* weights[j] = counts[j]^power, what noise words are drawn in proportion to; returns their sum. */
double dcme_noise_weights(double *weights, const int64_t *counts, int64_t items, double power);

/* The loss of a target, which comes first, and its noise words, by their scores:
 * -log sigma(s_0) - sum_j log sigma(-s_j). */
double dcme_noise_loss(const real *scores, int64_t count);

/* Open with q in proportion to count^power; `with_offset` fills `offset` with
 * log(k q(j)) - prior(j), for NCE. */
dcme_status dcme_noise_open(void **shared, const dcme_model *model,
                            const dcme_train_options *options, int with_offset, dcme_error *error);
void dcme_noise_close(void *shared);
dcme_status dcme_noise_join(void **member, void *shared, dcme_error *error);
void dcme_noise_leave(void *member);
void dcme_noise_begin(void *member, uint64_t stream);
/* Take k words of q for a target: all drawn for it, or all but one from the pool. */
void dcme_noise_announce(void *member, int32_t target);
void dcme_noise_announce_pooled(void *member, int32_t target);
void dcme_noise_state(void *member, dcme_state *state);
void dcme_noise_step(void *member, const dcme_instance *instance, dcme_loss *loss);
void dcme_noise_rest(void *member);

#endif
