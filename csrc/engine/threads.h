/* All threads are started here. */
#ifndef DCME_THREADS_H
#define DCME_THREADS_H

#include <pthread.h>
#include <stdint.h>

/* What a thread works on begins with one of these. */
typedef struct {
    pthread_t thread;
    int started;
} dcme_handle;

/* Call work() for each of `count` items of `size` bytes, all at once, and return when all are done.
 * The first one is the caller's, and so are those for which no thread can be started. */
void dcme_run_threads(void *(*work)(void *), void *items, int64_t size, int32_t count);

#endif
