/* See draws.h. */
#include "objectives/draws.h"

/* Draw nothing, for objectives with their own training step; only prefetch the row of the
 * target. */
static void draw_nothing(dcme_draws *d, int32_t target) { dcme_draws_fetch(d, target); }

void dcme_draws_open(dcme_draws *d, dcme_arena *arena, const dcme_model *model,
                     const dcme_train_options *options) {
    int is_dcme = options->objective == DCME_DCME;
    d->model = model;
    d->negative = options->negative;
    d->weight = dcme_sample_weight(options);
    d->draw = is_dcme || options->block > 1    ? draw_nothing
              : options->objective == DCME_HS  ? dcme_draw_path
              : options->objective == DCME_NCE ? dcme_draw_fresh
                                               : dcme_draw_pooled;
    dcme_replicas_open(&d->replicas, arena, model, is_dcme ? 1 : options->threads);
    DCME_SAVE(arena, d->stream);
    DCME_SAVE(arena, d->made);
    if (d->draw == dcme_draw_fresh || d->draw == dcme_draw_pooled)
        dcme_draws_open_noise(d, arena);
}

void dcme_draws_seed(dcme_draws *d, uint64_t stream) {
    dcme_replicas_seed(&d->replicas, stream);
    d->stream = stream;
    d->made = d->waiting = 0;
    if (d->pool)
        dcme_draws_seed_noise(d);
}
