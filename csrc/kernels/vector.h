/* The kernels, in terms of one vector type that compilers support. The file of each instruction
 * set includes this one after defining NAME, vec, LANES, SUM_CHUNKS, UPDATE_CHUNKS, DOT_ROWS,
 * SUM_ROWS, SUM_ROW_CHUNKS, load_part(p, n), store_part(p, n, v), madd(a, b, c) = ab + c, clamp(v,
 * least, most) that keeps NaN, sum(v), sum2(p, a, b) for p[0 .. 2), and sum4(p, a, b, c, d) for
 * p[0 .. 4). A part is the first n lanes, where n is a multiple of 4 below LANES; the other lanes
 * are 0 and not stored.
 *
 * A kernel passes over the list of rows once per group of chunks of LANES numbers, which stay in
 * registers during the pass: SUM_CHUNKS chunks of one vector each, or UPDATE_CHUNKS chunks of one
 * vector of the gradient and one of the context vector, both at most 14. A row may end with a part
 * of a chunk: `n` is the number of lanes, which is LANES for all other chunks.
 *
 * Products of two lists of rows are computed in tiles, whose sums also stay in registers. A tile
 * has DOT_ROWS rows of one list by 4 of the other, or SUM_ROWS sums of SUM_ROW_CHUNKS chunks. So
 * each loaded number is used in several sums, and most of the time is spent on multiply-adds.
 */

#define INLINE static inline __attribute__((always_inline))

typedef vec unaligned __attribute__((aligned(4), may_alias));

INLINE vec zero(void) { return (vec){0}; }
INLINE vec set1(float a) { return a - zero(); }
INLINE vec load(const float *p) { return *(const unaligned *)p; }
INLINE void store(float *p, vec v) { *(unaligned *)p = v; }

/* exp(x) = 2^n exp(r) with n = round(x / log 2) and |r| <= log(2) / 2; log 2 is subtracted in two
 * parts so that r is exact. */
#define EXP_LIMIT 87.f /* beyond this, exp(x) is not a normal float and the logistic is 0 or 1 */
#define EXP_ROUND 0x1.8p23f /* adding it rounds a number to an integer, held in the lowest bits */
#define EXP_PER_LOG2 1.44269504088896341f
#define EXP_LOG2_HIGH 0.693359375f
#define EXP_LOG2_LOW (-2.12194440e-4f)

/* exp(r) by Taylor's polynomial of degree 7, whose remainder is below 2^-27, under half a unit in
 * the last place of a float. It is evaluated by Estrin's scheme, because training waits for the
 * result and Horner's scheme takes twice as long. */
INLINE vec exp_rest(vec r) {
    vec r2 = r * r, r4 = r2 * r2;
    vec to1 = 1 + r, to3 = madd(set1(1.f / 6), r, set1(1.f / 2));
    vec to5 = madd(set1(1.f / 120), r, set1(1.f / 24));
    vec to7 = madd(set1(1.f / 5040), r, set1(1.f / 720));
    return madd(r4, madd(r2, to7, to5), madd(r2, to3, to1));
}

typedef uint32_t patterns __attribute__((vector_size(4 * LANES))); /* unsigned: NaN overflows */

/* Adding n, the lowest bits of `rounded`, to the exponent multiplies by 2^n. */
INLINE vec exp_lanes(vec x) {
    vec limited = clamp(x, set1(-EXP_LIMIT), set1(EXP_LIMIT));
    vec rounded = limited * EXP_PER_LOG2 + EXP_ROUND, n = rounded - EXP_ROUND;
    vec r = madd(n, set1(-EXP_LOG2_LOW), madd(n, set1(-EXP_LOG2_HIGH), limited));
    vec e = (vec)((patterns)exp_rest(r) + ((patterns)rounded << 23));
    return e + (limited - limited); /* NaN stays NaN */
}

/* Without the pragma, GCC replaces these loops by memory copies before it unrolls them. */
#define UNROLL(i, count) _Pragma("GCC unroll 32") for (int i = 0; i < (count); i++)
#define EACH_CHUNK(c) UNROLL (c, chunks)

#ifdef __aarch64__
#define IN_VECTOR_REGISTER "+w"
#else
#define IN_VECTOR_REGISTER "+v"
#endif

/* Otherwise, GCC would load the number again for each use instead of keeping it in a register. */
INLINE vec loaded(vec v) {
    __asm__("" : IN_VECTOR_REGISTER(v));
    return v;
}

INLINE vec get(const float *p, int64_t n) { return n == LANES ? load(p) : load_part(p, n); }

INLINE void put(float *p, int64_t n, vec v) {
    if (n == LANES)
        store(p, v);
    else
        store_part(p, n, v);
}

