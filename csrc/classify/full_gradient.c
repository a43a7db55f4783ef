/* Scores for prediction, and the exact loss and gradient for a batch solver, with labels or soft
 * targets. For the scores, the documents are divided among the threads. For the gradient, instances
 * are processed piece by piece and the features are divided among the threads, so that no two
 * threads write to the same place and sums do not depend on the number of threads. */
#include "classify/batch.h"
#include "platform.h"

enum { BATCH = 64 }; /* number of documents whose rows fit the cache */

typedef struct {
    const dcme_linear *model;
    const dcme_exact_problem *problem; /* NULL if only scores are computed */
    const dcme_sparse_rows *documents;
    int64_t first;    /* index of the first instance or document */
    int64_t count;    /* number of instances or documents */
    real *scores;     /* (count, stride) scores, which are replaced by the errors */
    double *losses;   /* (count) */
    double *gradient; /* (features + 1, classes); NULL if it is not needed */
} piece;

typedef struct {
    dcme_handle handle;
    piece *piece;
    int64_t begin, end; /* range of instances in the piece, or of columns */
    dcme_batch batch;   /* loss of these instances */
    real **rows;        /* pointers to the errors of a feature's instances */
    real *posterior;    /* (stride) scores of one document, used if scores are not returned */
} worker;

static void *score(void *argument) {
    worker *w = argument;
    const piece *p = w->piece;
    const int64_t *numbers = p->problem ? p->problem->instances->documents : NULL;
    for (int64_t i = w->begin, end; i < w->end; i = end) {
        end = dcme_min(i + BATCH, w->end);
        w->batch.count = 0;
        for (int64_t d = p->first + i; d < p->first + end; d++)
            dcme_batch_add_document(&w->batch, p->documents, numbers ? numbers[d] : d);
        dcme_batch_scores(&w->batch, p->scores + i * p->model->stride);
    }
    return NULL;
}

/* row = p - 1[j = label]; returns -log p_label */
static double label_errors(const piece *p, int32_t label, real *row) {
    double score = row[label];
    double loss = dcme_softmax(row, p->model) - score;
    row[label] -= 1;
    return loss;
}

/* row = |t| p - t; returns -sum_j t_j log p_j */
static double target_errors(const piece *p, int32_t label, real *row) {
    const real *t = p->problem->soft->rows + label * p->model->stride;
    double inner = 0, mass = 0;
    for (int64_t j = 0; j < p->model->classes; j++) {
        inner += t[j] * (double)row[j];
        mass += t[j];
    }
    double loss = mass * dcme_softmax(row, p->model) - inner;
    for (int64_t j = 0; j < p->model->classes; j++)
        row[j] = (real)mass * row[j] - t[j];
    return loss;
}

/* row = p - xi with xi_k ~ p_k alpha_k,y, in logarithms; returns -log sum_k p_k alpha_k,y, which is
 * log sum exp(scores) - log sum exp(scores + log alpha) */
static double latent_errors(const piece *p, int32_t label, real *row, real *xi) {
    const real *log_alpha = p->problem->soft->rows + label * p->model->stride;
    for (int64_t k = 0; k < p->model->classes; k++)
        xi[k] = row[k] + log_alpha[k];
    double joint = dcme_softmax(xi, p->model);
    double loss = dcme_softmax(row, p->model) - joint;
    for (int64_t k = 0; k < p->model->classes; k++)
        row[k] -= xi[k];
    return loss;
}

/* Turn an instance's scores into errors, and return its loss. */
static double errors_of(const piece *p, int64_t d, real *row, real *xi) {
    const dcme_soft_targets *soft = p->problem->soft;
    int32_t label = p->problem->instances->labels[p->first + d];
    if (!soft)
        return label_errors(p, label, row);
    if (soft->kind == DCME_TARGETS)
        return target_errors(p, label, row);
    if (soft->posterior)
        xi = soft->posterior + (p->first + d) * p->model->stride;
    return latent_errors(p, label, row, xi);
}

/* Compute scores, then errors and losses times the instances' weights. */
static void *compute_errors(void *argument) {
    worker *w = argument;
    piece *p = w->piece;
    const real *weights = p->problem->instances->weights;
    score(w);
    for (int64_t d = w->begin; d < w->end; d++) {
        real *row = p->scores + d * p->model->stride;
        real weight = weights ? weights[p->first + d] : 1;
        p->losses[d] = weight * errors_of(p, d, row, w->posterior);
        for (int64_t j = 0; weight != 1 && j < p->model->classes; j++)
            row[j] *= weight;
    }
    return NULL;
}

/* out += values[0] rows[0] + values[1] rows[1] + ... Sums are in double precision, so that they
 * agree except for the last bits, no matter how the documents are divided among machines. */
static void add_products(double *restrict out, real *const *rows, const real *values, int64_t count,
                         int64_t size) {
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const real *a = rows[i], *b = rows[i + 1], *c = rows[i + 2], *d = rows[i + 3];
        double va = values[i], vb = values[i + 1], vc = values[i + 2], vd = values[i + 3];
        for (int64_t j = 0; j < size; j++)
            out[j] += va * a[j] + vb * b[j] + vc * c[j] + vd * d[j];
    }
    for (; i < count; i++) {
        const real *a = rows[i];
        double va = values[i];
        for (int64_t j = 0; j < size; j++)
            out[j] += va * a[j];
    }
}

