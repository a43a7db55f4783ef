/* See noise.h. */
#include "objectives/noise.h"

#include <math.h>

double dcme_softplus(double x) { return x > 30 ? x : log1p(exp(x)); }

/* `weights` and `order` (items) are overwritten. */
static void fill(dcme_noise *noise, dcme_arena *arena, const int64_t *counts, double power,
                 double virtual_draws, double shift, double *weights, int32_t *order) {
    double total = 0;
    for (int64_t j = 0; j < noise->items; j++)
        total += weights[j] = pow(counts[j], power);
    for (int64_t j = 0; noise->offset && j < noise->items; j++)
        noise->offset[j] = (real)(shift + log(virtual_draws * weights[j] / total));
    if (!dcme_alias_build(noise->alias, weights, order, noise->items))
        dcme_arena_fail(arena, "no noise can be drawn by counts to this power");
}

void dcme_noise_open(dcme_noise *noise, dcme_arena *arena, const int64_t *counts, int64_t items,
                     double power, double virtual_draws, double shift) {
    dcme_arena scratch = {0};
    double *weights = dcme_take(&scratch, items, sizeof *weights);
    int32_t *order = dcme_take(&scratch, items, sizeof *order);
    noise->items = items;
    DCME_TAKE(arena, noise->alias, items);
    if (virtual_draws > 0)
        DCME_TAKE(arena, noise->offset, items);
    dcme_arena_join(arena, &scratch);
    if (arena->status == DCME_OK)
        fill(noise, arena, counts, power, virtual_draws, shift, weights, order);
    dcme_arena_close(&scratch);
}

/* A vocabulary given by the user may have words that do not occur in the corpus. */
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

void dcme_word_noise_open(dcme_noise *noise, dcme_arena *arena, const dcme_model *model,
                          const dcme_train_options *options) {
    double draws = (double)dcme_sample_weight(options) * options->negative;
    dcme_noise_open(noise, arena, model->counts, model->items, options->noise_power,
                    options->objective == DCME_NS ? 0 : draws, 0);
    if (noise->offset && arena->status == DCME_OK)
        dcme_prior_add(noise->offset, -1, model, options->prior);
}

double dcme_untrained_loss(const dcme_noise *noise, const dcme_train_options *options) {
    double farthest = 0;
    for (int64_t j = 0; noise->offset && j < noise->items; j++)
        farthest = fmax(farthest, fabs((double)noise->offset[j]));
    return (1 + (double)dcme_sample_weight(options) * options->negative) * dcme_softplus(farthest);
}
