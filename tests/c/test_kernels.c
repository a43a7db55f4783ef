/* The kernels of every instruction set of this machine against the scalar ones.
 *
 * A sum of n numbers may be added up in any order, and a product be fused with a sum or not: each
 * such rounding changes the result by at most 2^-24 of the magnitudes that are in it. These are
 * the result of the scalar kernel for the absolute values of all inputs, so the bound is
 *     |found - wanted| <= 2^-23 (n + 3) magnitude,
 * with n = size for products, and as many as are added to a row, which may be there twice, for the
 * others.
 * Buffers are allocated to the byte, so that the sanitizers see reads and writes beyond the end.
 */
#include "common/random.h"
#include "kernels/kernels.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 40, SIZE_MAX_TRIED = 1024, ROWS = 24, CASES = 400 };
static const double ROUNDING = 1.0 / (1 << 23);
static uint64_t stream = 11;
static int failures;

static int64_t below(int64_t limit) { return dcme_below(dcme_random(&stream), limit); }

/* Of either sign and a magnitude from 2^-12 to 2^4. */
static float any_number(void) {
    float mantissa = (float)(dcme_random(&stream) >> 40) / (1 << 23) - 1;
    return ldexpf(mantissa, (int)below(17) - 12);
}

/* All arguments of a kernel; `rows` point into the first half of `table`, `outs` into the second,
 * some at the same row. */
typedef struct {
    int64_t count, out_count, size;
    float *memory, *table, *x, *y, *weights, scale;
    float *rows[COUNT_MAX], *outs[COUNT_MAX];
} arguments;

static int64_t numbers_of(const arguments *a) {
    return (2 * ROWS + 2) * a->size + (a->count + 1) * (a->out_count + 1);
}

/* A table of rows that begin at any float, so that they are not aligned. */
static void allocate(arguments *a, int64_t count, int64_t out_count, int64_t size) {
    *a = (arguments){.count = count, .out_count = out_count, .size = size};
    a->memory = malloc((size_t)(numbers_of(a) + 1) * sizeof(float));
    if (!a->memory)
        abort();
    a->table = a->memory + 1;
    a->x = a->table + 2 * ROWS * size;
    a->weights = a->x + size;
    a->y = a->weights + (count + 1) * (out_count + 1); /* at the end, where the sanitizer watches */
}

static void fill(arguments *a, int distinct) {
    for (int64_t i = 0; i < numbers_of(a); i++)
        a->table[i] = any_number();
    for (int64_t i = 0; i < COUNT_MAX; i++) {
        a->rows[i] = a->table + (distinct ? i % ROWS : below(ROWS)) * a->size;
        a->outs[i] = a->table + (ROWS + (distinct ? i % ROWS : below(ROWS))) * a->size;
    }
    a->scale = any_number();
}

/* A copy, with absolute values if `absolute`. */
static void copy(arguments *to, const arguments *from, int absolute) {
    allocate(to, from->count, from->out_count, from->size);
    for (int64_t i = 0; i < numbers_of(from); i++)
        to->table[i] = absolute ? fabsf(from->table[i]) : from->table[i];
    for (int64_t i = 0; i < COUNT_MAX; i++) {
        to->rows[i] = to->table + (from->rows[i] - from->table);
        to->outs[i] = to->table + (from->outs[i] - from->table);
    }
    to->scale = absolute ? fabsf(from->scale) : from->scale;
}

enum { DOTS, PAIRS, UPDATE, MEAN, SPREAD, COMBINE, SUMS, SUMS_BY_ROW, PUSH, AXPY, KINDS };
static const char *const NAMES[] = {
    "dots",         "pair_dots",    "update",        "mean",
    "one weight",   "weighted_sum", "weighted_sums", "weighted_sums by row",
    "rank1_update", "axpy"};

