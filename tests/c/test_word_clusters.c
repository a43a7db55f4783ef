/* Softmax, entropy and the pass that computes a new center, against plain sums in double, with
 * every instruction set. */
#include "common/random.h"
#include "objectives/word_clusters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 1000, STRIDE = 16, TOP = 7 };
static uint64_t stream = 3;
static int failures;

static void expect_near(double found, double wanted, double tolerance, const char *what,
                        int64_t i) {
    if (!(fabs(found - wanted) <= tolerance)) {
        printf("%s (%lld): %.9g, expected %.9g\n", what, (long long)i, found, wanted);
        failures++;
    }
}

static real number(void) { return (real)((double)(dcme_random(&stream) >> 40) / (1 << 23) - 1); }

/* softmax(scores), without probabilities below e^-60 of the largest. */
static void plain_softmax(double *alpha, const real *scores, int64_t items) {
    double largest = -INFINITY, total = 0;
    for (int64_t j = 0; j < items; j++)
        largest = scores[j] > largest ? scores[j] : largest;
    for (int64_t j = 0; j < items; j++)
        total += alpha[j] = scores[j] - largest > -60 ? exp(scores[j] - largest) : 0;
    for (int64_t j = 0; j < items; j++)
        alpha[j] /= total;
}

static void check_softmax(const dcme_kernels *kernels, int64_t items, real range) {
    real scores[ITEMS], alpha[ITEMS];
    double wanted[ITEMS], entropy = 0;
    for (int64_t j = 0; j < items; j++)
        scores[j] = range * number();
    plain_softmax(wanted, scores, items);
    real found = dcme_soften(kernels, alpha, scores, items);
    for (int64_t j = 0; j < items; j++) {
        expect_near(alpha[j], wanted[j], 1e-5 * wanted[j], kernels->name, j);
        entropy -= wanted[j] > 0 ? wanted[j] * log(wanted[j]) : 0;
    }
    expect_near(found, entropy, 1e-5 * (1 + entropy), "entropy of a softmax", items);
    expect_near(dcme_entropy(alpha, items), entropy, 1e-5 * (1 + entropy), "entropy", items);
}

/* Rows whose scores grow by up to `slope` from the first item to the last. */
static void make_rows(real *output, real slope) {
    for (int64_t j = 0; j < ITEMS; j++)
        for (int64_t d = 0; d < STRIDE; d++)
            output[j * STRIDE + d] = number() + (d == 0) * slope * (real)j / ITEMS;
}

/* A new center, in double: first the pending updates of rows, then the softmax at the mean. */
static void plain_move(const dcme_clusters *clusters, const dcme_cluster_sums *sums, double *rows,
                       double *alpha, double *u) {
    const dcme_center *cluster = &clusters->clusters[0];
    real scores[ITEMS];
    for (int64_t j = 0; j < ITEMS; j++) {
        double score = clusters->prior[j], *row = rows + j * STRIDE;
        double share = cluster->is_top[j] ? 0 : cluster->alpha[j];
        for (int64_t d = 0; d < STRIDE; d++) {
            row[d] = clusters->model->output[j * STRIDE + d] - share * sums->h[d];
            score += row[d] * sums->h[d] / sums->weight;
        }
        scores[j] = (real)score;
    }
    plain_softmax(alpha, scores, ITEMS);
    memset(u, 0, STRIDE * sizeof *u);
    for (int64_t j = 0; j < ITEMS; j++)
        for (int64_t d = 0; d < STRIDE; d++)
            u[d] += alpha[j] * rows[j * STRIDE + d];
}

static void compare_move(const dcme_clusters *clusters, const double *rows, const double *alpha,
                         const double *u) {
    double constant = 0;
    for (int64_t i = 0; i < ITEMS * STRIDE; i++)
        expect_near(clusters->model->output[i], rows[i], 1e-5, "a row", i / STRIDE);
    for (int64_t j = 0; j < ITEMS; j++) {
        expect_near(clusters->clusters[0].alpha[j], alpha[j], 1e-4 * alpha[j], "alpha", j);
        constant += alpha[j] > 0 ? alpha[j] * (clusters->prior[j] - log(alpha[j])) : 0;
    }
    for (int64_t d = 0; d < STRIDE; d++)
        expect_near(clusters->u_rows[0][d], u[d], 1e-4 * (1 + fabs(u[d])), "u", d);
    expect_near(clusters->entropy[0], constant, 1e-4 * (1 + fabs(constant)), "constant of (9)", 0);
}

/* Top items that a reader has stay as they were, and the new ones are the most probable. */
static void check_tops(const int32_t *read, const int32_t *before, const dcme_center *cluster) {
    const int32_t *top = dcme_center_top(cluster);
    if (top == read || memcmp(read, before, TOP * sizeof *read) != 0) {
        printf("a reader's top items changed\n");
        failures++;
    }
    for (int64_t q = 1; q < TOP; q++)
        expect_near(cluster->alpha[top[q]] <= cluster->alpha[top[q - 1]], 1, 0, "order", q);
    for (int64_t j = 0; j < ITEMS; j++)
        expect_near(cluster->is_top[j] || cluster->alpha[j] <= cluster->alpha[top[TOP - 1]], 1, 0,
                    "a heavier item", j);
}

static void check_move(const dcme_kernels *kernels, const int64_t *counts, real slope) {
    static real output[ITEMS * STRIDE];
    static double rows[ITEMS * STRIDE], alpha[ITEMS];
    dcme_model model = {.items = ITEMS,
                        .stride = STRIDE,
                        .size = STRIDE,
                        .output = output,
                        .counts = counts,
                        .kernels = kernels};
    dcme_train_options options = {.clusters = 1, .top_items = TOP, .beta = 1, .prior = 1};
    real h[STRIDE] = {1};
    double u[STRIDE];
    dcme_cluster_sums sums = {.count = 2, .weight = 0.5, .h = h};
    dcme_clusters clusters = {0};
    dcme_scratch scratch = {0};
    make_rows(output, slope);
    for (int64_t d = 1; d < STRIDE; d++)
        h[d] = number();
    dcme_arena arena = {0};
    dcme_clusters_open(&clusters, &arena, &model, &options);
    dcme_scratch_open(&scratch, &arena, &model);
    if (arena.status != DCME_OK)
        abort();
    const int32_t *read = dcme_center_top(&clusters.clusters[0]);
    int32_t before[TOP];
    memcpy(before, read, sizeof before);
    plain_move(&clusters, &sums, rows, alpha, u);
    dcme_cluster_move(&clusters, 0, &sums, &scratch);
    compare_move(&clusters, rows, alpha, u);
    check_tops(read, before, &clusters.clusters[0]);
    dcme_arena_close(&arena);
}

int main(void) {
    static const char *const names[] = {"scalar", "avx2", "avx512", "neon"};
    int64_t counts[ITEMS];
    for (int64_t j = 0; j < ITEMS; j++)
        counts[j] = 1 + ITEMS / (j + 1);
    for (int k = 0; k < 4; k++) {
        const dcme_kernels *kernels = dcme_kernels_choose(names[k]);
        for (int64_t items = 1; kernels && items <= ITEMS; items += 1 + items / 3)
            for (real range = 0.1f; range < 300; range *= 7)
                check_softmax(kernels, items, range);
        for (real slope = -100; kernels && slope <= 100; slope += 50)
            check_move(kernels, counts, slope); /* the best item first, or last */
    }
    if (!failures)
        printf("clusters: ok\n");
    return failures != 0;
}
