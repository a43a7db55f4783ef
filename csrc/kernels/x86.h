/* Sums of lanes by instructions of AVX2, for AVX2 itself and for AVX-512, which defines FOLD(v) as
 * the sum of a vector's halves. */
static inline __m128 fold8(__m256 v) {
    return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}

/* In a fixed order, unlike _mm512_reduce_add_ps(). */
static inline float sum(vec v) {
    __m128 a = fold8(FOLD(v));
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_movehdup_ps(a)));
}

/* Sums of neighbors, in the order of _mm256_hadd_ps(), which takes longer. */
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
