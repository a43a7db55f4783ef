/* Noise of words, and losses against it: shared by the objectives that distinguish a target from
 * samples (negative_sampling.c, blocks.c, ../classify/negative_sampling.c). */
#ifndef DCME_NOISE_H
#define DCME_NOISE_H

#include "common/alias.h"
#include "common/arena.h"
#include "model/model.h"
#include "model/options.h"

/* The noise distribution q, in proportion to count^power. */
typedef struct {
    int64_t items;
    dcme_alias *alias; /* (items) to draw from q */
    real *offset;      /* (items) shift + log(nu q_j), subtracted from the scores; NULL for none */
} dcme_noise;

/* virtual_draws: nu, 0 for no offsets. Fails where no distribution is in proportion. */
void dcme_noise_open(dcme_noise *noise, dcme_arena *arena, const int64_t *counts, int64_t items,
                     double power, double virtual_draws, double shift);

/* weights[j] = counts[j]^power, the unnormalised noise distribution; returns their sum. */
double dcme_noise_weights(double *weights, const int64_t *counts, int64_t items, double power);

/* log(1 + exp(x)) = -log sigma(-x), also where exp() overflows. */
double dcme_softplus(double x);

/* The loss of a target, which comes first, and its noise, by their scores:
 * -log sigma(s_0) - sum_j log sigma(-s_j). */
double dcme_logistic_loss(const real *scores, int64_t count);

#endif