/* Return where a group of chunks begins in a row. The value is hidden from the compiler:
 * otherwise it would compute the offset of every chunk before the loop over rows, and run out of
 * registers. */
INLINE float *at_chunk(float *row, int64_t d) {
    row += d;
    __asm__("" : "+r"(row));
    return row;
}

/* One case of a switch for each number from 7 down to 1. */
#define EACH_TO_7(of, ...)                                                                         \
    of(7, __VA_ARGS__) of(6, __VA_ARGS__) of(5, __VA_ARGS__) of(4, __VA_ARGS__) of(3, __VA_ARGS__) \
        of(2, __VA_ARGS__) of(1, __VA_ARGS__)

/* FOR_CHUNKS calls `work` with the arguments and d, chunks, n for each group of chunks in a row.
 * Each call is inlined with a constant `chunks`. */
#define LAST_CHUNKS(chunks, most, work, ...)                                                       \
    case chunks:                                                                                   \
        if (chunks < most)                                                                         \
            work(__VA_ARGS__, d_, chunks, LANES);                                                  \
        d_ += (chunks) * LANES;                                                                    \
        break;
#define FOR_CHUNKS(most, size, work, ...)                                                          \
    do {                                                                                           \
        int64_t d_ = 0;                                                                            \
        for (; d_ + (most) * LANES <= (size) && ((size) - d_) / LANES != (most) + 1;               \
             d_ += (most) * LANES)                                                                 \
            work(__VA_ARGS__, d_, most, LANES);                                                    \
        if (((size) - d_) / LANES > (most)) { /* two halves: a single chunk would be slow */       \
            work(__VA_ARGS__, d_, ((most) + 1) / 2, LANES);                                        \
            d_ += ((most) + 1) / 2 * LANES;                                                        \
        }                                                                                          \
        switch (((size) - d_) / LANES) {                                                           \
            LAST_CHUNKS(13, most, work, __VA_ARGS__)                                               \
            LAST_CHUNKS(12, most, work, __VA_ARGS__)                                               \
            LAST_CHUNKS(11, most, work, __VA_ARGS__)                                               \
            LAST_CHUNKS(10, most, work, __VA_ARGS__)                                               \
            LAST_CHUNKS(9, most, work, __VA_ARGS__)                                                \
            LAST_CHUNKS(8, most, work, __VA_ARGS__)                                                \
            EACH_TO_7(LAST_CHUNKS, most, work, __VA_ARGS__)                                        \
        }                                                                                          \
        if (d_ < (size))                                                                           \
            work(__VA_ARGS__, d_, 1, (size) - d_);                                                 \
    } while (0)

/* Sum the lanes of each of `count` vectors, a constant up to eight: first four vectors at a time,
 * then two, then one. */
INLINE void put_sums(float *out, const vec *a, int count) {
    if (count >= 4)
        sum4(out, a[0], a[1], a[2], a[3]);
    if (count == 8)
        sum4(out + 4, a[4], a[5], a[6], a[7]);
    if (count < 8 && count & 2)
        sum2(out + (count & 4), a[count & 4], a[(count & 4) + 1]);
    if (count & 1)
        out[count - 1] = sum(a[count - 1]);
}

INLINE void add_dots(vec *a, float *const *hs, int m, float *const *rows, int n, int64_t d,
                     int64_t lanes) {
    vec x[DOT_ROWS];
    UNROLL (i, m)
        x[i] = get(hs[i] + d, lanes);
    UNROLL (j, n) {
        vec y = get(rows[j] + d, lanes);
        UNROLL (i, m)
            a[i * n + j] = madd(x[i], y, a[i * n + j]);
    }
}

/* A tile of m x n dot products, where `m` and `n` are constants. The products share the loads of
 * both lists, and the m x n independent chains of madd hide its latency. */
INLINE void dots_tile(float *out, int64_t stride, float *const *hs, int m, float *const *rows,
                      int n, int64_t size) {
    vec a[DOT_ROWS * 8];
    int64_t d = 0;
    UNROLL (i, m * n)
        a[i] = zero();
    for (; d + LANES <= size; d += LANES)
        add_dots(a, hs, m, rows, n, d, LANES);
    if (d < size)
        add_dots(a, hs, m, rows, n, d, size - d);
    UNROLL (i, m)
        put_sums(out + i * stride, a + i * n, n);
}

#define LAST_DOTS(n, out, stride, hs, m, rows, size)                                               \
    case n:                                                                                        \
        dots_tile(out, stride, hs, m, rows, n, size);                                              \
        break;

/* Multiply `m` rows of the first list by all rows of the second, `n` rows at a time. */
INLINE void dots_of(float *out, int64_t stride, float *const *hs, int m, float *const *rows, int n,
                    int64_t count, int64_t size) {
    int64_t j = 0;
    for (; j + n <= count; j += n)
        dots_tile(out + j, stride, hs, m, rows + j, n, size);
    switch (count - j) { EACH_TO_7(LAST_DOTS, out + j, stride, hs, m, rows + j, size) }
}

