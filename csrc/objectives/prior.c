/* See prior.h. */
#include "objectives/prior.h"

#include <math.h>

/* A given vocabulary may have words that do not occur in the corpus. */
static double count_of(const dcme_model *model, int64_t j) {
    return model->counts[j] > 0 ? (double)model->counts[j] : 1;
}

void dcme_prior_add(real *out, real sign, const dcme_model *model, double power) {
    double total = 0;
    for (int64_t j = 0; j < model->items; j++)
        total += pow(count_of(model, j), power);
    for (int64_t j = 0; j < model->items; j++)
        out[j] += sign * (real)(power * log(count_of(model, j)) - log(total));
}
