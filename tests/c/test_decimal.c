/* Numbers as text: every float is written as the shortest text from which it can be read.
 *
 * Compile it with all of csrc; include path csrc, library m.
 *
 * Without an argument it tries a few million random bit patterns; "all" tries every float. The
 * C library's strtof and printf, in the "C" locale, are the reference. Returns 0 on success.
 */
#include "common/random.h"
#include "vectors/vectors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#ifdef __MINGW32__ /* wine's rounds twice */
float __mingw_strtof(const char *restrict text, char **restrict end);
#define strtof __mingw_strtof
#endif

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Read `text` with our reader and with strtof; print a message if they differ. */
static int reads_alike(const char *text) {
    const char *end = text + strlen(text);
    float ours, theirs = strtof(text, NULL);
    const char *after = dcme_read_number(text, end, &ours);
    if (after == end && bits_of(ours) == bits_of(theirs))
        return 1;
    printf("read %.60s: %a, expected %a\n", text, after ? ours : NAN, theirs);
    return 0;
}

static int count_digits(const char *text) {
    int digits = 0, zeros = 0, started = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9')
            continue;
        started |= *text != '0';
        digits += started;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return digits > zeros ? digits - zeros : 1;
}

/* No decimal with fewer digits reads back to the float, so %e with one digit less does not. */
static int is_shortest(float value, const char *text) {
    char shorter[64];
    int digits = count_digits(text);
    if (digits == 1)
        return 1;
    snprintf(shorter, sizeof shorter, "%.*e", digits - 2, value);
    if (bits_of(strtof(shorter, NULL)) != bits_of(value))
        return 1;
    printf("wrote %s, %s is shorter\n", text, shorter);
    return 0;
}

static int check_float(uint32_t bits, int judged) {
    char text[DCME_NUMBER_BYTES + 1];
    float value = float_of(bits), back = NAN;
    if (!isfinite(value))
        return 1;
    int size = dcme_write_number(text, value);
    text[size < DCME_NUMBER_BYTES ? size : DCME_NUMBER_BYTES] = 0;
    if (size >= DCME_NUMBER_BYTES || dcme_read_number(text, text + size, &back) != text + size ||
        bits_of(back) != bits) {
        printf("%08x written as %s reads back as %a\n", bits, text, back);
        return 0;
    }
    return !judged || (is_shortest(value, text) && reads_alike(text));
}

/* The middle between a float and the next: exactly, slightly below and slightly above. */
static int check_middle(uint32_t bits) {
    char text[400];
    double middle = ((double)float_of(bits) + (double)float_of(bits + 1)) / 2;
    int size = snprintf(text, sizeof text, "%.150e", middle);
    char *exponent = strchr(text, 'e');
    int good = reads_alike(text);
    char tail[16];
    (void)size;
    snprintf(tail, sizeof tail, "%s", exponent);
    snprintf(exponent, 40, "%s%s", "00000000000000001", tail);
    good &= reads_alike(text);
    snprintf(text, sizeof text, "%.17e", nextafter(middle, 0));
    good &= reads_alike(text);
    snprintf(text, sizeof text, "%.17e", nextafter(middle, INFINITY));
    return good & reads_alike(text);
}

static int check_random_text(uint64_t *state) {
    char text[80];
    uint64_t whole = dcme_random(state) >> 32, part = dcme_random(state) % 1000000000000000000u;
    snprintf(text, sizeof text, "%s%u.%018llue%d", dcme_random(state) & 1 ? "-" : "",
             (unsigned)whole, (unsigned long long)part,
             (int)dcme_below(dcme_random(state), 100) - 60);
    return reads_alike(text);
}

int main(int count, char **arguments) {
    uint64_t state = 1;
    int good = 1;
    for (uint32_t bits = 0; bits < 70000; bits++)
        good &= check_float(bits, 1); /* subnormals */
    for (uint32_t power = 1; power < 255; power++)
        for (uint32_t near = 0; near < 7; near++)
            good &= check_float((power << 23) + near - 3, 1);
    for (int i = 0; i < 1000000 && good; i++)
        good &= check_float((uint32_t)dcme_random(&state), 1);
    for (int i = 0; i < 100000 && good; i++)
        good &= check_middle((uint32_t)dcme_below(dcme_random(&state), 0x7F7FFFFF)) &
                check_random_text(&state);
    good &= check_middle(0) & check_middle(0x007FFFFF) & check_middle(0x7F7FFFFE);
    if (count > 1 && !strcmp(arguments[1], "all"))
        for (uint32_t bits = 0; bits < 0x7F800000u && good; bits++)
            good &= check_float(bits, 0);
    return !good;
}
