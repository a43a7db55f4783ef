/* The kernels for AVX2 with FMA: 8 floats per vector. */
#include "kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>

#define KERNELS dcme_kernels_avx2
#define NAME "avx2"
#define LANES 8
#define UPDATE_CHUNKS 7
#define DOT_ROWS 3
#define SUM_ROWS 4
#define SUM_ROW_CHUNKS 3
#define SUM_CHUNKS 14
typedef float vec __attribute__((vector_size(32)));

/* a part of a vector is half of its lanes */
static inline vec load_part(const float *p, int64_t n) {
    (void)n;
    return _mm256_zextps128_ps256(_mm_loadu_ps(p));
}
static inline void store_part(float *p, int64_t n, vec v) {
    (void)n;
    _mm_storeu_ps(p, _mm256_castps256_ps128(v));
}
static inline vec madd(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }
static inline vec clamp(vec v, vec least, vec most) {
    return _mm256_max_ps(least, _mm256_min_ps(most, v));
}

#define FOLD(v) (v)
#include "x86.h"

#include "vector.h"
#endif
