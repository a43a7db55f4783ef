/* The log prior, added to v_j . h: log of the unigram probability to a power.
 *
 * With power 1, rows near zero give every word its unigram probability, and rows learn only the
 * effect of a context; with power 0 all words start at 1/N. In both cases the partition function
 * starts at 1, as noise-contrastive estimation assumes.
 */
#ifndef DCME_PRIOR_H
#define DCME_PRIOR_H

#include "model/model.h"

/* out[j] += sign log(count_j^power / sum of all), whose exponentials add up to 1 for sign 1. */
void dcme_prior_add(real *out, real sign, const dcme_model *model, double power);

#endif
