/* Error records and checked allocation, used by every part of the core. */
#include "dcme.h"
#include "platform.h"

#include <stdarg.h>
#include <stdio.h>

dcme_status dcme_fail(dcme_error *error, dcme_status code, int64_t where, const char *format, ...) {
    if (error) {
        va_list arguments;
        error->code = code;
        error->where = where;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return code;
}

dcme_status dcme_no_memory(dcme_error *error, int64_t bytes, const char *what, const char *advice) {
    return dcme_fail(error, DCME_NO_MEMORY, bytes, "no memory for %s, which takes %lld bytes: %s",
                     what, (long long)bytes, advice);
}

void *dcme_allocate(int64_t count, int64_t size) {
    if (count < 0 || size < 0 || (size > 0 && count > (INT64_MAX - DCME_LINE) / size))
        return NULL;
    int64_t bytes = (count * size + DCME_LINE - 1) / DCME_LINE * DCME_LINE;
    if ((uint64_t)bytes > SIZE_MAX)
        return NULL;
    return dcme_system_allocate(bytes > 0 ? bytes : DCME_LINE);
}

void *dcme_allocate_zeros(int64_t count, int64_t size) {
    void *memory = dcme_allocate(count, size);
    if (memory)
        memset(memory, 0, (count * size));
    return memory;
}
