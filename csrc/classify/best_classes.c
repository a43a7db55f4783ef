/* The most probable classes of documents by bounds; see class_codes.h. */
#include <math.h>

#include "classify/batch.h"
#include "classify/class_codes.h"
#include "common/top_k.h"

enum {
    GROUP = DCME_PAD, /* classes that are scored at once, a cache line of weights */
    FIRST = 2,        /* groups that are scored first, for each wanted class */
    MOST_SUM = 65535, /* of numbers in codes */
    MOST_FEATURES = MOST_SUM / 2
};

typedef struct {
    const dcme_class_codes *codes;
    const dcme_linear *model;
    const int32_t *numbers; /* of the columns */
    int64_t count;          /* classes wanted */
    int64_t groups;         /* of columns; the last may have fewer classes */

    /* The document. s_j <= base + unit * (sum of the numbers in codes) + error. */
    dcme_batch document;
    const uint8_t **coded; /* rows of codes */
    uint8_t *tables;
    double base, unit, error;

    uint16_t *bounds; /* (groups and padding) of the greatest sum of a group */
    real *waiting;    /* (groups) the same; -1: its scores are computed */
    int32_t *first;   /* groups of the greatest bounds */

    int32_t *best; /* the classes found so far, the most probable first */
    real *scores;  /* of these */
    int64_t found, scored;
} search;

static void open_search(search *s, dcme_arena *arena, int64_t widest) {
    s->groups = (s->model->classes + GROUP - 1) / GROUP;
    dcme_batch_open(&s->document, arena, s->model, 1, widest);
    DCME_TAKE(arena, s->coded, widest);
    s->tables = dcme_take(arena, widest, 2 * DCME_CODES);
    DCME_TAKE(arena, s->bounds, dcme_code_stride(s->model->classes) / 8);
    DCME_TAKE(arena, s->waiting, s->groups);
    DCME_TAKE(arena, s->first, s->groups);
    DCME_TAKE(arena, s->scores, s->count);
}

/* The most that a feature adds to a score, given the code of the weight. */
static double most(real x, const real *edges, int code) {
    return x * (double)edges[x > 0 ? code + 1 : code];
}

/* A document, and the parts of its bounds. */
static void take_document(search *s, const dcme_sparse_rows *documents, int64_t document) {
    dcme_batch *batch = &s->document;
    double total = 0, size = 0;
    batch->count = 0;
    dcme_batch_add_document(batch, documents, document);
    s->base = 0;
    for (int64_t i = 0; i < batch->starts[1]; i++) {
        int64_t f = batch->features[i];
        const real *edges = s->codes->edges + f * DCME_EDGES, x = batch->values[i];
        s->coded[i] = s->codes->codes + f * dcme_code_stride(s->model->classes);
        double low = most(x, edges, 0), high = most(x, edges, DCME_CODES - 1);
        s->base += fmin(low, high);
        total += fabs(high - low);
        size += fabs(x) * fmax(fabs(edges[0]), fabs(edges[DCME_CODES]));
    }
    s->unit = total > 0 ? total / (MOST_SUM - batch->starts[1]) : 1;
    s->error = (batch->starts[1] + 2) * 0x1p-23 * size; /* scores are sums of floats */
}

/* The number of each code of feature i: what the feature adds at most, in units, rounded up. */
static void fill_table(uint8_t *table, const search *s, int64_t i) {
    const real *edges = s->codes->edges + s->document.features[i] * DCME_EDGES;
    real x = s->document.values[i];
    double low = fmin(most(x, edges, 0), most(x, edges, DCME_CODES - 1));
    for (int code = 0; code < DCME_CODES; code++) {
        unsigned number = (unsigned)((most(x, edges, code) - low) / s->unit) + 1;
        table[code] = (uint8_t)number;
        table[DCME_CODES + code] = (uint8_t)(number >> 8);
    }
}

/* The bounds of all groups; of documents with too many features for sums of 16 bits, none. */
static void compute_bounds(search *s) {
    int64_t features = s->document.starts[1];
    if (features > MOST_FEATURES) {
        s->unit = 1;
        s->error = INFINITY;
        DCME_CLEAR(s->bounds, s->groups);
    } else {
        for (int64_t i = 0; i < features; i++)
            fill_table(s->tables + 2 * DCME_CODES * i, s, i);
        s->model->kernels->class_bounds(s->bounds, s->coded, s->tables, features,
                                        dcme_code_stride(s->model->classes));
    }
    for (int64_t group = 0; group < s->groups; group++)
        s->waiting[group] = s->bounds[group];
}

