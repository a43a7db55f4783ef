/* See platform.h. */
#define _DEFAULT_SOURCE /* madvise() */
#include "platform.h"
#include "dcme.h"

#include <stdlib.h>
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <malloc.h>
#include <windows.h>
#else
#include <pthread.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#endif
#ifdef __x86_64__
#include <cpuid.h>
#endif

/* ---- threads ---- */

#ifdef _WIN32
static DWORD WINAPI call(void *item) {
    ((dcme_handle *)item)->work(item);
    return 0;
}

static int start(dcme_handle *handle) {
    handle->thread = (uintptr_t)CreateThread(NULL, 0, call, handle, 0, NULL);
    return handle->thread != 0;
}

static void join(const dcme_handle *handle) {
    WaitForSingleObject((HANDLE)handle->thread, INFINITE);
    CloseHandle((HANDLE)handle->thread);
}
#else
static int start(dcme_handle *handle) {
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, handle->work, handle);
    if (!failed)
        handle->thread = (uintptr_t)thread;
    return !failed;
}

static void join(const dcme_handle *handle) { pthread_join((pthread_t)handle->thread, NULL); }
#endif

void dcme_run_threads(void *(*work)(void *), void *items, int64_t size, int32_t count) {
    for (int32_t i = 1; i < count; i++) {
        dcme_handle *handle = (void *)((char *)items + i * size);
        handle->work = work;
        handle->started = start(handle);
    }
    work(items);
    for (int32_t i = 1; i < count; i++) {
        dcme_handle *handle = (void *)((char *)items + i * size);
        if (handle->started)
            join(handle);
        else
            work(handle);
    }
}

/* ---- memory ---- */

#ifdef _WIN32 /* aligned_alloc() is not available, because free() could not release its memory */
void *dcme_system_allocate(size_t bytes) { return _aligned_malloc(bytes, DCME_LINE); }

void dcme_free(void *memory) { _aligned_free(memory); }
#else
void *dcme_system_allocate(size_t bytes) { return aligned_alloc(DCME_LINE, bytes); }

void dcme_free(void *memory) { free(memory); }
#endif

void dcme_prefer_huge_pages(void *memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
    enum { PAGE = 1 << 21, LARGE = 4 * PAGE };
    size_t skipped = -(uintptr_t)memory % PAGE;
    if (memory && bytes >= LARGE) /* ignore the error of a system without huge pages */
        (void)madvise((char *)memory + skipped, (bytes - skipped) / PAGE * PAGE, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

void dcme_release_freed(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* ---- CPU ---- */

#ifdef __x86_64__
/* Bits of the register XCR0, which say what state the system saves when it switches threads: that
 * of SSE and AVX; the same with the mask registers and both register halves of AVX-512. */
enum { AVX_STATE = 0x6, AVX512_STATE = 0xe6 };

/* __builtin_cpu_supports() is not used: without libgcc, it may link but report that nothing is
 * supported. */
void dcme_find_instructions(int *avx2, int *avx512) {
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
#else
void dcme_find_instructions(int *avx2, int *avx512) { *avx2 = *avx512 = 0; }
#endif
