/* Running sums of a window against sums recomputed at every position.
 *
 * A running sum has the rounding errors of all additions and subtractions since it was last
 * recomputed, at most 256 positions ago. So the error is in relation to the largest vectors since
 * then, not to the vectors of the window.
 */
#include "common/random.h"
#include "words/sliding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = DCME_PAD, LONGEST = 600, WINDOWS = 12, RENEWED = 256, HUGER = 1000000 };
static int failures;

/* x_0 .. x_(length - 1) in -1 .. 1, except the first ones, which are HUGER times that. */
typedef struct {
    int64_t length, huge;
    float x[LONGEST][SIZE];
} sentence;

static void fill(sentence *s, int64_t length, int64_t huge, uint64_t seed) {
    s->length = length, s->huge = huge;
    for (int64_t i = 0; i < length; i++)
        for (int64_t d = 0; d < SIZE; d++)
            s->x[i][d] =
                ((float)(dcme_random(&seed) >> 40) / (1 << 23) - 1) * (i < huge ? HUGER : 1);
}

/* y_t of the definition */
static void add_up(double *y, const sentence *s, int64_t t, int64_t window) {
    for (int64_t d = 0; d < SIZE; d++)
        y[d] = 0;
    for (int64_t p = t - window; p <= t + window; p++) {
        if (p < 0 || p >= s->length || p == t)
            continue;
        for (int64_t d = 0; d < SIZE; d++)
            y[d] += (double)s->x[p][d];
    }
}

/* The errors allowed, in units of the largest number: two roundings a position of a sum of 2c + 1
 * numbers. Of the worst case an eighth, as rounding errors partly cancel. */
static double bound(int64_t window) {
    double c = (double)window, ulp = 1.0 / (1 << 24), positions = RENEWED + 2 * c;
    return 2 * positions * (2 * c + 1) * ulp / 8;
}

static void check_position(const dcme_sliding *sliding, const sentence *s, int64_t t,
                           const float *found) {
    int64_t renewal = t - t % RENEWED;
    double y[SIZE], largest = renewal - sliding->window < s->huge ? HUGER : 1;
    add_up(y, s, t, sliding->window);
    for (int64_t d = 0; d < SIZE; d++) {
        double difference = fabs((double)found[d] - 0.5 * y[d]);
        if (difference <= largest * bound(sliding->window))
            continue;
        printf("window %d, position %d of %d: %g, expected %g\n", (int)sliding->window, (int)t,
               (int)s->length, found[d], 0.5 * y[d]);
        failures++;
        return;
    }
}

/* Push a whole sentence, and zeros after it until its last position has its sum. */
static void check_sentence(dcme_sliding *sliding, const sentence *s) {
    static float found[LONGEST + WINDOWS][SIZE];
    memset(found, 0, sizeof found);
    dcme_sliding_reset(sliding);
    for (int64_t p = 0; p < s->length + sliding->window; p++) {
        dcme_sliding_push(sliding, p < s->length ? s->x[p] : NULL, 1, found[p], 0.5f);
        if (p % 7 == 0)
            dcme_sliding_finish(sliding);
    }
    dcme_sliding_finish(sliding);
    for (int64_t t = 0; t < s->length; t++)
        check_position(sliding, s, t, found[t + sliding->window]);
}

/* Sentences of all kinds in sequence: no sum of one may remain in the next. */
static void check_window(int64_t window, const dcme_kernels *kernels) {
    static const int64_t lengths[] = {1, 2, 3, 5, 11, 12, 13, 24, 25, 26, 255, 256, 257, 280, 513};
    static sentence s;
    static float unused[SIZE];
    dcme_sliding sliding;
    dcme_arena arena = {0};
    dcme_sliding_open(&sliding, &arena, kernels, window, SIZE);
    if (arena.status != DCME_OK)
        abort();
    fill(&s, LONGEST, 40, 1); /* after the next recomputation, huge vectors have no effect */
    check_sentence(&sliding, &s);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        fill(&s, lengths[i], 0, (uint64_t)lengths[i]);
        check_sentence(&sliding, &s);
    }
    fill(&s, LONGEST, LONGEST, 2);
    dcme_sliding_reset(&sliding);
    for (int64_t p = 0; p < 300; p++) /* a sentence that ends in the middle */
        dcme_sliding_push(&sliding, s.x[p], 1, unused, 0);
    fill(&s, LONGEST, 0, 3);
    check_sentence(&sliding, &s);
    dcme_arena_close(&arena);
}

int main(void) {
    for (int64_t window = 1; window <= WINDOWS; window++) {
        check_window(window, &dcme_kernels_scalar);
        check_window(window, dcme_kernels_choose(NULL));
    }
    return failures > 0;
}
