/* Noise-contrastive estimation (Gutmann & Hyvarinen 2010; Mnih & Teh 2012): noise words against
 * scores less log(k q(j)), the partition function taken as 1.
 *
 * The model's scores are v_j . h + prior_j, see prior.h; with v_j . h alone, whose partition
 * function starts at N, NCE first spends an epoch finding it.
 */
#include "objectives/noise.h"

#include <stddef.h>

static dcme_status open(void **shared, const dcme_model *model, const dcme_train_options *options,
                        dcme_error *error) {
    return dcme_noise_open(shared, model, options, 1, error);
}

const dcme_objective dcme_objective_nce = {
    "nce",
    open,
    dcme_noise_close,
    dcme_noise_join,
    dcme_noise_leave,
    dcme_noise_begin,
    dcme_noise_announce,
    dcme_noise_step,
    dcme_noise_rest,
    NULL,
    dcme_noise_state,
    NULL,
};
