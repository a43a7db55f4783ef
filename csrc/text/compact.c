/* Gives the ids of the cache their final numbers and closes the gaps. */
#include "text/text.h"

static inline void end_line(dcme_compaction *state, uint32_t *to) {
    if (state->length > state->begin)
        to[state->length - 1] |= DCME_LAST;
    state->begin = state->length;
    state->lines++;
    state->open = 0;
}

void dcme_compact(dcme_compaction *state, uint32_t *to, const uint32_t *from, int64_t n,
                  const uint32_t *map, int32_t newline) {
    if (newline && state->open)
        end_line(state, to);
    for (int64_t i = 0; i < n; i++) {
        uint32_t id = from[i], mapped = map[id & ~DCME_LAST];
        if (mapped != DCME_NONE)
            to[state->length++] = mapped;
        if (id & DCME_LAST)
            end_line(state, to);
    }
    if (n > 0)
        state->open = !(from[n - 1] & DCME_LAST);
}
