/* The kernels for arm64: 4 floats a vector. */
#include "kernels.h"

#if defined(__aarch64__) && defined(DCME_REAL_IS_FLOAT)
#include <arm_neon.h>

#define KERNELS dcme_kernels_neon
#define NAME "neon"
#define LANES 4
#define UPDATE_CHUNKS 8
#define SUM_CHUNKS 8
typedef float32x4_t vec;

static inline vec zero(void) { return vdupq_n_f32(0); }
static inline vec set1(float a) { return vdupq_n_f32(a); }
static inline vec load(const float *p) { return vld1q_f32(p); }
static inline void store(float *p, vec v) { vst1q_f32(p, v); }
/* there are no parts: four is all */
static inline vec load_part(const float *p, int64_t n) {
    (void)n;
    return load(p);
}
static inline void store_part(float *p, int64_t n, vec v) {
    (void)n;
    store(p, v);
}
static inline vec add(vec a, vec b) { return vaddq_f32(a, b); }
static inline vec mul(vec a, vec b) { return vmulq_f32(a, b); }
static inline vec madd(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
static inline float sum(vec v) { return vaddvq_f32(v); }

static inline void sum2(float *p, vec a, vec b) { p[0] = sum(a), p[1] = sum(b); }

static inline void sum4(float *p, vec a, vec b, vec c, vec d) {
    store(p, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}

#include "exponential.h"

static inline vec exp_lanes(vec x) {
    vec limited = vmaxq_f32(set1(-EXP_LIMIT), vminq_f32(set1(EXP_LIMIT), x));
    vec n = vrndnq_f32(mul(limited, set1(EXP_PER_LOG2)));
    vec r = madd(n, set1(-EXP_LOG2_HIGH), limited);
    r = madd(n, set1(-EXP_LOG2_LOW), r);
    int32x4_t exponent = vshlq_n_s32(vcvtq_s32_f32(n), 23);
    vec e = vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(exp_rest(r)), exponent));
    return vbslq_f32(vceqq_f32(x, x), e, x); /* NaN stays NaN */
}

static inline vec logistic_lanes(vec x) {
    return vdivq_f32(set1(1.f), add(set1(1.f), exp_lanes(vnegq_f32(x))));
}

#define WIDE 2
typedef uint32x2_t wide;
static inline wide widen(const uint32_t *p) { return vld1_u32(p); }
static inline wide widen1(uint32_t x) { return vdup_n_u32(x); }
static inline void add_product(int64_t *sums, wide x, wide p) {
    uint64_t *at = (uint64_t *)sums;
    vst1q_u64(at, vmlal_u32(vld1q_u64(at), x, p));
}

#define BYTES 16
#define VECTORS 4
typedef uint8x16_t bytes;
static inline bytes of_pairs(uint16x8_t v) { return vreinterpretq_u8_u16(v); }
static inline uint16x8_t pairs_of(bytes v) { return vreinterpretq_u16_u8(v); }
static inline bytes no_pairs(void) { return vdupq_n_u8(0); }
static inline bytes load_bytes(const uint8_t *p) { return vld1q_u8(p); }
static inline bytes low_halves(bytes v) { return vandq_u8(v, vdupq_n_u8(15)); }
static inline bytes high_halves(bytes v) { return vshrq_n_u8(v, 4); }
static inline bytes repeat16(const uint8_t *p) { return vld1q_u8(p); }
static inline bytes look_up(bytes table, bytes v) { return vqtbl1q_u8(table, v); }
static inline bytes add_pairs(bytes a, bytes b) {
    return of_pairs(vaddq_u16(pairs_of(a), pairs_of(b)));
}
static inline bytes max_pairs(bytes a, bytes b) {
    return of_pairs(vmaxq_u16(pairs_of(a), pairs_of(b)));
}
static inline bytes first_pairs(bytes low, bytes high) { return vzip1q_u8(low, high); }
static inline bytes last_pairs(bytes low, bytes high) { return vzip2q_u8(low, high); }
static inline void put_greatest(uint16_t *p, bytes v) { p[0] = vmaxvq_u16(pairs_of(v)); }

#include "vector.h"
#endif
