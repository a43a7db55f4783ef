/* See hot.h. */
#include "objectives/hot.h"

#include <stdlib.h>
#include <string.h>

enum { HOT = 256 };  /* words: 64 gain half as much, 1,024 hardly more */
enum { EVERY = 32 }; /* instances of all threads from one join to the next */

dcme_status dcme_hot_open(dcme_hot *hot, const dcme_model *model, int32_t threads) {
    *hot = (dcme_hot){.model = model, .tables = {model->output, model->output}};
    if (threads < 2)
        return DCME_OK;
    hot->count = model->items < HOT ? model->items : HOT;
    hot->every = threads < EVERY ? EVERY / threads : 1;
    hot->tables[1] = dcme_allocate(hot->count * model->stride, sizeof *hot->tables[1]);
    hot->joined = dcme_allocate(hot->count * model->stride, sizeof *hot->joined);
    return hot->tables[1] && hot->joined ? DCME_OK : DCME_NO_MEMORY;
}

void dcme_hot_close(dcme_hot *hot) {
    if (hot->count > 0)
        free(hot->tables[1]);
    free(hot->joined);
}

void dcme_hot_take_turns(dcme_hot *hot, uint64_t stream) {
    hot->seen = (int64_t)(stream % (HOT * EVERY));
}

void dcme_hot_begin(dcme_hot *hot) {
    size_t size = (size_t)(hot->count * hot->model->stride) * sizeof *hot->joined;
    if (hot->copied || hot->count == 0)
        return;
    memcpy(hot->tables[1], hot->model->output, size);
    memcpy(hot->joined, hot->model->output, size);
    hot->copied = 1;
}

static void join(dcme_hot *hot, int64_t word) {
    int64_t stride = hot->model->stride;
    real *shared = hot->model->output + word * stride, *joined = hot->joined + word * stride;
    real *rows[] = {hot->tables[1] + word * stride, joined};
    hot->model->kernels->combine(shared, rows, (const real[]){1, -1}, 2, stride);
    memcpy(rows[0], shared, (size_t)stride * sizeof *shared);
    memcpy(joined, shared, (size_t)stride * sizeof *shared);
}

/* The row whose turn it is, or the one after `more` others. */
static int64_t turn(const dcme_hot *hot, int64_t more) {
    return (hot->seen / hot->every + more) % hot->count;
}

void dcme_hot_step(dcme_hot *hot) {
    if (hot->count == 0 || ++hot->seen % hot->every != 0)
        return;
    join(hot, turn(hot, 0));
    dcme_prefetch(hot->model->output + turn(hot, 1) * hot->model->stride, hot->model->stride);
}

void dcme_hot_end(dcme_hot *hot) {
    for (int64_t i = 0; hot->copied && i < hot->count; i++)
        join(hot, turn(hot, i));
    hot->copied = 0;
}