static void dots(float *out, int64_t stride, float *const *hs, int64_t h_count, float *const *rows,
                 int64_t count, int64_t size) {
    int64_t i = 0;
    if (h_count == 1) {
        dots_of(out, stride, hs, 1, rows, 8, count, size);
        return;
    }
    for (; i + DOT_ROWS <= h_count; i += DOT_ROWS)
        dots_of(out + i * stride, stride, hs + i, DOT_ROWS, rows, 4, count, size);
    for (; i + 2 <= h_count; i += 2)
        dots_of(out + i * stride, stride, hs + i, 2, rows, 4, count, size);
    for (; i < h_count; i++)
        dots_of(out + i * stride, stride, hs + i, 1, rows, 8, count, size);
}

/* Compute the products of `m` pairs, where `m` is a constant. The product of a row with itself and
 * the product with its partner share the loads of the row. */
INLINE void pairs_tile(float *out, float *const *hs, float *const *rows, int m, int64_t size) {
    vec a[8];
    UNROLL (i, 2 * m)
        a[i] = zero();
    for (int64_t d = 0; d < size; d += LANES) {
        int64_t lanes = size - d < LANES ? size - d : LANES;
        UNROLL (i, m) {
            vec x = get(hs[i] + d, lanes);
            a[2 * i] = madd(x, x, a[2 * i]);
            a[2 * i + 1] = madd(x, get(rows[i] + d, lanes), a[2 * i + 1]);
        }
    }
    put_sums(out, a, 2 * m);
}

static void pair_dots(float *out, float *const *hs, float *const *rows, int64_t count,
                      int64_t size) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        pairs_tile(out + 2 * i, hs + i, rows + i, 4, size);
    for (; i < count; i++)
        pairs_tile(out + 2 * i, hs + i, rows + i, 1, size);
}

INLINE void update_chunks(float *gradient, const float *h, float *const *rows, const float *weights,
                          const float *steps, int64_t count, int64_t d, int chunks, int64_t n) {
    vec g[UPDATE_CHUNKS], x[UPDATE_CHUNKS];
    EACH_CHUNK (c) {
        g[c] = zero();
        x[c] = get(h + d + c * LANES, n);
    }
    for (int64_t i = 0; i < count; i++) {
        float *row = at_chunk(rows[i], d);
        vec w = set1(weights[i]), step = set1(steps[i]);
        EACH_CHUNK (c) {
            vec r = loaded(get(row + c * LANES, n));
            g[c] = madd(w, r, g[c]);
            put(row + c * LANES, n, madd(step, x[c], r));
        }
    }
    EACH_CHUNK (c)
        put(gradient + d + c * LANES, n, g[c]);
}

static void update(float *gradient, const float *h, float *const *rows, const float *weights,
                   const float *steps, int64_t count, int64_t size) {
    FOR_CHUNKS(UPDATE_CHUNKS, size, update_chunks, gradient, h, rows, weights, steps, count);
}

INLINE void mean_chunks(float *out, float scale, float *const *rows, int64_t count, int64_t d,
                        int chunks, int64_t n) {
    vec a[SUM_CHUNKS];
    EACH_CHUNK (c)
        a[c] = zero();
    for (int64_t i = 0; i < count; i++) {
        const float *row = at_chunk(rows[i], d);
        EACH_CHUNK (c)
            a[c] += get(row + c * LANES, n);
    }
    EACH_CHUNK (c)
        put(out + d + c * LANES, n, scale * a[c]);
}

static void mean(float *out, float scale, float *const *rows, int64_t count, int64_t size) {
    FOR_CHUNKS(SUM_CHUNKS, size, mean_chunks, out, scale, rows, count);
}

/* The weight of row i is weights[i stride]. */
INLINE void add_chunks(float *const *rows, const float *x, const float *weights, int64_t stride,
                       int64_t count, int64_t d, int chunks, int64_t n) {
    vec y[SUM_CHUNKS];
    EACH_CHUNK (c)
        y[c] = get(x + d + c * LANES, n);
    for (int64_t i = 0; i < count; i++) {
        float *row = at_chunk(rows[i], d);
        vec w = set1(weights[i * stride]);
        EACH_CHUNK (c)
            put(row + c * LANES, n, madd(w, y[c], get(row + c * LANES, n)));
    }
}

