/* Write and read integers as decimal text. */
#pragma once

#include <stdint.h>

/* Write a nonnegative number; return the end of the text. */
static inline char *dcme_write_integer(char *to, int64_t number) {
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (n > 0)
        *to++ = digits[--n];
    return to;
}

/* Parse all of start .. end as a number; return -1 if it is not one or exceeds 2^63 - 1. */
static inline int64_t dcme_read_integer(const char *start, const char *end) {
    int64_t number = start < end ? 0 : -1;
    for (; start < end; start++) {
        int digit = *start - '0';
        if (digit < 0 || digit > 9 || number > (INT64_MAX - digit) / 10)
            return -1;
        number = number * 10 + digit;
    }
    return number;
}
