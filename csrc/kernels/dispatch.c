/* Chooses the kernels at run time, by what the machine has or by name. */
#include "kernels.h"

#include <string.h>

#ifdef DCME_REAL_IS_FLOAT
#if defined(__x86_64__)
#include <cpuid.h>

extern const dcme_kernels dcme_kernels_avx2, dcme_kernels_avx512;

/* State that the system saves when it switches threads, in register XCR0: SSE and AVX; with the
 * masks and the two halves of AVX-512. */
enum { AVX_STATE = 0x6, AVX512_STATE = 0xe6 };

/* Read what the CPU has and what the system saves. Not by __builtin_cpu_supports(): without libgcc
 * it may link and say no to everything. */
static void find_instructions(int *avx2, int *avx512) {
    const unsigned int foundation = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    unsigned int a, b, c, d, features, saved = 0;
    *avx2 = *avx512 = 0;
    if (!__get_cpuid(1, &a, &b, &features, &d) || !(features & bit_OSXSAVE) ||
        !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return;
    __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    *avx2 = (saved & AVX_STATE) == AVX_STATE && (features & bit_FMA) && (b & bit_AVX2);
    *avx512 = *avx2 && (saved & AVX512_STATE) == AVX512_STATE && (b & foundation) == foundation;
}
#elif defined(__aarch64__)
extern const dcme_kernels dcme_kernels_neon;
#endif
#endif

const dcme_kernels *dcme_kernels_choose(const char *name) {
    const dcme_kernels *found[4];
    int count = 0;
#ifdef DCME_REAL_IS_FLOAT
#if defined(__x86_64__)
    int avx2, avx512;
    find_instructions(&avx2, &avx512);
    if (avx512)
        found[count++] = &dcme_kernels_avx512;
    if (avx2)
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
