/* Replace the IDs in the cache by their final values, and close the gaps left by dropped words. */
#include "text/text.h"

void dcme_renumber_start(dcme_renumbering *state) {
    *state = (dcme_renumbering){.held = DCME_NONE};
}

/* Write the last kept word of a line, if there is one; return how many words were written (0 or
 * 1). */
static inline int64_t end_line(dcme_renumbering *state, uint32_t *to) {
    int64_t written = state->held != DCME_NONE;
    if (written)
        *to = state->held | DCME_SENTENCE_END;
    state->held = DCME_NONE;
    state->lines++;
    return written;
}

int64_t dcme_renumber(dcme_renumbering *state, uint32_t *to, const uint32_t *ids, int64_t n,
                      const uint32_t *map, int32_t newline) {
    int64_t written = newline && state->open ? end_line(state, to) : 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t id = ids[i], mapped = map[id & ~DCME_SENTENCE_END];
        if (mapped != DCME_NONE) {
            if (state->held != DCME_NONE)
                to[written++] = state->held;
            state->held = mapped;
        }
        if (id & DCME_SENTENCE_END)
            written += end_line(state, to + written);
    }
    if (n > 0)
        state->open = !(ids[n - 1] & DCME_SENTENCE_END);
    else if (newline)
        state->open = 0;
    return written;
}
