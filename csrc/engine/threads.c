/* See threads.h. */
#include "engine/threads.h"

void dcme_run_threads(void *(*work)(void *), void *items, int64_t size, int32_t count) {
    for (int32_t i = 1; i < count; i++) {
        dcme_handle *handle = (void *)((char *)items + i * size);
        handle->started = pthread_create(&handle->thread, NULL, work, handle) == 0;
    }
    work(items);
    for (int32_t i = 1; i < count; i++) {
        dcme_handle *handle = (void *)((char *)items + i * size);
        if (handle->started)
            pthread_join(handle->thread, NULL);
        else
            work(handle);
    }
}