/* The sum stays in registers. */
INLINE void slide_chunks(const dcme_slide *steps, int64_t count, float *sum, int64_t d, int chunks,
                         int64_t n) {
    vec near[UPDATE_CHUNKS];
    EACH_CHUNK (c)
        near[c] = get(sum + d + c * LANES, n);
    for (const dcme_slide *s = steps; s < steps + count; s++) {
        const float *x = at_chunk((float *)s->x, d), *first = at_chunk((float *)s->first, d);
        const float *at = at_chunk((float *)s->at, d);
        float *last = at_chunk(s->last, d), *out = at_chunk(s->out, d);
        vec scale = set1(s->scale), out_scale = set1(s->out_scale);
        EACH_CHUNK (c) {
            vec entered = scale * get(x + c * LANES, n), here = get(at + c * LANES, n);
            vec gone = get(first + c * LANES, n);
            put(last + c * LANES, n, entered);
            near[c] = near[c] - gone + entered;
            vec y = madd(-out_scale, here, out_scale * near[c]);
            put(out + c * LANES, n, get(out + c * LANES, n) + y);
        }
    }
    EACH_CHUNK (c)
        put(sum + d + c * LANES, n, near[c]);
}

static void slide(const dcme_slide *steps, int64_t count, float *sum, int64_t size) {
    FOR_CHUNKS(UPDATE_CHUNKS, size, slide_chunks, steps, count, sum);
}

/* Process a group of chunks of `m` outs, which stay in registers during the loop over the rows. */
INLINE void sums_chunks(float *const *outs, int m, const float *weights, int64_t out_stride,
                        int64_t row_stride, float *const *rows, int64_t count, float *const *starts,
                        const float *start_weights, int64_t d, int chunks, int64_t n) {
    vec a[SUM_ROWS * SUM_ROW_CHUNKS + SUM_CHUNKS], r[SUM_CHUNKS];
    UNROLL (i, m) {
        const float *first = at_chunk(starts ? starts[i] : outs[i], d);
        vec w = set1(starts ? start_weights[i] : 1);
        EACH_CHUNK (c)
            a[i * chunks + c] = w * get(first + c * LANES, n);
    }
    for (int64_t j = 0; j < count; j++, weights += row_stride) {
        const float *row = at_chunk(rows[j], d);
        EACH_CHUNK (c)
            r[c] = get(row + c * LANES, n);
        UNROLL (i, m) {
            vec w = set1(weights[i * out_stride]);
            EACH_CHUNK (c)
                a[i * chunks + c] = madd(w, r[c], a[i * chunks + c]);
        }
    }
    UNROLL (i, m)
        EACH_CHUNK (c)
            put(outs[i] + d + c * LANES, n, a[i * chunks + c]);
}

/* Whether the same row occurs twice in a tile. */
INLINE int has_twice(float *const *rows) {
    int twice = 0;
    for (int i = 1; i < SUM_ROWS; i++)
        for (int j = 0; j < i; j++)
            twice |= rows[i] == rows[j];
    return twice;
}

static void weighted_sum(float *out, float *const *rows, const float *weights, int64_t count,
                         int64_t size) {
    FOR_CHUNKS(SUM_CHUNKS, size, sums_chunks, &out, 1, weights, 0, 1, rows, count, NULL, NULL);
}

static void weighted_sums(float *const *outs, int64_t out_count, const float *weights,
                          int64_t out_stride, int64_t row_stride, float *const *rows, int64_t count,
                          int64_t size, float *const *starts, const float *start_weights) {
    int64_t i = 0;
    if (count == 1 && !starts) { /* the only row is loaded once */
        FOR_CHUNKS(SUM_CHUNKS, size, add_chunks, outs, rows[0], weights, out_stride, out_count);
        return;
    }
    while (i < out_count) {
        const float *w = weights + i * out_stride, *start_w = starts ? start_weights + i : NULL;
        float *const *from = starts ? starts + i : NULL;
        if (i + SUM_ROWS <= out_count && !has_twice(outs + i)) {
            FOR_CHUNKS(SUM_ROW_CHUNKS, size, sums_chunks, outs + i, SUM_ROWS, w, out_stride,
                       row_stride, rows, count, from, start_w);
            i += SUM_ROWS;
        } else {
            FOR_CHUNKS(SUM_CHUNKS, size, sums_chunks, outs + i, 1, w, 0, row_stride, rows, count,
                       from, start_w);
            i++;
        }
    }
}

static void exponential(float *out, const float *x, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES)
        store(out + i, exp_lanes(load(x + i)));
}

/* target - sigma(x), where target is 1 for the first and 0 for all others */
static void residuals(float *out, const float *x, int64_t count) {
    static const float first[LANES] = {1};
    vec target = load(first);
    for (int64_t i = 0; i < count; i += LANES, target = zero())
        store(out + i, target - 1 / (1 + exp_lanes(-load(x + i))));
}

const dcme_kernels KERNELS = {
    NAME,  LANES,        dots,          pair_dots,   update,    mean,
    slide, weighted_sum, weighted_sums, exponential, residuals,
};
