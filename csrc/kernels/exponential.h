/* Constants of exp() for vectors, shared by the instruction sets.
 *
 * exp(x) = 2^n exp(r) with n = round(x / log 2) and |r| <= log(2) / 2; log 2 is subtracted in two
 * parts so that r is exact, and exp(r) is the Taylor polynomial of degree 7, whose remainder there
 * is below 2^-27, under half a unit in the last place of a float.
 */
#ifndef DCME_EXPONENTIAL_H
#define DCME_EXPONENTIAL_H

#define EXP_LIMIT                                                                                  \
    87.0f /* beyond, exp(x) leaves float's normal range and the logistic is 0 or 1                 \
           */
#define EXP_PER_LOG2 1.44269504088896341f
#define EXP_LOG2_HIGH 0.693359375f
#define EXP_LOG2_LOW (-2.12194440e-4f)

/* Horner's scheme over set1() and madd() of the including file. */
#define EXP_POLYNOMIAL(r)                                                                          \
    madd(madd(madd(madd(madd(madd(madd(set1(1.f / 5040), r, set1(1.f / 720)), r, set1(1.f / 120)), \
                             r, set1(1.f / 24)),                                                   \
                        r, set1(1.f / 6)),                                                         \
                   r, set1(1.f / 2)),                                                              \
              r, set1(1.f)),                                                                       \
         r, set1(1.f))

#endif
