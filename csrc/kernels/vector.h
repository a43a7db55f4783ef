/* The kernels in terms of one vector type; included by the file of each instruction set, which
 * defines before: NAME, vec, LANES, and zero() set1(a) load(p) store(p, v) add(a, b) mul(a, b)
 * madd(a, b, c) = ab + c, sum(v), sum4(p, a, b, c, d) for p[0 .. 4), exp_lanes(v),
 * logistic_lanes(v).
 *
 * `size` is a multiple of DCME_PAD and so of LANES. Loops go over a row's chunks outside and over
 * the rows inside, so that a gradient's chunk stays in a register.
 */
static void dots(float *scores, const float *h, float *const *rows, int64_t count, int64_t size) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) { /* four rows share the loads of h and hide madd's latency */
        vec a = zero(), b = zero(), c = zero(), e = zero();
        for (int64_t d = 0; d < size; d += LANES) {
            vec x = load(h + d);
            a = madd(x, load(rows[i] + d), a);
            b = madd(x, load(rows[i + 1] + d), b);
            c = madd(x, load(rows[i + 2] + d), c);
            e = madd(x, load(rows[i + 3] + d), e);
        }
        sum4(scores + i, a, b, c, e);
    }
    for (; i + 2 <= count; i += 2) {
        vec a = zero(), b = zero();
        for (int64_t d = 0; d < size; d += LANES) {
            a = madd(load(h + d), load(rows[i] + d), a);
            b = madd(load(h + d), load(rows[i + 1] + d), b);
        }
        scores[i] = sum(a), scores[i + 1] = sum(b);
    }
    if (i < count) {
        vec a = zero();
        for (int64_t d = 0; d < size; d += LANES)
            a = madd(load(h + d), load(rows[i] + d), a);
        scores[i] = sum(a);
    }
}

static void update(float *gradient, const float *h, float *const *rows, const float *weights,
                   float rate, int64_t count, int64_t size) {
    for (int64_t d = 0; d < size; d += LANES) {
        vec g = load(gradient + d), x = mul(set1(rate), load(h + d));
        for (int64_t i = 0; i < count; i++) {
            vec w = set1(weights[i]), row = load(rows[i] + d);
            g = madd(w, row, g);
            store(rows[i] + d, madd(w, x, row));
        }
        store(gradient + d, g);
    }
}

static void mean(float *out, float scale, float *const *rows, int64_t count, int64_t size) {
    for (int64_t d = 0; d < size; d += LANES) {
        vec a = zero();
        for (int64_t i = 0; i < count; i++)
            a = add(a, load(rows[i] + d));
        store(out + d, mul(set1(scale), a));
    }
}

static void spread(float *const *rows, float scale, const float *x, int64_t count, int64_t size) {
    vec factor = set1(scale);
    for (int64_t i = 0; i < count; i++)
        for (int64_t d = 0; d < size; d += LANES)
            store(rows[i] + d, madd(factor, load(x + d), load(rows[i] + d)));
}

static void axpy(float *y, float a, const float *x, int64_t size) {
    vec factor = set1(a);
    for (int64_t d = 0; d < size; d += LANES)
        store(y + d, madd(factor, load(x + d), load(y + d)));
}

static void combine(float *out, float *const *rows, const float *weights, int64_t count,
                    int64_t size) {
    int64_t d = 0;
    for (; d + 4 * LANES <= size; d += 4 * LANES) { /* four sums hide madd's latency */
        float *o = out + d;
        vec a = load(o), b = load(o + LANES), c = load(o + 2 * LANES), e = load(o + 3 * LANES);
        for (int64_t i = 0; i < count; i++) {
            const float *row = rows[i] + d;
            vec w = set1(weights[i]);
            a = madd(w, load(row), a);
            b = madd(w, load(row + LANES), b);
            c = madd(w, load(row + 2 * LANES), c);
            e = madd(w, load(row + 3 * LANES), e);
        }
        store(o, a), store(o + LANES, b), store(o + 2 * LANES, c), store(o + 3 * LANES, e);
    }
    for (; d < size; d += LANES) {
        vec a = load(out + d);
        for (int64_t i = 0; i < count; i++)
            a = madd(set1(weights[i]), load(rows[i] + d), a);
        store(out + d, a);
    }
}

static void push(float *const *rows, const float *weights, const float *x, int64_t count,
                 int64_t size) {
    for (int64_t i = 0; i < count; i++)
        axpy(rows[i], weights[i], x, size);
}

static void exponential(float *out, const float *x, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES)
        store(out + i, exp_lanes(load(x + i)));
}

static void logistic(float *out, const float *x, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES)
        store(out + i, logistic_lanes(load(x + i)));
}

const dcme_kernels KERNELS = {
    NAME, dots, update, mean, spread, combine, push, axpy, exponential, logistic,
};