/* A kernel writes to the table, to y, or, for products, to the weights. */
static void call(const dcme_kernels *k, int kind, arguments *a) {
    switch (kind) {
    case DOTS:
        k->dots(a->weights, a->count + 1, a->outs, a->out_count, a->rows, a->count, a->size);
        break;
    case PAIRS:
        k->pair_dots(a->weights, a->outs, a->rows,
                     a->count < a->out_count ? a->count : a->out_count, a->size);
        break;
    case UPDATE:
        k->update(a->y, a->x, a->rows, a->weights, a->weights + 1, a->count, a->size);
        break;
    case MEAN:
        k->mean(a->y, a->scale, a->rows, a->count, a->size);
        break;
    case SPREAD:
        k->weighted_sums(a->rows, a->count, &a->scale, 0, 0, &a->x, 1, a->size, NULL, NULL);
        break;
    case COMBINE:
        k->weighted_sum(a->y, a->rows, a->weights, a->count, a->size);
        break;
    case SUMS:
        k->weighted_sums(a->outs, a->out_count, a->weights, 1, a->out_count, a->rows, a->count,
                         a->size, a->rows, a->weights + a->count * a->out_count);
        break;
    case SUMS_BY_ROW:
        k->weighted_sums(a->outs, a->out_count, a->weights, a->count, 1, a->rows, a->count, a->size,
                         NULL, NULL);
        break;
    case PUSH:
        dcme_rank1_update(k, a->rows, a->weights, a->x, a->count, a->size);
        break;
    default:
        dcme_axpy(k, a->y, a->scale, a->x, a->size);
    }
}

static int64_t terms(int kind, const arguments *a) {
    return kind == DOTS || kind == PAIRS         ? a->size
           : kind == SUMS || kind == SUMS_BY_ROW ? a->count * a->out_count
                                                 : a->count;
}

static void check_case(const dcme_kernels *kernels, int kind, int64_t count, int64_t size) {
    arguments given, wanted, magnitude;
    int64_t out_count = below(COUNT_MAX + 1);
    allocate(&given, count, out_count, size);
    fill(&given, below(2) == 0);
    copy(&wanted, &given, 0);
    copy(&magnitude, &given, 1);
    call(kernels, kind, &given);
    call(&dcme_kernels_scalar, kind, &wanted);
    call(&dcme_kernels_scalar, kind, &magnitude);
    double factor = ROUNDING * (double)(terms(kind, &given) + 3);
    for (int64_t i = 0; i < numbers_of(&given); i++) {
        double difference = fabs((double)given.table[i] - (double)wanted.table[i]);
        if (difference <= factor * (double)magnitude.table[i])
            continue;
        printf("%s %s, count %d and %d, size %d: number %d is %a, expected %a\n", kernels->name,
               NAMES[kind], (int)count, (int)out_count, (int)size, (int)i, given.table[i],
               wanted.table[i]);
        failures++;
        break;
    }
    free(given.memory), free(wanted.memory), free(magnitude.memory);
}

/* 1[i = 0] - 1 / (1 + exp(-x)): the logistic to 4 units in the last place, and to 2e-38 where it is
 * that small; the difference to as much of a one. */
static void check_residuals_of(const dcme_kernels *kernels, const float *x, int64_t count,
                               int in_place) {
    size_t bytes = (size_t)dcme_stride(count) * sizeof(float);
    float *in = malloc(bytes), *out = in_place ? in : malloc(bytes);
    if (!in || !out)
        abort();
    for (int64_t i = 0; i < dcme_stride(count); i++)
        in[i] = i < count ? x[i] : 0;
    kernels->residuals(out, in, count);
    for (int64_t i = 0; i < count; i++) {
        double logistic = 1 / (1 + exp(-(double)x[i])), wanted = (i == 0) - logistic;
        double allowed = 2 * ROUNDING * (i == 0 ? 1 : logistic) + 2e-38;
        int right = isnan(x[i]) ? isnan(out[i]) : fabs(out[i] - wanted) <= allowed;
        if (!right) {
            printf("%s residual(%a) = %a, expected %a\n", kernels->name, x[i], out[i], wanted);
            failures++;
            break;
        }
    }
    free(in);
    if (!in_place)
        free(out);
}

