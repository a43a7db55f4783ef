/* Weighted k-means on a line, to the optimum: a dynamic programme by divide and conquer.
 *
 * With the numbers in order every cluster is an interval. D_k(j), the least cost of the first j
 * numbers in k clusters, is the minimum over i of D_{k-1}(i) + cost(i, j), and the i that attains
 * it ascends with j, so that the middle j splits the search for all others.
 */
#include "fused/fused.h"

#include <math.h>

/* Sums before each number: of weights, of weights x number, of weights x number^2. */
typedef struct {
    double weight, moment, square;
} prefix;

typedef struct {
    const prefix *sums;
    const double *before; /* (n + 1) D_{k-1} */
    double *now;          /* (n + 1) D_k */
    int32_t *from;        /* (n + 1) where the last cluster begins */
} layer;

/* Cost of the numbers a .. b - 1 around their mean. */
static inline double cost_of(const prefix *a, const prefix *b) {
    double weight = b->weight - a->weight, moment = b->moment - a->moment;
    double cost = b->square - a->square - moment * moment / weight;
    return cost > 0 ? cost : 0; /* also where there is no number: 0 / 0 */
}

static void solve_one(const layer *l, int64_t j, int64_t low, int64_t high) {
    int64_t last = dcme_min(high, j), best = low;
    double least = INFINITY;
    prefix end = l->sums[j];
    for (int64_t i = low; i <= last; i++) {
        double cost = l->before[i] + cost_of(&l->sums[i], &end);
        if (cost < least) {
            least = cost;
            best = i;
        }
    }
    l->now[j] = least;
    l->from[j] = (int32_t)best;
}

/* D_k(j) for first <= j <= last, whose arguments are within low .. high. */
static void solve(const layer *l, int64_t first, int64_t last, int64_t low, int64_t high) {
    while (first <= last) {
        int64_t middle = first + (last - first) / 2;
        solve_one(l, middle, low, high);
        int64_t split = l->from[middle];
        solve(l, first, middle - 1, low, split);
        first = middle + 1;
        low = split;
    }
}

static prefix *sums_of(dcme_arena *arena, const double *numbers, const double *weights, int64_t n,
                       double origin) {
    prefix *sums = dcme_take_unset(arena, n + 1, sizeof *sums);
    prefix sum = {0, 0, 0};
    for (int64_t i = 0; sums && i <= n; i++) {
        sums[i] = sum;
        if (i == n)
            break;
        double shifted = numbers[i] - origin;
        sum.weight += weights[i];
        sum.moment += weights[i] * shifted;
        sum.square += weights[i] * shifted * shifted;
    }
    return sums;
}

/* D_0: all numbers so far are in the cluster at 0. */
static void open_layers(double *before, const double *numbers, const double *weights, int64_t n) {
    double cost = 0;
    for (int64_t i = 0; i <= n; i++) {
        before[i] = cost;
        cost += i < n ? weights[i] * numbers[i] * numbers[i] : 0;
    }
}

static double solve_layers(layer *l, int64_t n, int32_t count, int32_t *from, double *now,
                           double *before, int64_t *ends) {
    for (int32_t k = 0; k < count; k++) {
        *l = (layer){l->sums, before, now, from + k * (n + 1)};
        if (k == count - 1)
            solve_one(l, n, 0, n);
        else
            solve(l, 0, n, 0, n);
        double *swapped = before;
        before = now;
        now = swapped;
    }
    int64_t end = n;
    for (int32_t k = count - 1; k >= 0; k--) {
        ends[k + 1] = end;
        end = from[k * (n + 1) + end];
    }
    ends[0] = end;
    return before[n];
}

/* Around the mean the sums of squares are smallest, and with them the error of their differences.
 */
static double mean_of(const double *numbers, const double *weights, int64_t n) {
    double weight = 0, moment = 0;
    for (int64_t i = 0; i < n; i++) {
        weight += weights[i];
        moment += weights[i] * numbers[i];
    }
    return weight > 0 ? moment / weight : 0;
}

dcme_status dcme_cluster_numbers(const double *numbers, const double *weights, int64_t n,
                                 int32_t count, int64_t *ends, double *cost, dcme_error *error) {
    if (n < 0 || n >= INT32_MAX || count < 1)
        return dcme_fail(error, DCME_BAD_ARGUMENT, n, "too many numbers, or no cluster");
    dcme_arena arena = {0};
    layer l = {.sums = sums_of(&arena, numbers, weights, n, mean_of(numbers, weights, n))};
    double *before = dcme_take_unset(&arena, n + 1, sizeof *before);
    double *now = dcme_take_unset(&arena, n + 1, sizeof *now);
    int32_t *from = dcme_take_unset(&arena, (n + 1) * count, sizeof *from);
    dcme_status status =
        dcme_arena_check(&arena, (dcme_purpose){"the levels", "use fewer levels"}, error);
    if (status == DCME_OK) {
        open_layers(before, numbers, weights, n);
        *cost = solve_layers(&l, n, count, from, now, before, ends);
    }
    dcme_arena_close(&arena);
    return status;
}

void dcme_bin_numbers(const double *numbers, const double *weights, int64_t n, double low,
                      double scale, int64_t bins, double *sums, double *moments, double *squares) {
    for (int64_t i = 0; i < n; i++) {
        double place = (numbers[i] - low) * scale;
        int64_t bin = place > 0 ? place : 0;
        bin = dcme_min(bin, bins - 1);
        double moment = weights[i] * numbers[i];
        sums[bin] += weights[i];
        moments[bin] += moment;
        squares[bin] += moment * numbers[i];
    }
}

/* The place among at most 127 borders, without branches that depend on the number. */
static inline int32_t place_among(const double *borders, int32_t count, double number) {
    int32_t low = 0;
    while (count > 0) {
        int32_t half = (count + 1) / 2;
        low += borders[low + half - 1] <= number ? half : 0;
        count -= half;
    }
    return low;
}

double dcme_assign_levels(const double *numbers, const double *weights, int64_t n,
                          const double *borders, int32_t count, const int8_t *named,
                          const double *values, int8_t *levels) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t place = place_among(borders, count, numbers[i]);
        double difference = numbers[i] - values[place];
        levels[i] = named[place];
        sum += weights[i] * difference * difference;
    }
    return sum;
}
