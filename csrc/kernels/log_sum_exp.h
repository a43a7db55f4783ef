/* log(sum of exp(x)) in double precision, shared by the instruction sets: loops that compilers turn
 * into vector code for the set that the file is compiled for.
 *
 * exp(x) = 2^n exp(r) with n = round(x / log 2) and |r| <= log(2) / 2, as in exponential.h. Without
 * a fused multiply-add, which compilers are not to introduce, all sets give the same bits.
 */
#include <math.h>
#include <string.h>

enum { LSE_AT_ONCE = 128, LSE_LANES = 8 };
#define LSE_LOWEST (-700.) /* negligible compared with the largest, exp(0) */
#define LSE_ROUND 0x1.8p52 /* a number added to it is rounded, and is in the lowest bits */
#define LSE_PER_LOG2 0x1.71547652b82fep+0
#define LSE_LOG2_HIGH 0x1.62e42feep-1
#define LSE_LOG2_LOW 0x1.a39ef35793c76p-33

/* exp(r) by Taylor's polynomial of degree 13, whose remainder is below 2^-53. */
static inline double lse_rest(double r) {
    double p = 1. / 6227020800;
    p = p * r + 1. / 479001600;
    p = p * r + 1. / 39916800;
    p = p * r + 1. / 3628800;
    p = p * r + 1. / 362880;
    p = p * r + 1. / 40320;
    p = p * r + 1. / 5040;
    p = p * r + 1. / 720;
    p = p * r + 1. / 120;
    p = p * r + 1. / 24;
    p = p * r + 1. / 6;
    p = p * r + 1. / 2;
    return (p * r + 1) * r + 1;
}

/* exp(x) of a number from LSE_LOWEST to 0 */
static inline double lse_exp(double x) {
    double rounded = x * LSE_PER_LOG2 + LSE_ROUND, n = rounded - LSE_ROUND;
    double e = lse_rest((x - n * LSE_LOG2_HIGH) - n * LSE_LOG2_LOW);
    uint64_t bits, power;
    memcpy(&bits, &e, sizeof bits), memcpy(&power, &rounded, sizeof power);
    bits += power << 52; /* the exponent grows by n */
    memcpy(&e, &bits, sizeof e);
    return e;
}

/* The largest number; NaN if one is NaN or infinite, whose product with 0 is NaN. */
static double lse_largest(const double *x, int64_t count) {
    double top[LSE_LANES], zero[LSE_LANES] = {0}, largest = x[0], zeros = 0;
    int64_t i = 0;
    for (int k = 0; k < LSE_LANES; k++)
        top[k] = x[0];
    for (; i + LSE_LANES <= count; i += LSE_LANES)
        for (int k = 0; k < LSE_LANES; k++) {
            top[k] = x[i + k] > top[k] ? x[i + k] : top[k];
            zero[k] += x[i + k] * 0;
        }
    for (; i < count; i++) {
        largest = x[i] > largest ? x[i] : largest;
        zeros += x[i] * 0;
    }
    for (int k = 0; k < LSE_LANES; k++) {
        largest = top[k] > largest ? top[k] : largest;
        zeros += zero[k];
    }
    return zeros == 0 ? largest : NAN;
}

static double lse_sum(const double *x, int64_t count) {
    double sum[LSE_LANES] = {0}, total = 0;
    int64_t i = 0;
    for (; i + LSE_LANES <= count; i += LSE_LANES)
        for (int k = 0; k < LSE_LANES; k++)
            sum[k] += x[i + k];
    for (; i < count; i++)
        total += x[i];
    for (int k = 0; k < LSE_LANES; k++)
        total += sum[k];
    return total;
}

static double log_sum_exp(const double *x, int64_t count) {
    double some[LSE_AT_ONCE], sum = 0, largest = lse_largest(x, count);
    if (isnan(largest))
        return NAN;
    for (int64_t i = 0; i < count; i += LSE_AT_ONCE) {
        int64_t n = dcme_min(count - i, LSE_AT_ONCE);
        for (int64_t j = 0; j < n; j++) {
            double below = x[i + j] - largest;
            some[j] = lse_exp(below < LSE_LOWEST ? LSE_LOWEST : below);
        }
        sum += lse_sum(some, n);
    }
    return largest + log(sum);
}
