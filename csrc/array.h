/* Operations on whole arrays, and the minimum and maximum of two sizes. */
#pragma once

#include <stdint.h>
#include <string.h>

static inline int64_t dcme_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t dcme_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* Set the first `count` items of an array to zero, or copy them from another array. */
#define DCME_CLEAR(array, count) memset(array, 0, (count) * sizeof *(array))
#define DCME_COPY(to, from, count) memcpy(to, from, (count) * sizeof *(to))
