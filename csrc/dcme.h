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
    DCME_BAD_ENCODING, /* some bytes are not UTF-8; where: their offset */
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

/* Return DCME_NO_MEMORY, with a message that states how many bytes are needed, for what purpose,
 * and the remedy. */
dcme_status dcme_no_memory(dcme_error *error, int64_t bytes, const char *what, const char *advice);

/* If the status of a call is not DCME_OK, return it from the enclosing function. */
#define DCME_TRY(call)                                                                             \
    do {                                                                                           \
        dcme_status status_ = call;                                                                \
        if (status_ != DCME_OK)                                                                    \
            return status_;                                                                        \
    } while (0)

/* Allocate memory for `count` items of `size` bytes; return NULL on overflow or if there is not
 * enough memory. Free it with dcme_free(). The memory shares no cache line with other memory, and
 * no pair of lines, because processors fetch lines in pairs: what one thread writes there does not
 * slow down the others. */
enum { DCME_LINE = 128 };
void *dcme_allocate(int64_t count, int64_t size);

/* Allocate memory in the same way, and fill it with zeros. */
void *dcme_allocate_zeros(int64_t count, int64_t size);

void dcme_free(void *memory);

/* Return freed memory to the operating system; otherwise, the C library keeps some of it for
 * later. */
void dcme_release_freed(void);
