/* Counts, transposes, weights and multiplies entries of sparse rows, and writes them as text. */
#include "documents/documents.h"

#include "common/integer.h"
#include "vectors/vectors.h"

#include <math.h>

enum { AHEAD = 8 }; /* this many rows are fetched before they are read */

void dcme_transpose(const int32_t *columns, const float *values, const int64_t *starts,
                    const int64_t *rows, int64_t n, int64_t width, int64_t *to_starts,
                    int32_t *to_columns, float *to_values) {
    for (int64_t k = 0; k < n; k++) {
        if (k + AHEAD < n) /* the processor cannot foresee which row is next */
            __builtin_prefetch(columns + starts[rows[k + AHEAD]]);
        for (int64_t i = starts[rows[k]]; i < starts[rows[k] + 1]; i++)
            to_starts[columns[i]]++;
    }
    for (int64_t column = 1; column <= width; column++)
        to_starts[column] += to_starts[column - 1]; /* the end of each new row */
    for (int64_t k = n - 1; k >= 0; k--) {
        if (k >= AHEAD) {
            __builtin_prefetch(columns + starts[rows[k - AHEAD]]);
            __builtin_prefetch(values + starts[rows[k - AHEAD]]);
        }
        for (int64_t i = starts[rows[k] + 1] - 1; i >= starts[rows[k]]; i--) {
            int64_t to = --to_starts[columns[i]];
            to_columns[to] = (int32_t)k;
            to_values[to] = values[i];
        }
    }
}

void dcme_copy_rows(const char *values, int64_t size, const int64_t *starts, const int64_t *rows,
                    int64_t n, char *to) {
    for (int64_t k = 0; k < n; k++) {
        int64_t begin = starts[rows[k]] * size, bytes = starts[rows[k] + 1] * size - begin;
        DCME_COPY(to, values + begin, bytes);
        to += bytes;
    }
}

void dcme_squared_lengths(const float *values, const int64_t *starts, int64_t n, double *squares) {
    for (int64_t row = 0; row < n; row++) {
        double sums[4] = {0, 0, 0, 0};
        for (int64_t i = starts[row]; i < starts[row + 1]; i++)
            sums[i & 3] += values[i] * (double)values[i];
        squares[row] = sums[0] + sums[1] + sums[2] + sums[3];
    }
}

void dcme_count_parts(const dcme_documents *documents, const int64_t *starts, const int32_t *parts,
                      int64_t lead, int32_t *place, int64_t *row_starts, int32_t *columns,
                      float *counts) {
    int64_t end = row_starts[0] = 0;
    for (int64_t row = 0; row < documents->count; row++) {
        int64_t begin = end, double_end = documents->starts[row] + lead;
        for (int64_t i = documents->starts[row]; i < documents->starts[row + 1]; i++) {
            uint32_t word = documents->ids[i];
            for (int64_t j = starts[word]; j < starts[word + 1]; j++) {
                int32_t *at = place + parts[j];
                if (*at < 0) {
                    columns[end] = parts[j];
                    counts[end] = 0;
                    *at = (int32_t)(end++ - begin);
                }
                counts[begin + *at] += i < double_end ? 2 : 1;
            }
        }
        for (int64_t k = begin; k < end; k++)
            place[columns[k]] = -1;
        row_starts[row + 1] = end;
    }
}

int64_t dcme_write_entries(char *out, const int32_t *columns, const float *values, int64_t n) {
    char *next = out;
    for (int64_t i = 0; i < n; i++) {
        *next++ = ' ';
        next = dcme_write_integer(next, (int64_t)columns[i] + 1);
        *next++ = ':';
        next += dcme_write_number(next, values[i]);
    }
    return next - out;
}

enum { KNOWN_LOGS = 64 };

static float log_count(float count, const float *logs) {
    float size = fabsf(count);
    if (size < KNOWN_LOGS && size == (float)(int32_t)size)
        return copysignf(logs[(int32_t)size], count);
    return copysignf(size < 1 ? 1 : (float)(1 + log(size)), count);
}

void dcme_weight_counts(float *values, const int32_t *columns, const int64_t *starts, int64_t n,
                        bool is_log, const float *factors, const uint8_t *is_second) {
    float logs[KNOWN_LOGS] = {0};
    for (int32_t count = 1; count < KNOWN_LOGS; count++)
        logs[count] = (float)(1 + log(count));
    for (int64_t row = 0; row < n; row++) {
        double first = 0, second = 0;
        for (int64_t i = starts[row]; i < starts[row + 1]; i++) {
            float value = (is_log ? log_count(values[i], logs) : values[i]) * factors[columns[i]];
            double square = value * (double)value;
            bool other = is_second && is_second[columns[i]];
            values[i] = value;
            first += other ? 0 : square;
            second += other ? square : 0;
        }
        double lengths[2] = {first > 0 ? 1 / sqrt(first) : 1, second > 0 ? 1 / sqrt(second) : 1};
        for (int64_t i = starts[row]; is_second && i < starts[row + 1]; i++)
            values[i] = (float)(values[i] * lengths[is_second[columns[i]] != 0]);
    }
}

void dcme_add_products(const int32_t *columns, const float *values, const int64_t *starts,
                       const int64_t *rows, int64_t n, int64_t width, float *products) {
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = starts[rows[k]]; i < starts[rows[k] + 1]; i++) {
            float *of_column = products + columns[i] * width;
            for (int64_t j = starts[rows[k]]; j <= i; j++)
                of_column[columns[j]] += values[i] * values[j];
        }
}
