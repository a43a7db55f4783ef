/* What scores have beside v_j . h: the log of the words' shares to a power.
 *
 * With power 1 rows near zero give every word its share of the text, and rows learn only what a
 * context changes; with power 0 all words start alike, at 1/N. Either way the partition function
 * starts at 1, which noise-contrastive learning takes it to be.
 */
#ifndef DCME_PRIOR_H
#define DCME_PRIOR_H

#include "model/model.h"

/* prior[j] = log(count_j^power / sum of all), so that the exponentials add up to 1. */
void dcme_prior_fill(real *prior, const dcme_model *model, double power);

#endif
