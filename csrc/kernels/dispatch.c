/* Choose the kernels at run time: those with a given name, or the fastest that the CPU supports. */
#include "kernels.h"
#include "platform.h"

#include <string.h>

#if defined(__x86_64__)
extern const dcme_kernels dcme_kernels_avx2, dcme_kernels_avx512;
#elif defined(__aarch64__)
extern const dcme_kernels dcme_kernels_neon;
#endif

const dcme_kernels *dcme_kernels_choose(const char *name) {
    const dcme_kernels *found[4];
    int count = 0;
#if defined(__x86_64__)
    int avx2, avx512;
    dcme_find_instructions(&avx2, &avx512);
    if (avx512)
        found[count++] = &dcme_kernels_avx512;
    if (avx2)
        found[count++] = &dcme_kernels_avx2;
#elif defined(__aarch64__)
    found[count++] = &dcme_kernels_neon;
#endif
    found[count++] = &dcme_kernels_scalar;
    for (int i = 0; i < count; i++)
        if (!name || strcmp(name, found[i]->name) == 0)
            return found[i];
    return NULL;
}
