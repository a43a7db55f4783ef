/* See row_replicas.h. */
#include "objectives/row_replicas.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 256 }; /* words: 64 gain half as much, 1,024 hardly more */
enum { EVERY = 32 }; /* instances of all threads from one synchronisation to the next */

dcme_status dcme_replicas_open(dcme_row_replicas *replicas, const dcme_model *model,
                               int32_t threads) {
    *replicas = (dcme_row_replicas){.model = model, .tables = {model->output, model->output}};
    if (threads < 2)
        return DCME_OK;
    replicas->count = model->items < ROWS ? model->items : ROWS;
    replicas->every = threads < EVERY ? EVERY / threads : 1;
    replicas->tables[1] =
        dcme_allocate(replicas->count * model->stride, sizeof *replicas->tables[1]);
    replicas->base = dcme_allocate(replicas->count * model->stride, sizeof *replicas->base);
    return replicas->tables[1] && replicas->base ? DCME_OK : DCME_NO_MEMORY;
}

int64_t dcme_replicas_bytes(const dcme_model *model) {
    int64_t rows = model->items < ROWS ? model->items : ROWS;
    return 2 * rows * model->stride * (int64_t)sizeof(real);
}

void dcme_replicas_close(dcme_row_replicas *replicas) {
    if (replicas->count > 0)
        free(replicas->tables[1]);
    free(replicas->base);
}

void dcme_replicas_seed(dcme_row_replicas *replicas, uint64_t stream) {
    replicas->seen = (int64_t)(stream % (ROWS * EVERY));
}

void dcme_replicas_begin(dcme_row_replicas *replicas) {
    size_t size = (size_t)(replicas->count * replicas->model->stride) * sizeof *replicas->base;
    if (replicas->copied || replicas->count == 0)
        return;
    memcpy(replicas->tables[1], replicas->model->output, size);
    memcpy(replicas->base, replicas->model->output, size);
    replicas->copied = 1;
}

static void synchronise(dcme_row_replicas *replicas, int64_t word) {
    int64_t stride = replicas->model->stride;
    real *shared = replicas->model->output + word * stride, *base = replicas->base + word * stride;
    real *rows[] = {replicas->tables[1] + word * stride, base};
    replicas->model->kernels->weighted_sum(shared, rows, (const real[]){1, -1}, 2, stride);
    memcpy(rows[0], shared, (size_t)stride * sizeof *shared);
    memcpy(base, shared, (size_t)stride * sizeof *shared);
}

/* The row whose turn it is, or the one after `more` others. */
static int64_t turn(const dcme_row_replicas *replicas, int64_t more) {
    return (replicas->seen / replicas->every + more) % replicas->count;
}

void dcme_replicas_step(dcme_row_replicas *replicas) {
    if (replicas->count == 0 || ++replicas->seen % replicas->every != 0)
        return;
    synchronise(replicas, turn(replicas, 0));
    dcme_prefetch(replicas->model->output + turn(replicas, 1) * replicas->model->stride,
                  replicas->model->stride);
}

void dcme_replicas_end(dcme_row_replicas *replicas) {
    for (int64_t i = 0; replicas->copied && i < replicas->count; i++)
        synchronise(replicas, turn(replicas, i));
    replicas->copied = 0;
}
