/* The kernels for AVX-512F: 16 floats per vector. */
#include "kernels.h"

#if defined(__AVX512F__)
#include <immintrin.h>

#define KERNELS dcme_kernels_avx512
#define NAME "avx512"
#define LANES 16
#define UPDATE_CHUNKS 8
#define DOT_ROWS 4
#define SUM_ROWS 4
#define SUM_ROW_CHUNKS 4
#define SUM_CHUNKS 8
typedef float vec __attribute__((vector_size(64)));

static inline __mmask16 first(int64_t n) { return (__mmask16)((1u << n) - 1); }
static inline vec load_part(const float *p, int64_t n) {
    return _mm512_maskz_loadu_ps(first(n), p);
}
static inline void store_part(float *p, int64_t n, vec v) { _mm512_mask_storeu_ps(p, first(n), v); }
static inline vec madd(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
static inline vec clamp(vec v, vec least, vec most) {
    return _mm512_max_ps(least, _mm512_min_ps(most, v));
}
static inline __m256 fold(vec v) {
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

#define FOLD fold
#include "x86.h"

#include "vector.h"
#endif
