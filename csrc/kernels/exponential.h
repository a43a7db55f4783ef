/* exp() for vectors, shared by the instruction sets; included by vector.h.
 *
 * exp(x) = 2^n exp(r) with n = round(x / log 2) and |r| <= log(2) / 2; log 2 is subtracted in two
 * parts so that r is exact.
 */
#define EXP_LIMIT 87.f      /* beyond, exp(x) leaves float's normal range; the logistic is 0 or 1 */
#define EXP_ROUND 0x1.8p23f /* a number added to it is rounded, and is in the lowest bits */
#define EXP_PER_LOG2 1.44269504088896341f
#define EXP_LOG2_HIGH 0.693359375f
#define EXP_LOG2_LOW (-2.12194440e-4f)

/* exp(r) by Taylor's polynomial of degree 7, whose remainder is below 2^-27, under half a unit in
 * the last place of a float. In Estrin's order: training waits for it, and Horner's takes twice as
 * long. */
INLINE vec exp_rest(vec r) {
    vec r2 = r * r, r4 = r2 * r2;
    vec to1 = 1 + r, to3 = madd(set1(1.f / 6), r, set1(1.f / 2));
    vec to5 = madd(set1(1.f / 120), r, set1(1.f / 24));
    vec to7 = madd(set1(1.f / 5040), r, set1(1.f / 720));
    return madd(r4, madd(r2, to7, to5), madd(r2, to3, to1));
}

typedef uint32_t patterns __attribute__((vector_size(4 * LANES))); /* unsigned: NaN overflows */

/* To be added to `rounded`, whose lowest bits are n, is to multiply by 2^n. */
INLINE vec exp_lanes(vec x) {
    vec limited = clamp(x, set1(-EXP_LIMIT), set1(EXP_LIMIT));
    vec rounded = limited * EXP_PER_LOG2 + EXP_ROUND, n = rounded - EXP_ROUND;
    vec r = madd(n, set1(-EXP_LOG2_LOW), madd(n, set1(-EXP_LOG2_HIGH), limited));
    vec e = (vec)((patterns)exp_rest(r) + ((patterns)rounded << 23));
    return e + (limited - limited); /* NaN stays NaN */
}
