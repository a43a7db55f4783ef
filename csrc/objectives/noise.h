/* The noise distribution over words and their log prior, shared by the objectives that distinguish
 * a target from samples (negative_sampling.c, blocks.c, ../classify/class_sampling.c). */
#pragma once

#include "common/alias.h"
#include "common/arena.h"
#include "model/model.h"
#include "model/train_options.h"

/* The noise distribution q, proportional to count^power. */
typedef struct {
    int64_t items;
    dcme_alias *alias; /* (items) alias table for drawing from q */
    real *offset;      /* (items) shift + log(nu q_j), subtracted from scores; or NULL */
} dcme_noise;

/* `virtual_draws` is nu, or 0 if there are no offsets. Fails if a weight is not finite, or if all
 * weights are zero. */
void dcme_noise_open(dcme_noise *noise, dcme_arena *arena, const int64_t *counts, int64_t items,
                     double power, double virtual_draws, double shift);

/* The log prior in a word's score is the logarithm of a power of its unigram probability. With
 * power 1, rows near zero give every word its unigram probability, and rows learn only the effect
 * of a context; with power 0 all words start at 1/N. In both cases the partition function starts at
 * 1, as noise-contrastive estimation assumes.
 *
 * The function adds to out[j] the value sign log(count_j^power / sum over all words). With sign 1,
 * the exponentials of these values add up to 1. */
void dcme_prior_add(real *out, real sign, const dcme_model *model, double power);

/* Return the number of virtual draws per sample: nu / S, or 1 for negative sampling. */
static inline real dcme_sample_weight(const dcme_train_options *options) {
    return options->objective == DCME_NCE ? (real)options->virtual_samples : 1;
}

/* Initialize the noise distribution, and subtract the log prior from its offsets. Negative sampling
 * has no offsets. */
void dcme_word_noise_open(dcme_noise *noise, dcme_arena *arena, const dcme_model *model,
                          const dcme_train_options *options);

/* Return the maximum loss of a target when all vectors are zero. */
double dcme_untrained_loss(const dcme_noise *noise, const dcme_train_options *options);

/* log(1 + exp(x)) = -log sigma(-x), even if exp() overflows. */
double dcme_softplus(double x);

/* Return the rate of an implicit step (Kulis & Bartlett 2010) along a context whose squared length
 * is `square`. A step changes a score by rate weight square, and a residual by up to a quarter of
 * that, so explicit steps on a long context would overshoot more and more. */
static inline real dcme_implicit_rate(real rate, real weight, real square) {
    return rate / (1 + rate * (weight > 1 ? weight : 1) * 0.25f * square);
}
