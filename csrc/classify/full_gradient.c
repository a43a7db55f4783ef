/* Scores for prediction, and the exact loss and gradient for a batch solver, of labels or of soft
 * targets.
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
    const dcme_soft_targets *soft; /* NULL: the labels are classes */
    dcme_batch batch;
    dcme_columns columns;
    int64_t first;    /* number of its first instance */
    real *scores;     /* (PIECE, stride), errors afterwards */
    double *losses;   /* (PIECE) */
    double *gradient; /* (features + 1, classes); NULL: not wanted */
} piece;

typedef struct {
    dcme_handle handle;
    piece *piece;
    real *scores;       /* of the first document */
    int64_t begin, end; /* documents, or classes */
    real **rows;
    real *posterior; /* (stride), of one document at a time where none is returned */
} share;

static void *score(void *argument) {
    share *s = argument;
    const piece *p = s->piece;
    for (int64_t i = s->begin; i < s->end; i += BATCH)
        dcme_batch_scores(&p->batch, i, i + BATCH < s->end ? i + BATCH : s->end,
                          s->scores + i * p->model->stride, s->rows);
    return NULL;
}

/* row = p - 1[j = label]; returns -log p_label */
static double label_errors(const piece *p, int64_t d, real *row) {
    int32_t label = p->batch.targets[d];
    double score = (double)row[label];
    double loss = dcme_softmax(row, p->model) - score;
    row[label] -= 1;
    return loss;
}

/* row = |t| p - t; returns -sum_j t_j log p_j */
static double target_errors(const piece *p, int64_t d, real *row) {
    const real *t = p->soft->rows + (int64_t)p->batch.targets[d] * p->model->stride;
    double inner = 0, mass = 0;
    for (int64_t j = 0; j < p->model->classes; j++) {
        inner += (double)t[j] * (double)row[j];
        mass += (double)t[j];
    }
    double loss = mass * dcme_softmax(row, p->model) - inner;
    for (int64_t j = 0; j < p->model->classes; j++)
        row[j] = (real)mass * row[j] - t[j];
    return loss;
}

/* row = p - xi with xi_k ~ p_k alpha_k,y, in logarithms; returns -log sum_k p_k alpha_k,y, which is
 * log sum exp(scores) - log sum exp(scores + log alpha) */
static double latent_errors(const piece *p, int64_t d, real *row, real *xi) {
    const real *log_alpha = p->soft->rows + (int64_t)p->batch.targets[d] * p->model->stride;
    for (int64_t k = 0; k < p->model->classes; k++)
        xi[k] = row[k] + log_alpha[k];
    double own = dcme_softmax(xi, p->model);
    double loss = dcme_softmax(row, p->model) - own;
    for (int64_t k = 0; k < p->model->classes; k++)
        row[k] -= xi[k];
    return loss;
}

/* Scores, then errors and losses, times the instance's weight. */
static void *compute_errors(void *argument) {
    share *s = argument;
    piece *p = s->piece;
    const dcme_soft_targets *soft = p->soft;
    score(s);
    for (int64_t d = s->begin; d < s->end; d++) {
        real *row = p->scores + d * p->model->stride;
        real weight = p->batch.weights[d];
        if (!soft)
            p->losses[d] = label_errors(p, d, row);
        else if (soft->kind == DCME_TARGETS)
            p->losses[d] = target_errors(p, d, row);
        else {
            real *out = soft->posterior;
            out = out ? out + (p->first + d) * p->model->stride : s->posterior;
            p->losses[d] = latent_errors(p, d, row, out);
        }
        p->losses[d] *= (double)weight;
        for (int64_t j = 0; weight != 1 && j < p->model->classes; j++)
            row[j] *= weight;
    }
    return NULL;
}

/* out += values[0] rows[0] + values[1] rows[1] + ... In double precision, sums are the same except
 * for the last bits, however the documents are divided between machines. */