static void check_residuals(const dcme_kernels *kernels) {
    static const float special[] = {
        0.f,      -0.f,      INFINITY, -INFINITY, NAN,     -NAN,     FLT_MIN, -FLT_MIN,
        1e-45f,   -1e-45f,   1e-40f,   -1e-40f,   FLT_MAX, -FLT_MAX, 87.f,    -87.f,
        88.f,     -88.f,     88.8f,    -88.8f,    103.9f,  -103.9f,  86.99f,  -86.99f,
        0.34657f, -0.34657f, 17.33f,   -17.33f,   1e-8f,   -1e-8f,   200.f,   -200.f};
    enum { STEPS = 4001 };
    static float sweep[STEPS];
    for (int64_t count = 0; count <= (int64_t)(sizeof special / sizeof *special); count++)
        check_residuals_of(kernels, special, count, count % 2);
    for (int64_t i = 0; i < STEPS; i++)
        sweep[i] = (float)(i - STEPS / 2) * (400.f / (STEPS - 1));
    check_residuals_of(kernels, sweep, STEPS, 0);
    for (int64_t i = 0; i < STEPS; i++)
        sweep[i] = any_number();
    check_residuals_of(kernels, sweep, STEPS, 1);
}

/* exp(x) to 4 units in the last place within its range, far below it near zero. */
static void check_exponential(const dcme_kernels *kernels) {
    enum { STEPS = 3500 };
    static float x[STEPS + DCME_PAD], out[STEPS + DCME_PAD];
    for (int64_t i = 0; i < STEPS; i++)
        x[i] = (float)(i - STEPS / 2) * (174.f / STEPS);
    x[0] = NAN, x[1] = -1e4f;
    kernels->exponential(out, x, STEPS);
    for (int64_t i = 0; i < STEPS; i++) {
        double wanted = exp((double)x[i]);
        int right =
            isnan(x[i]) ? isnan(out[i]) : fabs(out[i] - wanted) <= 2 * ROUNDING * wanted + 2e-38;
        if (!right) {
            printf("%s exponential(%a) = %a, expected %a\n", kernels->name, x[i], out[i], wanted);
            failures++;
        }
    }
}

/* Steps of moving sums, of small integers, so that nothing is rounded. */
static void check_slide(const dcme_kernels *kernels, int64_t size) {
    enum { STEPS = 5, VECTORS = 4 + 3 + 3 * STEPS };
    size_t bytes = (size_t)(VECTORS * size) * sizeof(float);
    float *found = malloc(bytes), *wanted = malloc(bytes);
    int64_t count = below(STEPS + 1), same = below(STEPS); /* an out is there twice */
    if (!found || !wanted)
        abort();
    for (int64_t i = 0; i < VECTORS * size; i++)
        found[i] = wanted[i] = (float)(below(64) - 32);
    for (int other = 0; other < 2; other++) {
        float *sums = other ? wanted : found, *passed = sums + 4 * size, *own = passed + 3 * size;
        dcme_slide steps[STEPS];
        for (int64_t i = 0; i < STEPS; i++, own += 3 * size)
            steps[i] = (dcme_slide){.x = own,
                                    .first = passed,
                                    .at = i > 1 ? steps[i - 2].last : passed + 2 * size,
                                    .last = own + size,
                                    .out = own + 2 * size,
                                    .scale = (float)(i % 3),
                                    .out_scale = (float)(1 + i % 2)};
        steps[STEPS - 1].out = steps[same].out;
        (other ? &dcme_kernels_scalar : kernels)->slide(steps, count, sums, size);
    }
    if (memcmp(found, wanted, bytes) != 0) {
        printf("%s slide, size %d\n", kernels->name, (int)size);
        failures++;
    }
    free(found), free(wanted);
}

static void check(const dcme_kernels *kernels) {
    for (int64_t size = DCME_QUAD; size <= 80; size += DCME_QUAD)
        check_slide(kernels, size);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int64_t count = 0; count <= COUNT_MAX; count++)
            check_case(kernels, kind, count, DCME_QUAD * (1 + below(32)));
        for (int64_t i = 0; i < CASES / KINDS; i++)
            check_case(kernels, kind, below(COUNT_MAX + 1),
                       DCME_QUAD * (1 + below(SIZE_MAX_TRIED / DCME_QUAD)));
        check_case(kernels, kind, COUNT_MAX, SIZE_MAX_TRIED);
    }
    check_residuals(kernels);
    check_exponential(kernels);
}

int main(void) {
    static const char *const names[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const dcme_kernels *kernels = dcme_kernels_choose(names[i]);
        if (kernels)
            check(kernels);
    }
    if (dcme_kernels_choose("none") || !dcme_kernels_choose(NULL)) {
        printf("kernels are not chosen by name\n");
        failures++;
    }
    return failures > 0;
}
