/* Decimal text to the nearest float, ties to even, whatever the locale.
 *
 * The first 19 digits and a power of ten give a double within a few units in its last place. It
 * rounds to the same float as the decimal does, unless the midpoint between two floats is as near
 * to it as its own error. Those few, and subnormals, are compared with the middle exactly, in big
 * integers (see W. Clinger, "How to read floating point numbers accurately", 1990).
 */
#include "vectors.h"

#include <math.h>
#include <string.h>

/* Exact digits: the midpoint between two floats has at most 113. Further digits only
 * round the kept ones up. */
#define KEPT_DIGITS 128
#define LIMBS 32

typedef struct {
    const char *digits, *end; /* the digits, with a point among them */
    uint64_t lead;            /* the first 19 digits */
    int64_t lead_power;       /* the value is about lead x 10^lead_power */
    int64_t last_power;       /* the power of ten of the last digit */
} decimal;

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline bool is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* ---- big integers, least significant limb first ---- */

typedef struct {
    uint32_t limb[LIMBS];
    int size;
} big;

static void multiply_add(big *n, uint32_t factor, uint32_t carry) {
    for (int i = 0; i < n->size; i++) {
        uint64_t product = (uint64_t)n->limb[i] * factor + carry;
        n->limb[i] = (uint32_t)product;
        carry = (uint32_t)(product >> 32);
    }
    if (carry)
        n->limb[n->size++] = carry;
}

static void times_power_of_ten(big *n, int64_t exponent) {
    for (; exponent >= 9; exponent -= 9)
        multiply_add(n, 1000000000u, 0);
    for (; exponent > 0; exponent--)
        multiply_add(n, 10, 0);
}

static void shift_left(big *n, int bits) {
    for (; bits >= 31; bits -= 31)
        multiply_add(n, 1u << 31, 0);
    multiply_add(n, 1u << bits, 0);
}

static int compare_big(const big *a, const big *b) {
    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    for (int i = a->size - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* ---- the exact way ---- */

/* All digits as an integer n; the number is n x 10^(*power). */
static big all_digits(const decimal *number, int64_t *power) {
    big n = {{0}, 0};
    int64_t count = 0, dropped = 0;
    bool more = false;
    for (const char *c = number->digits; c < number->end; c++) {
        if (*c == '.')
            continue;
        if (count < KEPT_DIGITS) {
            multiply_add(&n, 10, (uint32_t)(*c - '0'));
            count += n.size > 0;
        } else {
            more |= *c != '0';
            dropped++;
        }
    }
    if (more) {
        multiply_add(&n, 10, 1);
        dropped--;
    }
    *power = number->last_power + dropped;
    return n;
}

/* Compare digits x 10^power with the middle between the float of these bits and the next one.
 * Both sides become integers of less than 1024 bits: 129 digits have 429 bits, and 149 more make
 * the middle whole; 10^power has 130 at most, since the number is below 10^39, and 10^-power 582
 * (129 digits, 46 places), beside the middle's 25 + 104. */
static int compare_with_middle(const big *digits, int64_t power, uint32_t bits) {
    uint32_t biased = bits >> 23, fraction = bits & 0x7FFFFFu;
    uint32_t c = biased ? fraction | 1u << 23 : fraction;
    int twos = (biased ? (int)biased : 1) - 151;
    big left = *digits, right = {{2 * c + 1}, 1};
    times_power_of_ten(power > 0 ? &left : &right, power > 0 ? power : -power);
    shift_left(twos > 0 ? &right : &left, twos > 0 ? twos : -twos);
    return compare_big(&left, &right);
}

/* Step from the float near `guess` to the one that the number rounds to. */
static float round_exactly(const decimal *number, double guess) {
    const uint32_t infinite = 0x7F800000u;
    int64_t power;
    big digits = all_digits(number, &power);
    float value = (float)guess;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (; bits < infinite; bits++) {
        int order = compare_with_middle(&digits, power, bits);
        if (order < 0 || (order == 0 && bits % 2 == 0))
            break;
    }
    for (; bits > 0; bits--) {
        int order = compare_with_middle(&digits, power, bits - 1);
        if (order > 0 || (order == 0 && bits % 2 == 0))
            break;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- the fast way ---- */

/* lead x 10^power. For a float's range the error is below 16 units in the last place: converting
 * and three factors add half a unit each, digits after the 19th much less. */
static double approximate(uint64_t lead, int64_t power) {
    double value = (double)lead;
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

/* Read what follows e or E; NULL if it is not an exponent. */
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

/* Read digits with at most one point; NULL where there is no digit. */
static const char *read_digits(const char *c, const char *end, decimal *number) {
    const uint64_t full = 1000000000000000000u; /* 10^18: from here on another digit may not fit */
    const char *point = NULL;
    uint64_t lead = 0;
    int64_t dropped = 0;
    number->digits = c;
    for (; c < end; c++) {
        if (is_digit(*c)) {
            if (lead < full)
                lead = lead * 10 + (uint64_t)(*c - '0');
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
