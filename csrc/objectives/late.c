/* See late.h. */
#include "objectives/late.h"

#include <stdlib.h>
#include <string.h>

enum { LATE = 8 };

dcme_status dcme_late_open(dcme_late **late, int64_t clusters, int64_t top_items, int64_t stride) {
    dcme_late *l = *late = dcme_allocate_zeros(clusters, sizeof *l);
    for (int64_t k = 0; l && k < clusters; k++) {
        l[k].words = dcme_allocate_zeros(top_items, sizeof *l[k].words);
        l[k].moves = dcme_allocate_zeros(top_items * stride, sizeof *l[k].moves);
        if (!l[k].words || !l[k].moves)
            return DCME_NO_MEMORY;
    }
    return l ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_late_close(dcme_late *late, int64_t clusters) {
    for (int64_t k = 0; late && k < clusters; k++) {
        free(late[k].words);
        free(late[k].moves);
    }
    free(late);
}

static void make(dcme_late *late, const dcme_model *model, int64_t top_items) {
    for (int64_t q = 0; q < top_items; q++)
        model->kernels->axpy(model->output + late->words[q] * model->stride, 1,
                             late->moves + q * model->stride, model->stride);
    memset(late->moves, 0, (size_t)(top_items * model->stride) * sizeof *late->moves);
    late->count = 0;
}

void dcme_late_begin(dcme_late *late, const dcme_model *model, const int32_t *top,
                     int64_t top_items) {
    size_t size = (size_t)top_items * sizeof *top;
    if (late->count > 0 && memcmp(late->words, top, size) != 0)
        make(late, model, top_items);
    if (late->count == 0)
        memcpy(late->words, top, size);
}

void dcme_late_end(dcme_late *late, const dcme_model *model, int64_t top_items) {
    if (++late->count >= LATE)
        make(late, model, top_items);
}

void dcme_late_state(dcme_late *late, int64_t clusters, int64_t top_items, int64_t stride,
                     dcme_state *state) {
    for (int64_t k = 0; late && k < clusters; k++) {
        dcme_state_add(state, &late[k].count, 1, sizeof late[k].count);
        dcme_state_add(state, late[k].words, top_items, sizeof *late[k].words);
        dcme_state_add(state, late[k].moves, top_items * stride, sizeof *late[k].moves);
    }
}
