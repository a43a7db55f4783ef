/* See row_replicas.h. */
#include "objectives/row_replicas.h"

enum { ROWS = 256 }; /* number of words; 64 gain half as much, 1,024 hardly more */
enum { EVERY = 32 }; /* instances of all threads between two synchronizations */

void dcme_replicas_open(dcme_row_replicas *replicas, dcme_arena *arena, const dcme_model *model,
                        int32_t threads) {
    *replicas = (dcme_row_replicas){.model = model, .tables = {model->output, model->output}};
    if (threads < 2)
        return;
    replicas->count = dcme_min(model->items, ROWS);
    replicas->every = replicas->left = threads < EVERY ? EVERY / threads : 1;
    DCME_TAKE(arena, replicas->tables[1], replicas->count * model->stride);
    DCME_TAKE(arena, replicas->base, replicas->count * model->stride);
}

void dcme_replicas_seed(dcme_row_replicas *replicas, uint64_t stream) {
    replicas->turn = stream % (replicas->count > 0 ? replicas->count : 1);
}

void dcme_replicas_begin(dcme_row_replicas *replicas) {
    int64_t size = replicas->count * replicas->model->stride;
    if (replicas->copied || replicas->count == 0)
        return;
    DCME_COPY(replicas->tables[1], replicas->model->output, size);
    DCME_COPY(replicas->base, replicas->model->output, size);
    replicas->copied = 1;
}

static void synchronize(dcme_row_replicas *replicas, int64_t word) {
    int64_t stride = replicas->model->stride;
    real *shared = replicas->model->output + word * stride, *base = replicas->base + word * stride;
    real *rows[] = {replicas->tables[1] + word * stride, base};
    replicas->model->kernels->weighted_sum(shared, rows, (const real[]){1, -1}, 2, stride);
    DCME_COPY(rows[0], shared, stride);
    DCME_COPY(base, shared, stride);
}

void dcme_replicas_step(dcme_row_replicas *replicas) {
    int64_t stride = replicas->model->stride;
    if (replicas->count == 0 || --replicas->left > 0)
        return;
    synchronize(replicas, replicas->turn);
    replicas->left = replicas->every;
    replicas->turn = replicas->turn + 1 < replicas->count ? replicas->turn + 1 : 0;
    dcme_prefetch(replicas->model->output + replicas->turn * stride, stride);
}

void dcme_replicas_end(dcme_row_replicas *replicas) {
    for (int64_t i = 0; replicas->copied && i < replicas->count; i++)
        synchronize(replicas, (replicas->turn + i) % replicas->count);
    replicas->copied = 0;
}
