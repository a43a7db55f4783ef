/* The table of all objectives. */
#include "objectives/objective.h"

const dcme_objective *dcme_objective_choose(const dcme_train_options *options) {
    if (options->block > 1)
        return &dcme_objective_blocks;
    switch (options->objective) {
    case DCME_NS:
        return &dcme_objective_ns;
    case DCME_NCE:
        return &dcme_objective_nce;
    case DCME_DCME:
        return &dcme_objective_dcme;
    case DCME_HS:
        return &dcme_objective_hs;
    default:
        return NULL;
    }
}
