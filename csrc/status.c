/* Error records and checked allocation, used by every room of the core. */
#include "dcme.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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

void *dcme_allocate(int64_t count, int64_t size) {
    if (count < 0 || size < 0 || (size > 0 && count > INT64_MAX / size) ||
        (uint64_t)(count * size) > SIZE_MAX)
        return NULL;
    return malloc(count * size > 0 ? (size_t)(count * size) : 1);
}
