/* The kernels in terms of one vector type; included by the file of each instruction set, which
 * defines before: NAME, vec, LANES, and zero() set1(a) load(p) store(p, v) load_part(p, n)
 * store_part(p, n, v) add(a, b) mul(a, b) madd(a, b, c) = ab + c, sum(v), sum4(p, a, b, c, d) for
 * p[0 .. 4), exp_lanes(v), logistic_lanes(v). A part is the first n lanes, n a multiple of 4 below
 * LANES; the others are 0 and not stored.
 *
 * Loops go over a row's chunks outside and over the rows inside, so that a gradient's chunk stays
 * in a register. A row may end with a part of a chunk: `n` is the chunk's lanes, and LANES for all
 * but the last.
 */
static inline vec get(const float *p, int64_t n) { return n == LANES ? load(p) : load_part(p, n); }

static inline void put(float *p, int64_t n, vec v) {
    if (n == LANES)
        store(p, v);
    else
        store_part(p, n, v);
}

/* Calls `chunk` with the arguments and d, n for each chunk; it is inlined, and n == LANES known. */
#define FOR_CHUNKS(first, size, chunk, ...)                                                        \
    do {                                                                                           \
        int64_t d_ = (first);                                                                      \
        for (; d_ + LANES <= (size); d_ += LANES)                                                  \
            chunk(__VA_ARGS__, d_, LANES);                                                         \
        if (d_ < (size))                                                                           \
            chunk(__VA_ARGS__, d_, (size) - d_);                                                   \
    } while (0)

/* sums[i] += rows[i] . h over a chunk; `count` is known where this is inlined, so sums are
 * registers */
static inline void dots_chunk(vec *sums, const float *h, float *const *rows, int count, int64_t d,
                              int64_t n) {
    vec x = get(h + d, n);
    for (int i = 0; i < count; i++)
        sums[i] = madd(x, get(rows[i] + d, n), sums[i]);
}

static void dots(float *scores, const float *h, float *const *rows, int64_t count, int64_t size) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) { /* four rows share the loads of h and hide madd's latency */
        vec a[4] = {zero(), zero(), zero(), zero()};
        FOR_CHUNKS(0, size, dots_chunk, a, h, rows + i, 4);
        sum4(scores + i, a[0], a[1], a[2], a[3]);
    }
    for (; i + 2 <= count; i += 2) {
        vec a[2] = {zero(), zero()};
        FOR_CHUNKS(0, size, dots_chunk, a, h, rows + i, 2);
        scores[i] = sum(a[0]), scores[i + 1] = sum(a[1]);
    }
    if (i < count) {
        vec a[1] = {zero()};
        FOR_CHUNKS(0, size, dots_chunk, a, h, rows + i, 1);
        scores[i] = sum(a[0]);
    }
}

static inline void update_chunk(float *gradient, const float *h, float *const *rows,
                                const float *weights, float rate, int64_t count, int64_t d,
                                int64_t n) {
    vec g = get(gradient + d, n), x = mul(set1(rate), get(h + d, n));
    for (int64_t i = 0; i < count; i++) {
        vec w = set1(weights[i]), row = get(rows[i] + d, n);
        g = madd(w, row, g);
        put(rows[i] + d, n, madd(w, x, row));
    }
    put(gradient + d, n, g);
}

static void update(float *gradient, const float *h, float *const *rows, const float *weights,
                   float rate, int64_t count, int64_t size) {
    FOR_CHUNKS(0, size, update_chunk, gradient, h, rows, weights, rate, count);
}

static inline void mean_chunk(float *out, float scale, float *const *rows, int64_t count, int64_t d,
                              int64_t n) {
    vec a = zero();
    for (int64_t i = 0; i < count; i++)
        a = add(a, get(rows[i] + d, n));
    put(out + d, n, mul(set1(scale), a));
}

static void mean(float *out, float scale, float *const *rows, int64_t count, int64_t size) {
    FOR_CHUNKS(0, size, mean_chunk, out, scale, rows, count);
}

static inline void axpy_chunk(float *y, vec factor, const float *x, int64_t d, int64_t n) {
    put(y + d, n, madd(factor, get(x + d, n), get(y + d, n)));
}

static void axpy(float *y, float a, const float *x, int64_t size) {
    vec factor = set1(a);
    FOR_CHUNKS(0, size, axpy_chunk, y, factor, x);
}

static void spread(float *const *rows, float scale, const float *x, int64_t count, int64_t size) {
    for (int64_t i = 0; i < count; i++)
        axpy(rows[i], scale, x, size);
}

static void push(float *const *rows, const float *weights, const float *x, int64_t count,
                 int64_t size) {
    for (int64_t i = 0; i < count; i++)
        axpy(rows[i], weights[i], x, size);
}

static inline void combine_chunk(float *out, float *const *rows, const float *weights,
                                 int64_t count, int64_t d, int64_t n) {
    vec a = get(out + d, n);
    for (int64_t i = 0; i < count; i++)
        a = madd(set1(weights[i]), get(rows[i] + d, n), a);
    put(out + d, n, a);
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
    FOR_CHUNKS(d, size, combine_chunk, out, rows, weights, count);
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
