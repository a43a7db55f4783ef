/* See noise.h. */
#include "objectives/noise.h"

#include "objectives/prior.h"

#include <math.h>
#include <stdlib.h>

double dcme_noise_weights(double *weights, const int64_t *counts, int64_t items, double power) {
    double total = 0;
    for (int64_t j = 0; j < items; j++)
        total += weights[j] = pow((double)counts[j], power);
    return total;
}

double dcme_softplus(double x) { return x > 30 ? x : log1p(exp(x)); }

double dcme_logistic_loss(const real *scores, int64_t count) {
    double loss = dcme_softplus(-(double)scores[0]);
    for (int64_t i = 1; i < count; i++)
        loss += dcme_softplus((double)scores[i]);
    return loss;
}

static dcme_status fill(dcme_noise *noise, const dcme_train_options *options, double virtual_draws,
                        double *weights) {
    const dcme_model *model = noise->model;
    double total = dcme_noise_weights(weights, model->counts, model->items, options->noise_power);
    if (noise->offset)
        dcme_prior_fill(noise->offset, model, options->prior);
    for (int64_t j = 0; noise->offset && j < model->items; j++)
        noise->offset[j] = (real)log(virtual_draws * weights[j] / total) - noise->offset[j];
    return dcme_alias_build(noise->alias, weights, model->items);
}

void dcme_noise_close(dcme_noise *noise) {
    free(noise->alias);
    free(noise->offset);
}

dcme_status dcme_noise_open(dcme_noise *noise, const dcme_model *model,
                            const dcme_train_options *options, double virtual_draws,
                            dcme_error *error) {
    double *weights = dcme_allocate(model->items, sizeof *weights);
    dcme_status status = DCME_NO_MEMORY;
    noise->model = model;
    noise->alias = dcme_allocate(model->items, sizeof *noise->alias);
    if (virtual_draws > 0)
        noise->offset = dcme_allocate(model->items, sizeof *noise->offset);
    if (weights && noise->alias && (noise->offset || !(virtual_draws > 0)))
        status = fill(noise, options, virtual_draws, weights);
    free(weights);
    if (status == DCME_BAD_ARGUMENT)
        return dcme_fail(error, status, 0, "no noise can be drawn by counts to this power");
    if (status != DCME_OK)
        return dcme_no_memory(error,
                              model->items * (int64_t)(sizeof *noise->alias + sizeof *weights),
                              "the noise distribution", "lower --max-vocab or raise --min-count");
    return DCME_OK;
}