/* Put a class where it belongs among the best, if it does. */
static void put(search *s, int32_t number, real score) {
    int64_t i = s->found;
    while (i > 0 &&
           (s->scores[i - 1] < score || (s->scores[i - 1] == score && s->best[i - 1] > number))) {
        if (i < s->count)
            s->best[i] = s->best[i - 1], s->scores[i] = s->scores[i - 1];
        i--;
    }
    if (i < s->count)
        s->best[i] = number, s->scores[i] = score;
    s->found += s->found < s->count;
}

/* Compute the scores of a group; DIVERGED if one is not finite. */
static dcme_status score_group(search *s, int64_t group) {
    real scores[GROUP] = {0};
    int64_t first = group * GROUP, end = dcme_min(first + GROUP, s->model->classes);
    dcme_batch_multiply(&s->document, 0, s->model->weights, s->model->stride, first, GROUP, scores);
    for (int64_t j = first; j < end; j++) {
        if (!isfinite(scores[j - first]))
            return DCME_DIVERGED;
        put(s, s->numbers[j], scores[j - first]);
    }
    s->waiting[group] = -1;
    s->scored += end - first;
    return DCME_OK;
}

/* The least bound, in units, of a group that may have one of the best classes. */
static real least_bound(const search *s) {
    if (s->found < s->count)
        return 0;
    double least = (s->scores[s->count - 1] - s->base - s->error) / s->unit;
    return least > 1 ? (real)floor(least - 1) : 0; /* 1: more than the rounding of these numbers */
}

static void prefetch_group(const search *s, int64_t group) {
    const dcme_linear *model = s->model;
    for (int64_t i = 0; i < s->document.starts[1]; i++)
        __builtin_prefetch(model->weights + s->document.features[i] * model->stride +
                           group * GROUP);
}

/* The groups of the greatest bounds come first, so that most others need no scores. */
static dcme_status find_best(search *s) {
    dcme_status status = DCME_OK;
    int64_t first = dcme_min(FIRST * s->count, s->groups);
    s->found = 0;
    dcme_top_k(s->first, first, s->waiting, s->groups);
    prefetch_group(s, s->first[0]);
    for (int64_t i = 0; i < first && status == DCME_OK; i++) {
        if (s->waiting[s->first[i]] < least_bound(s))
            return DCME_OK;
        if (i + 1 < first)
            prefetch_group(s, s->first[i + 1]);
        status = score_group(s, s->first[i]);
    }
    real least = least_bound(s);
    for (int64_t group = 0; group < s->groups && status == DCME_OK; group++)
        if (s->waiting[group] >= least) {
            status = score_group(s, group);
            least = least_bound(s);
        }
    return status;
}

dcme_status dcme_best_classes(int32_t *best, int64_t count, int64_t *scored,
                              const dcme_class_codes *codes, const dcme_linear *model,
                              const int32_t *numbers, const dcme_sparse_rows *documents,
                              int64_t begin, int64_t end, dcme_error *error) {
    search s = {.codes = codes, .model = model, .numbers = numbers, .count = count};
    dcme_arena arena = {0};
    open_search(&s, &arena, dcme_widest(documents));
    dcme_status status = dcme_arena_check(
        &arena, (dcme_purpose){"the bounds of a document's classes", "give shorter documents"},
        error);
    for (int64_t d = begin; d < end && status == DCME_OK; d++) {
        s.best = best + (d - begin) * count;
        take_document(&s, documents, d);
        if (isfinite(s.base) && isfinite(s.unit)) {
            compute_bounds(&s);
            status = find_best(&s);
        } else { /* a value is not finite */
            status = DCME_DIVERGED;
        }
        if (status != DCME_OK)
            dcme_fail(error, status, d,
                      "a document has a score that is NaN or infinite: scale the documents' values "
                      "down, or train again with a lower --lr");
    }
    *scored = s.scored;
    dcme_arena_close(&arena);
    return status;
}
