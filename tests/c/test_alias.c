/* Draws from the alias table, and the items of highest weight.
 *
 * A table's cells are equally likely, so its distribution is known exactly: each cell gives its own
 * item with probability threshold / 2^32, and the other one with the rest.
 */
#include "common/alias.h"
#include "common/random.h"
#include "common/top_k.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS = 1000 };
static uint64_t stream = 5;
static int failures;

static void expect(int right, const char *what, int64_t detail) {
    if (!right) {
        printf("%s (%lld)\n", what, (long long)detail);
        failures++;
    }
}

static double unit(void) { return (double)(dcme_random(&stream) >> 11) / (1ull << 53); }

/* Kinds: equal, of many magnitudes, mostly zero, all weight in one item. */
static void make_weights(double *weights, int64_t count, int kind) {
    for (int64_t i = 0; i < count; i++)
        switch (kind) {
        case 0:
            weights[i] = 1;
            break;
        case 1:
            weights[i] = exp(40 * unit() - 20);
            break;
        case 2:
            weights[i] = unit() < 0.9 ? 0 : unit();
            break;
        case 3:
            weights[i] = 1e300 / (double)(i + 1) / (double)count;
            break;
        default:
            weights[i] = i == count / 2 ? 1e-300 : 0;
        }
    weights[count - 1] += weights[0] == 0 ? 1e-9 : 0;
}

static void check_table(int64_t count, int kind) {
    dcme_alias cells[ITEMS];
    double weights[ITEMS], used[ITEMS], share[ITEMS] = {0}, total = 0;
    int32_t order[ITEMS];
    make_weights(weights, count, kind);
    memcpy(used, weights, sizeof used);
    if (!dcme_alias_build(cells, used, order, count)) {
        expect(0, "a table was an error", kind);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        double own = cells[i].threshold / 4294967296.0;
        if (cells[i].other < 0 || cells[i].other >= count) {
            expect(0, "a cell has no other item", i);
            return;
        }
        share[i] += own / (double)count;
        share[cells[i].other] += (1 - own) / (double)count;
        total += weights[i];
    }
    for (int64_t i = 0; i < count; i++) {
        expect(fabs(share[i] - weights[i] / total) < 1e-9, "an item's probability is wrong", i);
        expect(weights[i] > 0 || share[i] == 0, "an item of weight 0 may be drawn", i);
    }
}

/* The lower half of a random number is compared with the threshold. */
static void check_pick(void) {
    const dcme_alias cells[2] = {{1000, 1}, {0, 0}};
    expect(dcme_alias_pick(cells, 0, 999) == 0, "below the threshold", 999);
    expect(dcme_alias_pick(cells, 0, 1000) == 1, "at the threshold", 1000);
    expect(dcme_alias_pick(cells, 0, UINT64_C(0xffffffff00000000)) == 0, "the upper half", 0);
    expect(dcme_alias_pick(cells, 1, 0) == 0, "a threshold of 0", 0);
    expect(dcme_alias_cell(UINT64_MAX, 7) == 6, "the last cell", 6);
    expect(dcme_alias_cell(UINT32_MAX, 7) == 0, "the first cell", 0);
}

static void check_refused(void) {
    static double refused[][2] = {{0, 0}, {NAN, 1}, {INFINITY, 1}, {1, -INFINITY}, {1, -2}};
    dcme_alias cells[2];
    int32_t order[2];
    for (int64_t i = 0; i < 5; i++)
        expect(!dcme_alias_build(cells, refused[i], order, 2), "was not an error", i);
}

/* Item a comes before item b. */
static int before(const real *weights, int32_t a, int32_t b) {
    return weights[a] > weights[b] || (weights[a] == weights[b] && a < b);
}

/* Each selected item is before the next one, and the last before all others. */
static void check_select(int64_t count, int64_t items, int64_t values) {
    real weights[ITEMS];
    int32_t heaviest[ITEMS];
    for (int64_t i = 0; i < items; i++) /* few values: many are equal */
        weights[i] = (real)dcme_below(dcme_random(&stream), values);
    dcme_top_k(heaviest, count, weights, items);
    int64_t behind = 0;
    for (int64_t i = 1; i < count; i++)
        expect(before(weights, heaviest[i - 1], heaviest[i]),
               "items of highest weight out of order", i);
    for (int64_t i = 0; count > 0 && i < items; i++)
        behind += before(weights, heaviest[count - 1], (int32_t)i);
    expect(count == 0 || behind == items - count, "not the items of highest weight", count);
}

int main(void) {
    static const int64_t counts[] = {1, 2, 3, 7, 64, 999, ITEMS};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int kind = 0; kind < 5; kind++)
            check_table(counts[i], kind);
    check_pick();
    check_refused();
    for (int64_t items = 1; items <= 40; items++)
        for (int64_t count = 0; count <= items; count++)
            check_select(count, items, 1 + items / 3), check_select(count, items, 1000000);
    return failures > 0;
}
