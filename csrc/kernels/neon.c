/* The kernels for arm64: 4 floats per vector. */
#include "kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define KERNELS dcme_kernels_neon
#define NAME "neon"
#define LANES 4
#define UPDATE_CHUNKS 8
#define DOT_ROWS 4
#define SUM_ROWS 4
#define SUM_ROW_CHUNKS 5
#define SUM_CHUNKS 8
typedef float vec __attribute__((vector_size(16)));

/* a part of a vector would be the whole vector */
static inline vec load_part(const float *p, int64_t n) {
    (void)n;
    return vld1q_f32(p);
}
static inline void store_part(float *p, int64_t n, vec v) {
    (void)n;
    vst1q_f32(p, v);
}
static inline vec madd(vec a, vec b, vec c) { return vfmaq_f32(c, a, b); }
static inline vec clamp(vec v, vec least, vec most) { return vmaxq_f32(least, vminq_f32(most, v)); }
static inline float sum(vec v) { return vaddvq_f32(v); }

static inline void sum2(float *p, vec a, vec b) { p[0] = sum(a), p[1] = sum(b); }

static inline void sum4(float *p, vec a, vec b, vec c, vec d) {
    vst1q_f32(p, vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d)));
}

#include "vector.h"
#endif
