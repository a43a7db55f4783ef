/* Shared by noise-based objectives of words (negative_sampling.c) and of classes
 * (../classify/negative_sampling.c). */
#ifndef DCME_NEGATIVE_SAMPLING_H
#define DCME_NEGATIVE_SAMPLING_H

#include "kernels/kernels.h"

/* weights[j] = counts[j]^power, the unnormalised noise distribution; returns their sum. */
double dcme_noise_weights(double *weights, const int64_t *counts, int64_t items, double power);

/* log(1 + exp(x)) = -log sigma(-x), also where exp() overflows. */
double dcme_softplus(double x);

/* The loss of a target, which comes first, and its noise, by their scores:
 * -log sigma(s_0) - sum_j log sigma(-s_j). */
double dcme_logistic_loss(const real *scores, int64_t count);

#endif
