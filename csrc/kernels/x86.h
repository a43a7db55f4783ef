/* Sums of lanes by AVX2 instructions, used for AVX2 and for AVX-512. AVX-512 defines FOLD(v), which
 * adds the halves of a vector. */
static inline __m128 fold8(__m256 v) {
    return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}

/* The order of the additions is fixed, unlike in _mm512_reduce_add_ps(). */
static inline float sum(vec v) {
    __m128 a = fold8(FOLD(v));
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

/* Add neighboring lanes, in the same order as _mm256_hadd_ps(), which takes longer. */
static inline __m256 pairs8(__m256 a, __m256 b) {
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
}

static inline void sum2(float *p, vec a, vec b) {
    __m128 s = fold8(pairs8(FOLD(a), FOLD(b)));
    _mm_storel_pi((__m64 *)p, _mm_hadd_ps(s, s));
}

static inline void sum4(float *p, vec a, vec b, vec c, vec d) {
    _mm_storeu_ps(p, fold8(pairs8(pairs8(FOLD(a), FOLD(b)), pairs8(FOLD(c), FOLD(d)))));
}
