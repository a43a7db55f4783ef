/* The memory of one owner (a run, or one of its threads) as a list of pieces. All pieces are freed
 * together. The pieces on which the rest of a run depends are its state, and checkpoints store
 * them.
 *
 * An arena starts as all zeros. After the first failure every call returns NULL or does nothing, so
 * that callers check only once, after the last request.
 */
#pragma once

#include "dcme.h"

#include <stddef.h>

typedef struct dcme_held dcme_held;

typedef struct {
    dcme_held *first, *last;
    int64_t bytes;      /* bytes requested so far */
    dcme_status status; /* DCME_OK until something fails */
    const char *reason; /* message of a failure other than lack of memory */
} dcme_arena;

/* Allocate `count` items of `size` bytes: zeros, or uninitialized memory. */
void *dcme_take(dcme_arena *arena, int64_t count, int64_t size);
void *dcme_take_unset(dcme_arena *arena, int64_t count, int64_t size);
#define DCME_TAKE(arena, array, count) ((array) = dcme_take(arena, count, sizeof *(array)))
#define DCME_TAKE_UNSET(arena, array, count)                                                       \
    ((array) = dcme_take_unset(arena, count, sizeof *(array)))

/* Register the `count` items of `size` bytes at `bytes` as a named piece of the state. If `limit`
 * is above 0, the last int32 of each item must be a number from 0 to limit - 1; this is checked
 * when a state is restored. If a run replaces this memory by other memory, `at` is the address of
 * the pointer to it; otherwise, it is NULL. */
void dcme_save(dcme_arena *arena, void *bytes, const void *at, int64_t count, int64_t size,
               int64_t limit, const char *name);
#define DCME_SAVE(arena, number) dcme_save(arena, &(number), NULL, 1, sizeof(number), 0, #number)

/* Allocate zeros and register them as part of the state. */
void *dcme_take_saved(dcme_arena *arena, int64_t count, int64_t size, int64_t limit,
                      const char *name);
#define DCME_TAKE_SAVED(arena, array, count, limit)                                                \
    ((array) = dcme_take_saved(arena, count, sizeof *(array), limit, #array))

/* Copy the failure, if any, of another arena, such as one for temporary memory. */
void dcme_arena_join(dcme_arena *arena, const dcme_arena *scratch);
void dcme_arena_fail(dcme_arena *arena, const char *reason);
void dcme_arena_close(dcme_arena *arena);

/* For error messages: the purpose of an arena's memory, and what to do if there is not enough. */
typedef struct {
    const char *what, *advice;
} dcme_purpose;

/* Return DCME_OK, or the first failure with a message. */
dcme_status dcme_arena_check(const dcme_arena *arena, dcme_purpose purpose, dcme_error *error);

/* A list of the pieces of the state, for saving or restoring them. */
typedef struct {
    const char *name;
    void *bytes;
    int64_t size;
} dcme_piece;

typedef struct {
    dcme_piece *pieces; /* the first `capacity` pieces; any others are only counted */
    int64_t room, count;
} dcme_state;

void dcme_arena_list(const dcme_arena *arena, dcme_state *state);

/* Whether all numbers in the state that were registered with a limit are below it. */
int dcme_arena_is_sound(const dcme_arena *arena);
