/* Everything that depends on the operating system: threads, aligned memory and CPU detection. No
 * other file in the core includes a system header or tests which system it is compiled for.
 * Prefetches and bit counts are built-in functions of GCC and clang. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Each item that a thread works on must begin with this struct. */
typedef struct {
    void *(*work)(void *);
    uintptr_t thread;
    int started;
} dcme_handle;

/* Call work() for each of `count` items of `size` bytes, each in a thread of its own, and return
 * when all calls are done. The calling thread runs the first item, and each item for which no
 * thread can be started. */
void dcme_run_threads(void *(*work)(void *), void *items, int64_t size, int32_t count);

/* Allocate a multiple of DCME_LINE bytes, aligned to DCME_LINE; return NULL if there is not enough
 * memory. */
void *dcme_system_allocate(size_t bytes);

/* Request huge pages for large memory that has not been written to yet. With small pages, most
 * random accesses to it would miss the TLB. */
void dcme_prefer_huge_pages(void *memory, size_t bytes);

/* Whether the CPU has the instructions that these kernels need, and the system saves their
 * registers. */
void dcme_find_instructions(int *avx2, int *avx512);
