/* The system: threads, aligned memory, instruction sets of the CPU. No other file of the core
 * includes a header of a system or asks which one it is; prefetches and bit counts are GCC's and
 * clang's built-ins. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* An item that a thread works on begins with one of these. */
typedef struct {
    void *(*work)(void *);
    uintptr_t thread;
    int started;
} dcme_handle;

/* Call work() for each of `count` items of `size` bytes, all at once, and return when all are done.
 * The caller runs the first one, and each one for which no thread can be started. */
void dcme_run_threads(void *(*work)(void *), void *items, int64_t size, int32_t count);

/* A multiple of DCME_LINE bytes, aligned to one; NULL if there is not enough memory. */
void *dcme_system_allocate(size_t bytes);

/* Ask for huge pages for memory that is not yet written to, if it is large: where it is accessed at
 * random, most accesses miss the TLB with small pages. */
void dcme_prefer_huge_pages(void *memory, size_t bytes);

/* Whether the CPU has what these kernels need and the system saves their registers. */
void dcme_find_instructions(int *avx2, int *avx512);
