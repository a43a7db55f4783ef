/* The shortest decimal of a float, by R. Giulietti's "The Schubfach way to render doubles" (2020).
 *
 * A float v = c 2^q is what every real number in an interval R around it rounds to; R includes its
 * ends where c is even. Let 10^k be the greatest power of ten that is not longer than R. Then R
 * holds a multiple of 10^k, and at most one of 10^(k+1), which is the shortest where there is one.
 * v and the ends of R are scaled by 10^-k to integers, times 4, rounded to odd: enough to compare
 * them with multiples of 4 as if they were exact.
 */
#include "vectors.h"

#include <string.h>

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

static const char PAIRS[] = "00010203040506070809101112131415161718192021222324"
                            "25262728293031323334353637383940414243444546474849"
                            "50515253545556575859606162636465666768697071727374"
                            "75767778798081828384858687888990919293949596979899";

typedef struct {
    uint32_t digits;
    int32_t exponent; /* the value is digits x 10^exponent */
} decimal;

/* floor(log10(2^q)), floor(log10(3/4 2^q)) and floor(log2(10^e)) for the exponents of floats. */
static inline int32_t floor_log10_of_power_of_2(int32_t q) {
    return (q * 1262611) >> 22;
}
static inline int32_t floor_log10_of_three_quarters(int32_t q) {
    return (q * 1262611 - 524031) >> 22;
}
static inline int32_t floor_log2_of_power_of_10(int32_t e) {
    return (e * 1741647) >> 19;
}

/* factor x power / 2^64, rounded to odd. The power is too great by less than one, so the product by
 * less than 2^32; a fraction that small is none, since no float lies so close above an integer. */
static inline uint32_t multiply_to_odd(uint64_t power, uint32_t factor) {
    uint64_t low = (power & 0xFFFFFFFFu) * factor;
    uint64_t high = (power >> 32) * factor + (low >> 32);
    return (uint32_t)(high >> 32) | ((uint32_t)high > 1);
}

static decimal shortest(uint32_t fraction, uint32_t biased_exponent) {
    bool normal = biased_exponent > 0;
    bool narrow = fraction == 0 && biased_exponent > 1; /* the float below is half as far */
    uint32_t c = normal ? fraction | 1u << 23 : fraction;
    int32_t q = (normal ? (int32_t)biased_exponent : 1) - 150;
    int32_t k = narrow ? floor_log10_of_three_quarters(q) : floor_log10_of_power_of_2(q);
    int32_t shift = q + floor_log2_of_power_of_10(-k) + 1;
    uint64_t power = POWERS[-k - SMALLEST_POWER];
    uint32_t odd = c & 1;
    uint32_t value = multiply_to_odd(power, (4 * c) << shift);
    uint32_t low = multiply_to_odd(power, (4 * c - (narrow ? 1 : 2)) << shift) + odd;
    uint32_t high = multiply_to_odd(power, (4 * c + 2) << shift) - odd;

    uint32_t tens = value / 40;
    bool below = low <= 40 * tens, above = 40 * tens + 40 <= high;
    if (below != above) {
        decimal result = {tens + above, k + 1};
        while (result.digits % 10 == 0) {
            result.digits /= 10;
            result.exponent++;
        }
        return result;
    }
    uint32_t ones = value / 4;
    below = low <= 4 * ones;
    above = 4 * ones + 4 <= high;
    if (below != above)
        return (decimal){ones + above, k};
    uint32_t middle = 4 * ones + 2;
    bool up = value > middle || (value == middle && (ones & 1));
    return (decimal){ones + up, k};
}

static int count_digits(uint32_t n) {
    if (n >= 10000000)
        return n >= 100000000 ? 9 : 8;
    if (n >= 100000)
        return n >= 1000000 ? 7 : 6;
    if (n >= 1000)
        return n >= 10000 ? 5 : 4;
    return n >= 100 ? 3 : n >= 10 ? 2 : 1;
}

/* Write exactly `count` digits of n, from the last one. */
static void write_digits(char *out, uint32_t n, int count) {
    for (; count >= 2; count -= 2, n /= 100)
        memcpy(out + count - 2, PAIRS + 2 * (n % 100), 2);
    if (count)
        out[0] = (char)('0' + n % 10);
}

/* d.ddde-07: at least two digits of exponent, as in C and Python. */
static char *write_scientific(char *out, decimal number, int count) {
    int exponent = number.exponent + count - 1;
    write_digits(out + 1, number.digits, count);
    out[0] = out[1];
    out[1] = '.';
    out += count > 1 ? count + 1 : 1;
    *out++ = 'e';
    *out++ = exponent < 0 ? '-' : '+';
    memcpy(out, PAIRS + 2 * (exponent < 0 ? -exponent : exponent), 2);
    return out + 2;
}

static char *write_decimal(char *out, decimal number) {
    int count = count_digits(number.digits), point = count + number.exponent;
    if (point < -3 || point > 16)
        return write_scientific(out, number, count);
    if (point <= 0) {
        memcpy(out, "0.000", 5);
        write_digits(out + 2 - point, number.digits, count);
        return out + 2 - point + count;
    }
    write_digits(out, number.digits, count);
    if (point >= count) {
        memset(out + count, '0', (size_t)(point - count));
        memcpy(out + point, ".0", 2);
        return out + point + 2;
    }
    memmove(out + point + 1, out + point, (size_t)(count - point));
    out[point] = '.';
    return out + count + 1;
}

int dcme_write_number(char *out, float value) {
    char *start = out;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (bits >> 31)
        *out++ = '-';
    bits &= 0x7FFFFFFFu;
    if (bits == 0) {
        memcpy(out, "0.0", 3);
        return (int)(out + 3 - start);
    }
    return (int)(write_decimal(out, shortest(bits & 0x7FFFFFu, bits >> 23)) - start);
}
