/* The kernels for AVX-512F: 16 floats a vector. */
#include "kernels.h"

#if defined(__AVX512F__) && defined(DCME_REAL_IS_FLOAT)
#include <immintrin.h>

#define KERNELS dcme_kernels_avx512
#define NAME "avx512"
#define LANES 16
#define UPDATE_CHUNKS 8
#define SUM_CHUNKS 8
typedef __m512 vec;

static inline vec zero(void) { return _mm512_setzero_ps(); }
static inline vec set1(float a) { return _mm512_set1_ps(a); }
static inline vec load(const float *p) { return _mm512_loadu_ps(p); }
static inline void store(float *p, vec v) { _mm512_storeu_ps(p, v); }
static inline __mmask16 first(int64_t n) { return (__mmask16)((1u << n) - 1); }
static inline vec load_part(const float *p, int64_t n) {
    return _mm512_maskz_loadu_ps(first(n), p);
}
static inline void store_part(float *p, int64_t n, vec v) { _mm512_mask_storeu_ps(p, first(n), v); }
static inline vec add(vec a, vec b) { return _mm512_add_ps(a, b); }
static inline vec mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
static inline vec madd(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
static inline __m256 fold(vec v) {
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

#define FOLD fold
#include "x86.h"

#include "exponential.h"

static inline vec exp_lanes(vec x) {
    /* min and max return their second operand where one is NaN: NaN passes through */
    vec limited = _mm512_min_ps(set1(EXP_LIMIT), x);
    limited = _mm512_max_ps(set1(-EXP_LIMIT), limited);
    vec n = _mm512_roundscale_ps(mul(limited, set1(EXP_PER_LOG2)), _MM_FROUND_TO_NEAREST_INT);
    vec r = madd(n, set1(-EXP_LOG2_HIGH), limited);
    r = madd(n, set1(-EXP_LOG2_LOW), r);
    return _mm512_scalef_ps(exp_rest(r), n);
}

static inline vec logistic_lanes(vec x) {
    vec e = exp_lanes(_mm512_sub_ps(zero(), x));
    return _mm512_div_ps(set1(1.f), add(set1(1.f), e));
}

#define BYTES 64
#define VECTORS 2
typedef __m512i bytes;
static inline bytes no_pairs(void) { return _mm512_setzero_si512(); }
static inline bytes load_bytes(const uint8_t *p) { return _mm512_loadu_si512(p); }
static inline bytes low_halves(bytes v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
static inline bytes high_halves(bytes v) { return low_halves(_mm512_srli_epi16(v, 4)); }
static inline bytes repeat16(const uint8_t *p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));
}
static inline bytes look_up(bytes table, bytes v) { return _mm512_shuffle_epi8(table, v); }
static inline bytes add_pairs(bytes a, bytes b) { return _mm512_add_epi16(a, b); }
static inline bytes max_pairs(bytes a, bytes b) { return _mm512_max_epu16(a, b); }
static inline bytes first_pairs(bytes low, bytes high) { return _mm512_unpacklo_epi8(low, high); }
static inline bytes last_pairs(bytes low, bytes high) { return _mm512_unpackhi_epi8(low, high); }
static inline void put_greatest(uint16_t *p, bytes v) {
    p[0] = greatest8(_mm512_castsi512_si128(v));
    p[2] = greatest8(_mm512_extracti32x4_epi32(v, 1));
    p[4] = greatest8(_mm512_extracti32x4_epi32(v, 2));
    p[6] = greatest8(_mm512_extracti32x4_epi32(v, 3));
}

#include "vector.h"
#endif
