/* See arena.h. The memory of each piece directly follows the piece's entry in the list. */
#include "common/arena.h"

struct dcme_held {
    dcme_held *next;
    void *bytes;
    const void *at; /* address of the pointer to the bytes, if memory is swapped */
    int64_t count, size, limit;
    const char *name; /* NULL if not part of the state */
};

static dcme_held *append(dcme_arena *arena, int64_t bytes) {
    dcme_held *held = NULL;
    if (arena->status == DCME_OK) {
        arena->bytes += bytes < INT64_MAX - 2 * DCME_LINE - arena->bytes ? bytes + DCME_LINE : 0;
        held = bytes > INT64_MAX - 2 * DCME_LINE ? NULL : dcme_allocate(DCME_LINE + bytes, 1);
    }
    if (!held) {
        arena->status = arena->status == DCME_OK ? DCME_NO_MEMORY : arena->status;
        return NULL;
    }
    *held = (dcme_held){.bytes = (char *)held + DCME_LINE};
    if (arena->last)
        arena->last->next = held;
    else
        arena->first = held;
    return arena->last = held;
}

void *dcme_take_unset(dcme_arena *arena, int64_t count, int64_t size) {
    int fits = count >= 0 && (size <= 0 || count <= INT64_MAX / size);
    const dcme_held *held = append(arena, fits ? count * size : INT64_MAX);
    return held ? held->bytes : NULL;
}

void *dcme_take(dcme_arena *arena, int64_t count, int64_t size) {
    void *memory = dcme_take_unset(arena, count, size);
    return memory ? memset(memory, 0, (count * size)) : NULL;
}

void *dcme_take_saved(dcme_arena *arena, int64_t count, int64_t size, int64_t limit,
                      const char *name) {
    void *memory = dcme_take(arena, count, size);
    if (memory)
        *arena->last = (dcme_held){NULL, memory, NULL, count, size, limit, name};
    return memory;
}

void dcme_save(dcme_arena *arena, void *bytes, const void *at, int64_t count, int64_t size,
               int64_t limit, const char *name) {
    dcme_held *held = append(arena, 0);
    if (held)
        *held = (dcme_held){NULL, bytes, at, count, size, limit, name};
}

void dcme_arena_join(dcme_arena *arena, const dcme_arena *scratch) {
    if (arena->status == DCME_OK && scratch->status != DCME_OK) {
        arena->status = scratch->status;
        arena->bytes += scratch->bytes;
    }
}

void dcme_arena_fail(dcme_arena *arena, const char *reason) {
    if (arena->status == DCME_OK) {
        arena->status = DCME_BAD_ARGUMENT;
        arena->reason = reason;
    }
}

void dcme_arena_close(dcme_arena *arena) {
    for (dcme_held *held = arena->first, *next; held; held = next) {
        next = held->next;
        dcme_free(held);
    }
    *arena = (dcme_arena){0};
}

dcme_status dcme_arena_check(const dcme_arena *arena, dcme_purpose purpose, dcme_error *error) {
    if (arena->status == DCME_NO_MEMORY)
        return dcme_no_memory(error, arena->bytes, purpose.what, purpose.advice);
    return arena->status == DCME_OK ? DCME_OK
                                    : dcme_fail(error, arena->status, 0, "%s", arena->reason);
}

static char *bytes_of(const dcme_held *held) {
    void *bytes = held->bytes;
    if (held->at)
        memcpy(&bytes, held->at, sizeof bytes);
    return bytes;
}

void dcme_arena_list(const dcme_arena *arena, dcme_state *state) {
    for (const dcme_held *held = arena->first; held; held = held->next)
        if (held->name) {
            if (state->count < state->room)
                state->pieces[state->count] =
                    (dcme_piece){held->name, bytes_of(held), held->count * held->size};
            state->count++;
        }
}

int dcme_arena_is_sound(const dcme_arena *arena) {
    int sound = 1;
    for (const dcme_held *held = arena->first; held; held = held->next)
        for (int64_t i = 0; held->limit > 0 && i < held->count; i++) {
            int32_t number;
            memcpy(&number, bytes_of(held) + (i + 1) * held->size - sizeof number, sizeof number);
            sound &= number >= 0 && number < held->limit;
        }
    return sound;
}
