/* Negative sampling (Mikolov et al. 2013): noise words against bare scores. */
#include "objectives/noise.h"

#include <stddef.h>

static dcme_status open(void **shared, const dcme_model *model, const dcme_train_options *options,
                        dcme_error *error) {
    return dcme_noise_open(shared, model, options, 0, error);
}

const dcme_objective dcme_objective_ns = {
    "ns",
    open,
    dcme_noise_close,
    dcme_noise_join,
    dcme_noise_leave,
    dcme_noise_begin,
    dcme_noise_announce_pooled,
    dcme_noise_step,
    dcme_noise_rest,
    NULL,
    dcme_noise_state,
    NULL,
};
