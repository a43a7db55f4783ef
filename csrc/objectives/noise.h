/* Noise of words, and losses against it: shared by the objectives that distinguish a target from
 * samples (negative_sampling.c, blocks.c, ../classify/negative_sampling.c). */
#ifndef DCME_NOISE_H
#define DCME_NOISE_H

#include "common/alias.h"
#include "model/model.h"
#include "model/options.h"

/* The noise distribution q, in proportion to count^power. */
typedef struct {
    const dcme_model *model;
    dcme_alias *alias; /* (items) to draw from q */
    real *offset;      /* (items) log(nu q_j) - prior_j, taken off the scores; NULL for none */
} dcme_noise;

/* `noise` is all zeros before; close it even if this fails. virtual_draws: nu, 0 for no offsets. */
dcme_status dcme_noise_open(dcme_noise *noise, const dcme_model *model,
                            const dcme_train_options *options, double virtual_draws,
                            dcme_error *error);
void dcme_noise_close(dcme_noise *noise);

/* weights[j] = counts[j]^power, the unnormalised noise distribution; returns their sum. */
double dcme_noise_weights(double *weights, const int64_t *counts, int64_t items, double power);

/* log(1 + exp(x)) = -log sigma(-x), also where exp() overflows. */
double dcme_softplus(double x);

/* The loss of a target, which comes first, and its noise, by their scores:
 * -log sigma(s_0) - sum_j log sigma(-s_j). */
double dcme_logistic_loss(const real *scores, int64_t count);

#endif
