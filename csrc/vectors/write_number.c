/* Write the shortest decimal of a float, by R. Giulietti's "The Schubfach way to render doubles"
 * (2020).
 *
 * The real numbers that round to a float v = c 2^q form an interval R around it, which includes its
 * ends if c is even. Let 10^k be the greatest power of ten that does not exceed the length of R.
 * Then R contains a multiple of 10^k, and at most one multiple of 10^(k+1). If there is one, it is
 * the shortest decimal. v and the ends of R are multiplied by 4 x 10^-k and rounded to odd
 * integers, which suffices to compare them with multiples of 4 as if they were exact.
 */
#include "vectors.h"

#define SMALLEST_POWER -31

/* 10^e scaled by a power of two into [2^63, 2^64) and rounded up, e = -31..45. Written by
 *   for e in range(-31, 46):
 *       power = Fraction(10) ** e; scale = 63 - floor_log2(power)
 *       print(hex(math.ceil(power * Fraction(2) ** scale)))
 */
static const uint64_t POWERS[] = {
    0x81CEB32C4B43FCF5, 0xA2425FF75E14FC32, 0xCAD2F7F5359A3B3F, 0xFD87B5F28300CA0E,
    0x9E74D1B791E07E49, 0xC612062576589DDB, 0xF79687AED3EEC552, 0x9ABE14CD44753B53,
    0xC16D9A0095928A28, 0xF1C90080BAF72CB2, 0x971DA05074DA7BEF, 0xBCE5086492111AEB,
    0xEC1E4A7DB69561A6, 0x9392EE8E921D5D08, 0xB877AA3236A4B44A, 0xE69594BEC44DE15C,
    0x901D7CF73AB0ACDA, 0xB424DC35095CD810, 0xE12E13424BB40E14, 0x8CBCCC096F5088CC,
    0xAFEBFF0BCB24AAFF, 0xDBE6FECEBDEDD5BF, 0x89705F4136B4A598, 0xABCC77118461CEFD,
    0xD6BF94D5E57A42BD, 0x8637BD05AF6C69B6, 0xA7C5AC471B478424, 0xD1B71758E219652C,
    0x83126E978D4FDF3C, 0xA3D70A3D70A3D70B, 0xCCCCCCCCCCCCCCCD, 0x8000000000000000,
    0xA000000000000000, 0xC800000000000000, 0xFA00000000000000, 0x9C40000000000000,
    0xC350000000000000, 0xF424000000000000, 0x9896800000000000, 0xBEBC200000000000,
    0xEE6B280000000000, 0x9502F90000000000, 0xBA43B74000000000, 0xE8D4A51000000000,
    0x9184E72A00000000, 0xB5E620F480000000, 0xE35FA931A0000000, 0x8E1BC9BF04000000,
    0xB1A2BC2EC5000000, 0xDE0B6B3A76400000, 0x8AC7230489E80000, 0xAD78EBC5AC620000,
    0xD8D726B7177A8000, 0x878678326EAC9000, 0xA968163F0A57B400, 0xD3C21BCECCEDA100,
    0x84595161401484A0, 0xA56FA5B99019A5C8, 0xCECB8F27F4200F3A, 0x813F3978F8940985,
    0xA18F07D736B90BE6, 0xC9F2C9CD04674EDF, 0xFC6F7C4045812297, 0x9DC5ADA82B70B59E,
    0xC5371912364CE306, 0xF684DF56C3E01BC7, 0x9A130B963A6C115D, 0xC097CE7BC90715B4,
    0xF0BDC21ABB48DB21, 0x96769950B50D88F5, 0xBC143FA4E250EB32, 0xEB194F8E1AE525FE,
    0x92EFD1B8D0CF37BF, 0xB7ABC627050305AE, 0xE596B7B0C643C71A, 0x8F7E32CE7BEA5C70,
    0xB35DBF821AE4F38C,
};

static const uint32_t TENS[] = {1,      10,      100,      1000,      10000,
                                100000, 1000000, 10000000, 100000000, 1000000000};

typedef struct {
    uint32_t digits;
    int32_t exponent; /* the value is digits x 10^exponent */
} decimal;

/* floor(log10(2^q)), floor(log10(3/4 2^q)) and floor(log2(10^e)) for the exponents of floats. */
static inline int32_t floor_log10_of_power_of_2(int32_t q) { return (q * 1262611) >> 22; }
static inline int32_t floor_log10_of_three_quarters(int32_t q) {
    return (q * 1262611 - 524031) >> 22;
}
static inline int32_t floor_log2_of_power_of_10(int32_t e) { return (e * 1741647) >> 19; }

/* Return factor x power / 2^64, rounded to odd. The power is less than one too large, so the
 * product is less than 2^32 too large. A fraction as small as this error is taken for zero, because
 * no float lies so close above an integer. */
