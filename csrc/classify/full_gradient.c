/* Scores for prediction, and the exact loss and gradient for a batch solver.
 *
 * Documents are taken PIECE at a time. Threads share them for the scores, and the classes for the
 * gradient, so that no two write to the same place and sums do not depend on how many there are.
 */
#include "classify/batch.h"
#include "engine/threads.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 4096, BATCH = 64 }; /* documents at a time; those whose rows fit the cache */

typedef struct {
    const dcme_linear *model;
    dcme_batch batch;
    dcme_columns columns;
    real *scores;     /* (PIECE, stride), errors afterwards */
    double *losses;   /* (PIECE) */
    double *gradient; /* (features + 1, classes) */
} piece;

typedef struct {
    dcme_handle handle;
    piece *piece;
    real *scores;       /* of the first document */
    int64_t begin, end; /* documents, or classes */
    real **rows;
} share;

static void *score(void *argument) {
    share *s = argument;
    const piece *p = s->piece;
    for (int64_t i = s->begin; i < s->end; i += BATCH)
        dcme_batch_scores(&p->batch, i, i + BATCH < s->end ? i + BATCH : s->end,
                          s->scores + i * p->model->stride, s->rows);
    return NULL;
}

/* Scores, then errors p_j - 1[j = i] and -log p_i, times the instance's weight. */
static void *judge(void *argument) {
    share *s = argument;
    piece *p = s->piece;
    score(s);
    for (int64_t d = s->begin; d < s->end; d++) {
        real *row = p->scores + d * p->model->stride;
        int32_t target = p->batch.targets[d];
        real weight = p->batch.weights[d];
        double score = (double)row[target];
        p->losses[d] = (double)weight * (dcme_softmax(row, p->model) - score);
        row[target] -= 1;
        for (int64_t j = 0; weight != 1 && j < p->model->classes; j++)
            row[j] *= weight;
    }
    return NULL;
}

/* gradient += X^T E for the share's classes */
static void *add_gradient(void *argument) {
    share *s = argument;
    piece *p = s->piece;
    const dcme_columns *columns = &p->columns;
    real sums[DCME_BLOCK];
    for (int64_t j = s->begin; j < s->end; j += DCME_BLOCK) {
        int64_t width = s->end - j < DCME_BLOCK ? s->end - j : DCME_BLOCK;
        for (int64_t c = 0; c < columns->count; c++) {
            int64_t begin = columns->starts[c], n = columns->starts[c + 1] - begin;
            double *row = p->gradient + columns->feature[c] * p->model->classes;
            for (int64_t i = 0; i < n; i++)
                s->rows[i] = p->scores + columns->documents[begin + i] * p->model->stride + j;
            memset(sums, 0, sizeof sums);
            p->model->kernels->weighted_sum(sums, s->rows, columns->values + begin, n, width);
            for (int64_t i = 0; i < width && j + i < p->model->classes; i++)
                row[j + i] += (double)sums[i];
        }
    }
    return NULL;
}

/* Let threads share `total` documents or classes in pieces that are multiples of `unit`. */
static void run(share *shares, int32_t threads, void *(*work)(void *), int64_t total,
                int64_t unit) {
    int64_t units = (total + unit - 1) / unit;
    for (int32_t i = 0; i < threads; i++) {
        shares[i].begin = units * i / threads * unit;
        shares[i].end = i + 1 < threads ? units * (i + 1) / threads * unit : total;
    }
    dcme_run_threads(work, shares, sizeof *shares, threads);
}

static void close_all(piece *p, share *shares, int32_t threads) {
    for (int32_t i = 0; shares && i < threads; i++)
        free(shares[i].rows);
    dcme_batch_close(&p->batch);
    dcme_columns_close(&p->columns);
    free(shares), free(p->scores), free(p->losses);
}

static dcme_status open_all(piece *p, share **shares, const dcme_linear *model, int64_t widest,
                            int32_t threads) {
    share *s = dcme_allocate_zeros(threads, sizeof *s);
    *shares = s;
    p->model = model;
    if (!s || dcme_batch_open(&p->batch, model, PIECE, widest) != DCME_OK)
        return DCME_NO_MEMORY;
    for (int32_t i = 0; i < threads; i++) {
        s[i].piece = p;
        s[i].rows = dcme_allocate(widest > PIECE ? widest : PIECE, sizeof *s[i].rows);
        if (!s[i].rows)
            return DCME_NO_MEMORY;
    }
    return DCME_OK;
}

static dcme_status no_memory(dcme_error *error, const dcme_linear *model, int64_t widest) {
    int64_t scores = PIECE * (model->stride + 2) * (int64_t)sizeof(real);
    int64_t columns = dcme_columns_bytes(model->features + 1, PIECE, widest);
    return dcme_no_memory(error, scores + 2 * columns, "the scores of some documents",
                          "give shorter documents");
}

dcme_status dcme_classify_scores(real *scores, const dcme_linear *model,
                                 const dcme_sparse_rows *documents, int64_t begin, int64_t end,
                                 int32_t threads, dcme_error *error) {
    piece p = {0};
    share *shares = NULL;
    int64_t widest = dcme_widest(documents);
    dcme_status status = open_all(&p, &shares, model, widest, threads);
    for (int64_t i = begin; status == DCME_OK && i < end; i += PIECE) {
        dcme_batch_clear(&p.batch);
        for (int64_t d = i; d < end && d < i + PIECE; d++)
            dcme_batch_add(&p.batch, documents, d, 0, 1);
        for (int32_t t = 0; t < threads; t++)
            shares[t].scores = scores + (i - begin) * model->stride;
        run(shares, threads, score, p.batch.count, 1);
    }
    close_all(&p, shares, threads);
    return status == DCME_OK ? status : no_memory(error, model, widest);
}

static void take_piece(piece *p, share *shares, int32_t threads, const dcme_sparse_rows *documents,
                       const dcme_instances *instances, int64_t begin) {
    dcme_batch_clear(&p->batch);
    for (int64_t i = begin; i < instances->count && i < begin + PIECE; i++)
        dcme_batch_add_instance(&p->batch, documents, instances, i);
    dcme_columns_fill(&p->columns, &p->batch);
    for (int32_t t = 0; t < threads; t++)
        shares[t].scores = p->scores;
    run(shares, threads, judge, p->batch.count, 1);
    run(shares, threads, add_gradient, p->model->stride, DCME_PAD);
}

dcme_status dcme_classify_gradient(double *loss, double *gradient, const dcme_linear *model,
                                   const dcme_sparse_rows *documents,
                                   const dcme_instances *instances, int32_t threads,
                                   dcme_error *error) {
    piece p = {.gradient = gradient};
    share *shares = NULL;
    int64_t widest = dcme_widest(documents);
    dcme_status status = open_all(&p, &shares, model, widest, threads);
    p.scores = dcme_allocate(PIECE * model->stride, sizeof *p.scores);
    p.losses = dcme_allocate(PIECE, sizeof *p.losses);
    if (status == DCME_OK)
        status = dcme_columns_open(&p.columns, model, PIECE, widest);
    if (!p.scores || !p.losses)
        status = DCME_NO_MEMORY;
    memset(gradient, 0, (size_t)((model->features + 1) * model->classes) * sizeof *gradient);
    *loss = 0;
    for (int64_t i = 0; status == DCME_OK && i < instances->count; i += PIECE) {
        take_piece(&p, shares, threads, documents, instances, i);
        for (int64_t d = 0; d < p.batch.count; d++)
            *loss += p.losses[d];
    }
    close_all(&p, shares, threads);
    return status == DCME_OK ? status : no_memory(error, model, widest);
}
