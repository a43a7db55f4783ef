/* Shared by the tests of gradients: the step of a central difference, and its tolerance. */
#ifndef DIFFERENCES_H
#define DIFFERENCES_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

static const double TOLERANCE = 1e-6, EPSILON = 1e-5;
static int failures;

/* Differences are relative to the largest expected number. */
static void expect(const char *what, int detail, const double *found, const double *wanted,
                   int64_t count) {
    double largest = 0, difference = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(wanted[i]));
        difference = isnan(found[i]) ? INFINITY : fmax(difference, fabs(found[i] - wanted[i]));
    }
    if (largest > 0 && difference <= TOLERANCE * largest)
        return;
    printf("%s (%d): differs by %g where the largest is %g\n", what, detail, difference, largest);
    failures++;
}

#endif
