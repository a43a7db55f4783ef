/* The kernels for AVX2 with FMA: 8 floats a vector. */
#include "kernels.h"

#if defined(__AVX2__) && defined(DCME_REAL_IS_FLOAT)
#include <immintrin.h>

#define KERNELS dcme_kernels_avx2
#define NAME "avx2"
#define LANES 8
#define UPDATE_CHUNKS 7
#define SUM_CHUNKS 14
typedef __m256 vec;

static inline vec zero(void) { return _mm256_setzero_ps(); }
static inline vec set1(float a) { return _mm256_set1_ps(a); }
static inline vec load(const float *p) { return _mm256_loadu_ps(p); }
static inline void store(float *p, vec v) { _mm256_storeu_ps(p, v); }
/* a part is half of the lanes */
static inline vec load_part(const float *p, int64_t n) {
    (void)n;
    return _mm256_zextps128_ps256(_mm_loadu_ps(p));
}
static inline void store_part(float *p, int64_t n, vec v) {
    (void)n;
    _mm_storeu_ps(p, _mm256_castps256_ps128(v));
}
static inline vec add(vec a, vec b) { return _mm256_add_ps(a, b); }
static inline vec mul(vec a, vec b) { return _mm256_mul_ps(a, b); }
static inline vec madd(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }

#define FOLD(v) (v)
#include "x86.h"

#include "exponential.h"

static inline vec exp_lanes(vec x) {
    vec limited = _mm256_min_ps(set1(EXP_LIMIT), x);
    limited = _mm256_max_ps(set1(-EXP_LIMIT), limited);
    vec n = _mm256_round_ps(mul(limited, set1(EXP_PER_LOG2)),
                            _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    vec r = madd(n, set1(-EXP_LOG2_HIGH), limited);
    r = madd(n, set1(-EXP_LOG2_LOW), r);
    __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    vec e = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(exp_rest(r)), exponent));
    return _mm256_blendv_ps(e, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)); /* NaN stays NaN */
}

static inline vec logistic_lanes(vec x) {
    return _mm256_div_ps(set1(1.f), add(set1(1.f), exp_lanes(_mm256_sub_ps(zero(), x))));
}

#define BYTES 32
#define VECTORS 2
typedef __m256i bytes;
static inline bytes no_pairs(void) { return _mm256_setzero_si256(); }
static inline bytes load_bytes(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline bytes low_halves(bytes v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
static inline bytes high_halves(bytes v) { return low_halves(_mm256_srli_epi16(v, 4)); }
static inline bytes repeat16(const uint8_t *p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}
static inline bytes look_up(bytes table, bytes v) { return _mm256_shuffle_epi8(table, v); }
static inline bytes add_pairs(bytes a, bytes b) { return _mm256_add_epi16(a, b); }
static inline bytes max_pairs(bytes a, bytes b) { return _mm256_max_epu16(a, b); }
static inline bytes first_pairs(bytes low, bytes high) { return _mm256_unpacklo_epi8(low, high); }
static inline bytes last_pairs(bytes low, bytes high) { return _mm256_unpackhi_epi8(low, high); }
static inline void put_greatest(uint16_t *p, bytes v) {
    p[0] = greatest8(_mm256_castsi256_si128(v));
    p[2] = greatest8(_mm256_extracti128_si256(v, 1));
}

#include "vector.h"
#endif