/* gradient += X^T E for the worker's columns */
static void *add_gradient(void *argument) {
    worker *w = argument;
    piece *p = w->piece;
    const dcme_by_feature *columns = p->problem->columns;
    const int64_t classes = p->model->classes, stride = p->model->stride;
    for (int64_t j = 0; j < classes; j += DCME_COLUMNS) {
        int64_t width = dcme_min(classes - j, DCME_COLUMNS);
        for (int64_t c = w->begin; c < w->end; c++) {
            int64_t begin = columns->starts[c], n = columns->starts[c + 1] - begin;
            for (int64_t i = 0; i < n; i++)
                w->rows[i] = p->scores + columns->instances[begin + i] * stride + j;
            add_products(p->gradient + columns->feature[c] * classes + j, w->rows,
                         columns->values + begin, n, width);
        }
    }
    return NULL;
}

/* Compute the gradient of the biases: every instance has the constant feature. */
static void add_bias(piece *p) {
    double *out = p->gradient + p->model->features * p->model->classes;
    for (int64_t d = 0; d < p->count; d++) {
        const real *row = p->scores + d * p->model->stride;
        for (int64_t j = 0; j < p->model->classes; j++)
            out[j] += p->model->bias * (double)row[j];
    }
}

static void split_documents(piece *p, worker *workers, int32_t threads, void *(*work)(void *)) {
    for (int32_t i = 0; i < threads; i++) {
        workers[i].begin = p->count * i / threads;
        workers[i].end = p->count * (i + 1) / threads;
    }
    dcme_run_threads(work, workers, sizeof *workers, threads);
}

/* Divide the columns of a piece among the threads, with about the same number of values each. */
static void split_columns(piece *p, worker *workers, int32_t threads) {
    const dcme_by_feature *columns = p->problem->columns;
    const int64_t *first = columns->first + p->first / DCME_PIECE, *starts = columns->starts;
    int64_t c = first[0], values = starts[first[1]] - starts[c];
    for (int32_t i = 0; i < threads; i++) {
        int64_t end = starts[first[0]] + values / threads * (i + 1);
        workers[i].begin = c;
        while (c < first[1] && (i == threads - 1 || starts[c + 1] <= end))
            c++;
        workers[i].end = c;
    }
    dcme_run_threads(add_gradient, workers, sizeof *workers, threads);
}

/* Allocate each thread's memory; `most` is the maximum number of instances of a feature in a piece.
 */
static worker *open_workers(piece *p, dcme_arena *arena, int64_t most, int32_t threads) {
    int64_t widest = dcme_widest(p->documents);
    worker *workers = dcme_take(arena, threads, sizeof *workers);
    for (int32_t i = 0; workers && i < threads; i++) {
        workers[i].piece = p;
        dcme_batch_open(&workers[i].batch, arena, p->model, BATCH, widest);
        DCME_TAKE(arena, workers[i].rows, most);
        DCME_TAKE(arena, workers[i].posterior, p->model->stride);
    }
    return workers;
}

static const dcme_purpose SCORES = {"the scores of some documents", "give shorter documents"};

dcme_status dcme_classify_scores(real *scores, const dcme_linear *model,
                                 const dcme_sparse_rows *documents, int64_t begin, int64_t end,
                                 int32_t threads, dcme_error *error) {
    piece p = {.model = model, .documents = documents, .first = begin, .scores = scores};
    dcme_arena arena = {0};
    p.count = end - begin;
    worker *workers = open_workers(&p, &arena, 0, threads);
    dcme_status status = dcme_arena_check(&arena, SCORES, error);
    if (status == DCME_OK)
        split_documents(&p, workers, threads, score);
    dcme_arena_close(&arena);
    return status;
}

static void add_pieces(double *loss, piece *p, worker *workers, int32_t threads) {
    int64_t total = p->problem->instances->count;
    for (p->first = 0; p->first < total; p->first += DCME_PIECE) {
        p->count = dcme_min(total - p->first, DCME_PIECE);
        split_documents(p, workers, threads, compute_errors);
        for (int64_t d = 0; d < p->count; d++)
            *loss += p->losses[d];
        if (!p->gradient)
            continue;
        split_columns(p, workers, threads);
        add_bias(p);
    }
}

dcme_status dcme_classify_gradient(double *loss, double *gradient, const dcme_linear *model,
                                   const dcme_exact_problem *problem, int32_t threads,
                                   dcme_error *error) {
    piece p = {.model = model, .problem = problem, .gradient = gradient};
    dcme_arena arena = {0};
    p.documents = problem->documents;
    int64_t count = dcme_min(problem->instances->count, DCME_PIECE);
    DCME_TAKE_UNSET(&arena, p.scores, count * model->stride);
    DCME_TAKE(&arena, p.losses, count);
    worker *workers = open_workers(&p, &arena, count, threads);
    dcme_status status = dcme_arena_check(&arena, SCORES, error);
    *loss = 0;
    if (gradient)
        DCME_CLEAR(gradient, (model->features + 1) * model->classes);
    if (status == DCME_OK)
        add_pieces(loss, &p, workers, threads);
    dcme_arena_close(&arena);
    return status;
}
