/* The kernels' specification: plain loops, one operation at a time, in a fixed order. */
#include "kernels.h"

#include <math.h>

static void dots(real *out, int64_t stride, real *const *hs, int64_t h_count, real *const *rows,
                 int64_t count, int64_t size) {
    for (int64_t i = 0; i < h_count; i++)
        for (int64_t j = 0; j < count; j++) {
            real sum = 0;
            for (int64_t d = 0; d < size; d++)
                sum += rows[j][d] * hs[i][d];
            out[i * stride + j] = sum;
        }
}

static void pair_dots(real *out, real *const *hs, real *const *rows, int64_t count, int64_t size) {
    for (int64_t i = 0; i < count; i++) {
        dots(out + 2 * i, 0, hs + i, 1, hs + i, 1, size);
        dots(out + 2 * i + 1, 0, hs + i, 1, rows + i, 1, size);
    }
}

static void update(real *gradient, const real *h, real *const *rows, const real *weights,
                   const real *steps, int64_t count, int64_t size) {
    for (int64_t d = 0; d < size; d++)
        gradient[d] = 0;
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 0; d < size; d++) {
            gradient[d] += weights[i] * rows[i][d];
            rows[i][d] += steps[i] * h[d];
        }
}

static void mean(real *out, real scale, real *const *rows, int64_t count, int64_t size) {
    for (int64_t d = 0; d < size; d++) {
        real sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += rows[i][d];
        out[d] = scale * sum;
    }
}

static void slide(const dcme_slide *steps, int64_t count, real *sum, int64_t size) {
    for (const dcme_slide *s = steps; s < steps + count; s++)
        for (int64_t d = 0; d < size; d++) {
            real at = s->at[d];
            s->last[d] = s->scale * s->x[d];
            sum[d] = sum[d] - s->first[d] + s->last[d];
            s->out[d] += s->out_scale * sum[d] - s->out_scale * at;
        }
}

static void weighted_sum(real *out, real *const *rows, const real *weights, int64_t count,
                         int64_t size) {
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 0; d < size; d++)
            out[d] += weights[i] * rows[i][d];
}

static void weighted_sums(real *const *outs, int64_t out_count, const real *weights,
                          int64_t out_stride, int64_t row_stride, real *const *rows, int64_t count,
                          int64_t size, real *const *starts, const real *start_weights) {
    for (int64_t i = 0; i < out_count; i++) {
        if (starts)
            mean(outs[i], start_weights[i], starts + i, 1, size);
        for (int64_t j = 0; j < count; j++)
            weighted_sum(outs[i], rows + j, weights + i * out_stride + j * row_stride, 1, size);
    }
}

static void exponential(real *out, const real *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = (real)exp((double)x[i]);
}

static void residuals(real *out, const real *x, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        out[i] = (real)((i == 0) - 1 / (1 + exp(-(double)x[i])));
}

const dcme_kernels dcme_kernels_scalar = {
    "scalar", DCME_QUAD,    dots,          pair_dots,   update,    mean,
    slide,    weighted_sum, weighted_sums, exponential, residuals,
};