static void add_products(double *restrict out, real *const *rows, const real *values, int64_t count,
                         int64_t size) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const real *a = rows[i], *b = rows[i + 1], *c = rows[i + 2], *d = rows[i + 3];
        double va = values[i], vb = values[i + 1], vc = values[i + 2], vd = values[i + 3];
        for (int64_t j = 0; j < size; j++)
            out[j] += va * (double)a[j] + vb * (double)b[j] + vc * (double)c[j] + vd * (double)d[j];
    }
    for (; i < count; i++) {
        const real *a = rows[i];
        double va = values[i];
        for (int64_t j = 0; j < size; j++)
            out[j] += va * (double)a[j];
    }
}

/* gradient += X^T E for the share's classes */
static void *add_gradient(void *argument) {
    share *s = argument;
    piece *p = s->piece;
    const dcme_columns *columns = &p->columns;
    const int64_t classes = p->model->classes, last = s->end < classes ? s->end : classes;
    for (int64_t j = s->begin; j < last; j += DCME_BLOCK) {
        int64_t width = last - j < DCME_BLOCK ? last - j : DCME_BLOCK;
        for (int64_t c = 0; c < columns->count; c++) {
            int64_t begin = columns->starts[c], n = columns->starts[c + 1] - begin;
            for (int64_t i = 0; i < n; i++)
                s->rows[i] = p->scores + columns->documents[begin + i] * p->model->stride + j;
            add_products(p->gradient + columns->feature[c] * classes + j, s->rows,
                         columns->values + begin, n, width);
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
        free(shares[i].rows), free(shares[i].posterior);
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
        s[i].posterior = dcme_allocate(model->stride, sizeof *s[i].posterior);
        if (!s[i].rows || !s[i].posterior)
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
    p->first = begin;
    for (int64_t i = begin; i < instances->count && i < begin + PIECE; i++)
        dcme_batch_add_instance(&p->batch, documents, instances, i);
    for (int32_t t = 0; t < threads; t++)
        shares[t].scores = p->scores;
    run(shares, threads, compute_errors, p->batch.count, 1);
    if (!p->gradient)
        return;
    dcme_columns_fill(&p->columns, &p->batch);
    run(shares, threads, add_gradient, p->model->stride, DCME_PAD);
}

static dcme_status add_pieces(double *loss, piece *p, const dcme_sparse_rows *documents,
                              const dcme_instances *instances, int32_t threads, dcme_error *error) {
    const dcme_linear *model = p->model;
    share *shares = NULL;
    int64_t widest = dcme_widest(documents);
    dcme_status status = open_all(p, &shares, model, widest, threads);
    p->scores = dcme_allocate(PIECE * model->stride, sizeof *p->scores);
    p->losses = dcme_allocate(PIECE, sizeof *p->losses);
    if (status == DCME_OK && p->gradient)
        status = dcme_columns_open(&p->columns, model, PIECE, widest);
    if (!p->scores || !p->losses)
        status = DCME_NO_MEMORY;
    int64_t numbers = (model->features + 1) * model->classes;
    if (p->gradient)
        memset(p->gradient, 0, (size_t)numbers * sizeof *p->gradient);
    *loss = 0;
    for (int64_t i = 0; status == DCME_OK && i < instances->count; i += PIECE) {
        take_piece(p, shares, threads, documents, instances, i);
        for (int64_t d = 0; d < p->batch.count; d++)
            *loss += p->losses[d];
    }
    close_all(p, shares, threads);
    return status == DCME_OK ? status : no_memory(error, model, widest);
}

dcme_status dcme_classify_gradient(double *loss, double *gradient, const dcme_linear *model,
                                   const dcme_sparse_rows *documents,
                                   const dcme_instances *instances, int32_t threads,
                                   dcme_error *error) {
    piece p = {.model = model, .gradient = gradient};
    return add_pieces(loss, &p, documents, instances, threads, error);
}

dcme_status dcme_classify_soft_gradient(double *loss, double *gradient, const dcme_linear *model,
                                        const dcme_sparse_rows *documents,
                                        const dcme_instances *instances,
                                        const dcme_soft_targets *soft, int32_t threads,
                                        dcme_error *error) {
    piece p = {.model = model, .soft = soft, .gradient = gradient};
    return add_pieces(loss, &p, documents, instances, threads, error);
}