static inline uint32_t multiply_to_odd(uint64_t power, uint32_t factor) {
    uint64_t low = (power & 0xFFFFFFFFu) * factor;
    uint64_t high = (power >> 32) * factor + (low >> 32);
    return (uint32_t)(high >> 32) | ((uint32_t)high > 1);
}

static decimal shortest(uint32_t fraction, uint32_t biased_exponent) {
    bool normal = biased_exponent > 0;
    bool narrow =
        fraction == 0 && biased_exponent > 1; /* the next smaller float is only half as far away */
    uint32_t c = normal ? fraction | 1u << 23 : fraction;
    int32_t q = (normal ? (int32_t)biased_exponent : 1) - 150;
    int32_t k = narrow ? floor_log10_of_three_quarters(q) : floor_log10_of_power_of_2(q);
    int32_t shift = q + floor_log2_of_power_of_10(-k) + 1;
    uint64_t power = POWERS[-k - SMALLEST_POWER];
    uint32_t odd = c & 1;
    uint32_t value = multiply_to_odd(power, (4 * c) << shift);
    uint32_t low = multiply_to_odd(power, (4 * c - (narrow ? 1 : 2)) << shift) + odd;
    uint32_t high = multiply_to_odd(power, (4 * c + 2) << shift) - odd;

    /* Both candidates are computed, and one of them is selected without a branch: a branch would be
     * unpredictable.
     */
    uint32_t tens = value / 40, ones = value / 4, middle = 4 * ones + 2;
    bool ten_below = low <= 40 * tens, ten_above = 40 * tens + 40 <= high;
    bool one_below = low <= 4 * ones, one_above = 4 * ones + 4 <= high;
    bool nearest_above = (value > middle) | ((value == middle) & (ones & 1));
    bool up = one_below != one_above ? one_above : nearest_above;
    bool shorter = ten_below != ten_above;
    return (decimal){shorter ? tens + ten_above : ones + up, k + shorter};
}

static int count_digits(uint32_t n) {
    int below = (32 - __builtin_clz(n)) * 1233 >> 12; /* log10(2) is about 1233/4096 */
    return below + (n >= TENS[below]);
}

/* Return the eight digits of n < 10^8, one per byte, with the first digit in the lowest byte. n is
 * split into halves, then pairs, then digits, each in its own lane, with n/100 as n x 10486 >> 20
 * and n/10 as n x 103 >> 10. */
static uint64_t eight_digits(uint32_t n) {
    uint64_t halves = n / 10000 | (uint64_t)(n % 10000) << 32;
    uint64_t hundreds = halves * 10486 >> 20 & 0x0000007F0000007Fu;
    uint64_t pairs = hundreds | (halves - 100 * hundreds) << 16;
    uint64_t tens = pairs * 103 >> 10 & 0x000F000F000F000Fu;
    return tens | (pairs - 10 * tens) << 8;
}

/* Write nine digits, padded with zeros; return their number without trailing zeros. */
static int write_digits(char *out, uint32_t nine) {
    uint32_t rest = nine % 100000000;
    uint64_t digits = eight_digits(rest), ascii = digits + 0x3030303030303030u;
    out[0] = (char)('0' + nine / 100000000);
    memcpy(out + 1, &ascii, 8);
    return digits ? 9 - __builtin_clzll(digits) / 8 : 1;
}

/* d.ddde-07: at least two digits of exponent, as in C and Python. */
static char *write_scientific(char *out, uint32_t nine, int exponent) {
    int count = write_digits(out + 1, nine), size = exponent < 0 ? -exponent : exponent;
    out[0] = out[1];
    out[1] = '.';
    out += count > 1 ? count + 1 : 1;
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    *out++ = (char)('0' + size / 10);
    *out++ = (char)('0' + size % 10);
    return out;
}

/* ddd.ddd, with at least one digit after the point. */
static char *write_mixed(char *out, uint32_t nine, int point) {
    char digits[17];
    memset(digits, '0', sizeof digits);
    int count = write_digits(digits, nine);
    if (count <= point)
        count = point + 1;
    memcpy(out, digits, point);
    out[point] = '.';
    memcpy(out + point + 1, digits + point, (count - point));
    return out + count + 1;
}

static char *write_decimal(char *out, decimal number) {
    int count = count_digits(number.digits), point = count + number.exponent;
    uint32_t nine = number.digits * TENS[9 - count];
    if (point < -3 || point > 16)
        return write_scientific(out, nine, point - 1);
    if (point > 0)
        return write_mixed(out, nine, point);
    memcpy(out, "0.000", 5);
    out += 2 - point;
    return out + write_digits(out, nine);
}

int dcme_write_number(char *out, float value) {
    char *start = out;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    *out = '-';
    out += bits >> 31;
    bits &= 0x7FFFFFFFu;
    if (bits == 0) {
        memcpy(out, "0.0", 3);
        return (int)(out + 3 - start);
    }
    return (int)(write_decimal(out, shortest(bits & 0x7FFFFFu, bits >> 23)) - start);
}
