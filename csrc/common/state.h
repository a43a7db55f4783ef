/* The memory that the rest of a run depends on, as a list of pieces that can be saved to a file
 * and restored. The same list is used for both. */
#ifndef DCME_STATE_H
#define DCME_STATE_H

#include <stdint.h>

typedef struct {
    void *bytes;
    int64_t size;
} dcme_piece;

typedef struct {
    dcme_piece *pieces; /* (room) the first ones; the others are counted only */
    int64_t room, count;
} dcme_state;

/* Add `count` items of `size` bytes. */
static inline void dcme_state_add(dcme_state *state, void *bytes, int64_t count, int64_t size) {
    if (state->count < state->room)
        state->pieces[state->count] = (dcme_piece){bytes, count * size};
    state->count++;
}

#endif
