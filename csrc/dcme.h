/* The C core's status codes and error record.
 *
 * The core is independent of Python: it never exits, prints or keeps state in globals. A function
 * that can fail returns a dcme_status and, where a caller needs more than the code, fills a
 * dcme_error. Sizes and offsets are int64_t. Each part has its own header: text/text.h,
 * vectors/vectors.h, words/train.h.
 */
#pragma once

#include "array.h"

#include <stdint.h>

typedef enum {
    DCME_OK = 0,
    DCME_NO_MEMORY,    /* an allocation failed; dcme_error.where holds its size in bytes */
    DCME_BAD_ENCODING, /* bytes that are not UTF-8; where: their offset */
    DCME_BAD_FORMAT,   /* a file is corrupt; where: row or offset */
    DCME_BAD_ARGUMENT, /* the caller broke the function's contract */
    DCME_DIVERGED,     /* a number is not finite */
    DCME_STOPPED       /* the caller asked to stop */
} dcme_status;

typedef struct {
    dcme_status code;
    int64_t where;
    char message[200];
} dcme_error;

/* Fill `error` (which may be NULL) from a printf-like format and return `code`. */
dcme_status dcme_fail(dcme_error *error, dcme_status code, int64_t where, const char *format, ...);

/* DCME_NO_MEMORY, with a message of the bytes needed, their purpose and a remedy. */
dcme_status dcme_no_memory(dcme_error *error, int64_t bytes, const char *what, const char *advice);

/* Return the status of a call from the function that it stands in, unless it is DCME_OK. */
#define DCME_TRY(call)                                                                             \
    do {                                                                                           \
        dcme_status status_ = call;                                                                \
        if (status_ != DCME_OK)                                                                    \
            return status_;                                                                        \
    } while (0)

/* Memory for `count` items of `size` bytes, NULL on overflow or if there is not enough memory; free
 * with dcme_free(). It shares no cache line with other memory (processors fetch lines in pairs), so
 * that what one thread writes does not slow down another. */
enum { DCME_LINE = 128 };
void *dcme_allocate(int64_t count, int64_t size);

/* The same, filled with zeros. */
void *dcme_allocate_zeros(int64_t count, int64_t size);

void dcme_free(void *memory);

/* Give memory that was freed back to the system: the C library keeps some for later. */
void dcme_release_freed(void);
