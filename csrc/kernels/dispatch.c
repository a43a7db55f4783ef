/* Chooses the kernels at run time, by what the machine has or by name. */
#include "kernels.h"

#include <string.h>

#ifdef DCME_REAL_IS_FLOAT
#if defined(__x86_64__) || defined(_M_X64)
extern const dcme_kernels dcme_kernels_avx2, dcme_kernels_avx512;
#elif defined(__aarch64__)
extern const dcme_kernels dcme_kernels_neon;
#endif
#endif

const dcme_kernels *dcme_kernels_choose(const char *name) {
    const dcme_kernels *found[4];
    int count = 0;
#ifdef DCME_REAL_IS_FLOAT
#if defined(__x86_64__) || defined(_M_X64)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        found[count++] = &dcme_kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        found[count++] = &dcme_kernels_avx2;
#elif defined(__aarch64__)
    found[count++] = &dcme_kernels_neon;
#endif
#endif
    found[count++] = &dcme_kernels_scalar;
    for (int i = 0; i < count; i++)
        if (!name || strcmp(name, found[i]->name) == 0)
            return found[i];
    return NULL;
}
