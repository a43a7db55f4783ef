/* See dual_center.h. */
#include "objectives/dual_center.h"

#include "common/random.h"
#include "common/top_k.h"

#include <math.h>

static const real LOWEST = -87;                /* the kernel is undefined below this */
static const real NEGLIGIBLE = 8.7565108e-27f; /* e^-60 */

void dcme_center_open(dcme_center *cluster, dcme_arena *arena, int64_t room, int64_t items,
                      int64_t top_items) {
    int32_t *top = dcme_take(arena, top_items, sizeof *top);
    DCME_TAKE(arena, cluster->alpha, room);
    DCME_TAKE(arena, cluster->spare, top_items);
    for (int64_t q = 0; top && q < top_items; q++)
        top[q] = (int32_t)q;
    atomic_init(&cluster->top, top);
    dcme_save(arena, cluster->alpha, NULL, items, sizeof *cluster->alpha, 0, "alpha");
    dcme_save(arena, NULL, &cluster->top, top_items, sizeof *top, items, "top");
    DCME_TAKE_SAVED(arena, cluster->is_top, items, 0);
}

void dcme_center_start(dcme_center *cluster, const int64_t *counts, int64_t items, int64_t seed,
                       int64_t k) {
    real *alpha = cluster->alpha;
    uint64_t stream = dcme_stream(seed, 0, k, DCME_CENTER);
    double total = 0;
    for (int64_t j = 0; j < items; j++) {
        double noise = 0.5 + (double)(dcme_random(&stream) >> 40) / 16777216;
        total += alpha[j] = (real)(counts[j] * noise);
    }
    for (int64_t j = 0; j < items; j++)
        alpha[j] = (real)(alpha[j] / total);
}

real dcme_entropy(const real *alpha, int64_t items) {
    double entropy = 0;
    for (int64_t j = 0; j < items; j++)
        if (alpha[j] > 0)
            entropy -= alpha[j] * log(alpha[j]);
    return (real)entropy;
}

void dcme_exponentials(const dcme_kernels *kernels, real *out, const real *x, real largest,
                       int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        real below = x[i] - largest;
        out[i] = below < LOWEST ? LOWEST : below;
    }
    kernels->exponential(out, out, count);
    for (int64_t i = 0; i < count; i++)
        out[i] = out[i] < NEGLIGIBLE ? 0 : out[i];
}

real dcme_soften(const dcme_kernels *kernels, real *alpha, real *scores, int64_t items) {
    real largest = -INFINITY, e[DCME_AT_ONCE];
    double total = 0, mean = 0; /* sums of e^x and e^x x, where x = score - largest score */
    for (int64_t j = 0; j < items; j++)
        largest = scores[j] > largest ? scores[j] : largest;
    for (int64_t j = 0; j < items; j += DCME_AT_ONCE) {
        int64_t n = dcme_min(items - j, DCME_AT_ONCE);
        dcme_exponentials(kernels, e, scores + j, largest, n);
        for (int64_t i = 0; i < n; i++) {
            total += e[i];
            mean += e[i] * (scores[j + i] - largest);
            scores[j + i] = e[i];
        }
    }
    for (int64_t j = 0; j < items; j++)
        alpha[j] = (real)(scores[j] / total);
    /* -sum of alpha log alpha, with log alpha = x - log total */
    return (real)(log(total) - mean / total);
}

void dcme_center_choose_top(dcme_center *cluster, int64_t items, int64_t top_items) {
    int32_t *before = atomic_load(&cluster->top);
    for (int64_t q = 0; q < top_items; q++)
        cluster->is_top[before[q]] = 0;
    dcme_top_k(cluster->spare, top_items, cluster->alpha, items);
    for (int64_t q = 0; q < top_items; q++)
        cluster->is_top[cluster->spare[q]] = 1;
    atomic_store_explicit(&cluster->top, cluster->spare, memory_order_release);
    cluster->spare = before;
}

int dcme_center_try_lock(dcme_center *cluster) { return !atomic_exchange(&cluster->busy, 1); }

void dcme_center_unlock(dcme_center *cluster) { atomic_store(&cluster->busy, 0); }

static int is_busy(const dcme_center *cluster) {
    return atomic_load_explicit(&cluster->busy, memory_order_relaxed);
}

int64_t dcme_center_best(const dcme_center *clusters, const real *scores, int64_t count) {
    int64_t best = 0, best_free = -1;
    for (int64_t k = 1; k < count; k++)
        if (scores[k] > scores[best])
            best = k;
    if (!is_busy(&clusters[best]))
        return best;
    for (int64_t k = 0; k < count; k++)
        if (!is_busy(&clusters[k]) && (best_free < 0 || scores[k] > scores[best_free]))
            best_free = k;
    return best_free < 0 ? best : best_free;
}
