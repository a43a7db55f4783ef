/* Convert decimal text to the nearest float, ties to even, in any locale.
 *
 * The first 19 digits and a power of ten give a double within a few units in its last place. This
 * double rounds to the correct float unless it is so close to the midpoint between two floats that
 * its error matters. In these rare cases, and for subnormals, the decimal is compared with the
 * midpoint, whose digits the C library writes exactly (see W. Clinger, "How to read floating point
 * numbers accurately", 1990).
 */
#include "vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Exact digits: the midpoint between two floats has at most 113. */
enum { EXACT_DIGITS = 128 };

typedef struct {
    const char *digits, *end; /* the digits, which may contain a point */
    uint64_t lead;            /* the first 19 digits */
    int64_t lead_power;       /* the value is about lead x 10^lead_power */
    int64_t last_power;       /* power of ten of the last digit */
} decimal;

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* ---- exact conversion ---- */

/* The digits of a nonzero number, without leading zeros. */
typedef struct {
    const char *digit, *end; /* the digits, which may contain a point */
    int64_t power;           /* power of ten of the first digit */
} expansion;

static int next_digit(expansion *number) {
    while (number->digit < number->end && !is_digit(*number->digit))
        number->digit++;
    return number->digit < number->end ? *number->digit++ : '0';
}

static int compare_expansions(expansion a, expansion b) {
    int64_t difference = a.power - b.power;
    while (difference == 0 && (a.digit < a.end || b.digit < b.end))
        difference = next_digit(&a) - next_digit(&b);
    return (difference > 0) - (difference < 0);
}

/* Compare a number with the midpoint between the float with these bits and the next float. A double
 * represents the midpoint exactly. */
static int compare_with_middle(expansion number, uint32_t bits) {
    uint32_t biased = bits >> 23, fraction = bits & 0x7FFFFFu;
    uint32_t c = biased ? fraction | 1u << 23 : fraction;
    double middle = ldexp(2 * (double)c + 1, (biased ? (int)biased : 1) - 151);
    char text[EXACT_DIGITS + 16]; /* for example d.ddde-45, with the decimal point of the locale */
    snprintf(text, sizeof text, "%.*e", EXACT_DIGITS - 1, middle);
    char *exponent = strchr(text, 'e');
    return compare_expansions(number, (expansion){text, exponent, strtol(exponent + 1, NULL, 10)});
}

/* Return the digits of a number without leading zeros. */
static expansion expand(const decimal *number) {
    expansion digits = {number->digits, number->end, number->last_power - 1};
    while (*digits.digit == '0' || *digits.digit == '.')
        digits.digit++;
    for (const char *c = digits.digit; c < number->end; c++)
        digits.power += *c != '.';
    return digits;
}

/* Return the float that the number rounds to: the rounded `guess`, or a neighbor of it. */
static float round_exactly(const decimal *number, double guess) {
    expansion digits = expand(number);
    float value = (float)guess;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (bits -= bits > 0; bits < 0x7F800000u; bits++) { /* stop at infinity */
        int order = compare_with_middle(digits, bits);
        if (order < 0 || (order == 0 && bits % 2 == 0))
            break;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- fast conversion ---- */

/* Return lead x 10^power. In the range of floats, the error is below 16 units in the last place:
 * the conversion and three factors add half a unit each, and digits after the 19th much less. */
static double approximate(uint64_t lead, int64_t power) {
    double value = lead;
    for (; power > 22 && value < 1e100; power -= 22)
        value *= 1e22;
    for (; power < -22 && value > 1e-100; power += 22)
        value /= 1e22;
    if (power > 22)
        return value * 1e22;
    return power >= 0 ? value * TENS[power] : value / TENS[power < -22 ? 22 : -power];
}

static float round_number(const decimal *number) {
    if (number->lead == 0)
        return 0;
    double guess = approximate(number->lead, number->lead_power);
    if (guess < 1e-46)
        return 0;
    if (guess > 1e39)
        return INFINITY;
    uint64_t bits;
    memcpy(&bits, &guess, sizeof bits);
    int64_t from_middle = (int64_t)(bits & 0x1FFFFFFF) - 0x10000000;
    if (guess >= 0x1p-126 && (from_middle > 16 || from_middle < -16))
        return (float)guess;
    return round_exactly(number, guess);
}

/* ---- reading ---- */

static const char *read_name(const char *c, const char *end, const char *name) {
    for (; *name; name++, c++)
        if (c == end || (*c | 0x20) != *name)
            return NULL;
    return c;
}

static const char *read_not_finite(const char *c, const char *end, float *value) {
    const char *after = read_name(c, end, "nan");
    *value = after ? NAN : INFINITY;
    if (!after)
        after = read_name(c, end, "infinity");
    return after ? after : read_name(c, end, "inf");
}

/* Read what follows e or E; return NULL if it is not an exponent. */
static const char *read_exponent(const char *c, const char *end, int64_t *exponent) {
    bool negative = c < end && *c == '-';
    int64_t value = 0;
    if (c < end && (*c == '-' || *c == '+'))
        c++;
    if (c == end || !is_digit(*c))
        return NULL;
    for (; c < end && is_digit(*c); c++)
        value = value < INT32_MAX ? value * 10 + (*c - '0') : value;
    *exponent = negative ? -value : value;
    return c;
}

/* Read digits with at most one point; return NULL if there is no digit. */
static const char *read_digits(const char *c, const char *end, decimal *number) {
    const uint64_t full = 1000000000000000000u; /* 10^18: one more digit may not fit */
    const char *point = NULL;
    uint64_t lead = 0;
    int64_t dropped = 0;
    number->digits = c;
    for (; c < end; c++) {
        if (is_digit(*c)) {
            if (lead < full)
                lead = lead * 10 + (*c - '0');
            else
                dropped++;
        } else if (*c == '.' && !point) {
            point = c;
        } else {
            break;
        }
    }
    number->end = c;
    number->lead = lead;
    number->last_power = point ? point + 1 - c : 0;
    number->lead_power = number->last_power + dropped;
    return c - number->digits > (point != NULL) ? c : NULL;
}

const char *dcme_read_number(const char *start, const char *end, float *value) {
    const char *c = start;
    bool negative = c < end && *c == '-';
    decimal number;
    if (c < end && (*c == '-' || *c == '+'))
        c++;
    const char *after = read_digits(c, end, &number);
    if (!after)
        return read_not_finite(c, end, value);
    if (after < end && (*after | 0x20) == 'e') {
        int64_t exponent;
        after = read_exponent(after + 1, end, &exponent);
        if (!after)
            return NULL;
        number.last_power += exponent;
        number.lead_power += exponent;
    }
    *value = negative ? -round_number(&number) : round_number(&number);
    return after;
}
