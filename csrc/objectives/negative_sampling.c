/* Negative sampling (Mikolov et al. 2013) and noise-contrastive estimation (Gutmann & Hyvarinen
 * 2010; Mnih & Teh 2012): a target is distinguished from samples drawn from q.
 *
 * For context h, target i and samples j_1 .. j_k with scores s_j = v_j . h - offset_j, ascend
 *     log sigma(s_i) + w sum_j log sigma(-s_j),
 * where w is 1, or for NCE the number of virtual draws per sample. The target is labeled 1 and
 * samples 0; a sample that equals the target is dropped.
 *
 * Negative sampling has no offsets. For NCE they are log(w k q_j) - prior_j: the model's scores are
 * v_j . h + prior_j (see noise.h), and the partition function is assumed to be 1. With v_j . h
 * alone, the partition function starts at N, and NCE would spend an epoch learning it.
 *
 * The loop is bound by memory latency. A pool avoids most of this latency: it holds the last POOL
 * words drawn from q; each target adds one word and takes its k samples at random from the pool. So
 * every sample of a target still has the distribution q, and all rows but two are already in the
 * cache. A sample is reused a few targets later, with other samples. For negative sampling no loss
 * of quality was measured, unlike for samples shared by a block of targets. For NCE, reuse costs at
 * least 0.04 nats of likelihood, so all k samples are drawn for each target.
 */
#include "objectives/draws.h"

enum { POOL = 256 }; /* a power of two, at most 2^16 */

/* Return the word whose cell the previous call prefetched, and prefetch the cell of the next one.
 */
static int32_t next_sample(dcme_draws *d) {
    const dcme_noise *noise = d->noise;
    uint64_t random = d->next;
    d->next = dcme_random(&d->stream);
    __builtin_prefetch(&noise->alias[dcme_below(d->next, noise->items)]);
    return dcme_alias_pick(noise->alias, dcme_below(random, noise->items), random);
}

/* Return the next draw, whose first code is the target's. */
static dcme_draw *begin(dcme_draws *d, int32_t target) {
    dcme_draw *draw = dcme_draws_push(d);
    dcme_draws_fetch(d, target);
    draw->codes[0] = 2 * (uint32_t)target + 1;
    return draw;
}

void dcme_draw_fresh(dcme_draws *d, int32_t target) {
    dcme_draw *draw = begin(d, target);
    int64_t n = 1;
    for (int32_t k = 0; k < d->negative; k++) {
        int32_t word = next_sample(d);
        dcme_draws_fetch(d, word);
        draw->codes[n] = 2 * (uint32_t)word;
        n += word != target;
    }
    draw->count = n;
}

void dcme_draw_pooled(dcme_draws *d, int32_t target) {
    int32_t fresh = next_sample(d);
    uint64_t random = 0;
    int64_t n = 1;
    d->pool[d->made % POOL] = fresh;
    dcme_draw *draw = begin(d, target);
    dcme_draws_fetch(d, fresh);
    for (int32_t k = 0; k < d->negative; k++, random >>= 16) {
        if (k % 4 == 0) /* a random number selects four places in the pool */
            random = dcme_random(&d->stream);
        int32_t word = d->pool[random % POOL];
        draw->codes[n] = 2 * (uint32_t)word; /* these rows are in the cache; prefetching them again
                                                would take 6% more time */
        n += word != target;
    }
    draw->count = n;
}

void dcme_draws_open_noise(dcme_draws *d, dcme_arena *arena) {
    int64_t n = d->negative + 1;
    uint32_t *codes = dcme_take(arena, DCME_DRAWS * n, sizeof *codes);
    for (int i = 0; codes && i < DCME_DRAWS; i++)
        d->queue[i].codes = codes + i * n;
    DCME_SAVE(arena, d->next);
    DCME_TAKE_SAVED(arena, d->pool, POOL, d->model->items);
}

void dcme_draws_seed_noise(dcme_draws *d) {
    d->next = dcme_random(&d->stream);
    for (int32_t i = 0; i < POOL; i++)
        d->pool[i] = next_sample(d);
}
