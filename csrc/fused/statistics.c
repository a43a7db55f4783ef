/* Sums of probability times feature over documents, as integers.
 *
 * A document's probabilities become a list of the classes that it has more than `cut` of, in units.
 * Each thread takes a range of features of all documents: a row's features ascend, so that its part
 * is one piece of the row.
 */
#include "engine/threads.h"
#include "fused/fused.h"

#include <math.h>
#include <stdlib.h>

enum {
    PIECE = 2048,  /* documents whose probabilities are held at once */
    SAMPLE = 4096, /* non-zeros by which threads share the features */
    BLOCK = 256    /* non-zeros of a document that are added at once */
};

/* Probabilities of some documents in units: those above the cut, as lists or, where most are, as
 * whole rows of `classes` (padded), which compilers make vectors of. */
typedef struct {
    uint32_t *whole; /* (PIECE, classes) */
    int32_t *listed; /* (PIECE, classes) numbers of classes, those kept first */
    int64_t *kept;   /* (PIECE) how many; -1: take the whole row */
} units;

typedef struct {
    dcme_handle handle;
    dcme_statistics *statistics;
    const dcme_sparse_rows *documents;
    const units *units;
    const dcme_kernels *kernels;
    const double *log_p;     /* of the piece */
    double least;            /* log of the cut */
    int64_t begin, count;    /* documents of the piece */
    int64_t first, last;     /* those of them whose probabilities this thread rounds */
    int64_t lowest, highest; /* features of this thread: lowest <= f < highest */
} share;

/* The first place in begin .. end - 1 whose feature is at least f. */
static int64_t place_of(const int32_t *features, int64_t begin, int64_t end, int64_t f) {
    while (begin < end) {
        int64_t middle = begin + (end - begin) / 2;
        if (features[middle] < f)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Add n non-zeros to the counts; x gets their values in units. Returns how many have sums, which
 * come first, and *rows, theirs: the features themselves, or `own`. */
static int64_t add_counts(const dcme_statistics *t, const int32_t *features, const real *values,
                          int64_t n, const int32_t **rows, int32_t *own, uint32_t *x) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = (uint32_t)(values[i] * DCME_UNIT + 0.5F);
    *rows = t->rows ? own : features;
    for (int64_t i = 0; i < n && t->rows; i++) {
        own[kept] = t->rows[features[i]];
        x[kept] = x[i];
        kept += own[kept] >= 0;
    }
    n = t->rows ? kept : n;
    for (int64_t i = 0; i < n; i++)
        t->counts[(*rows)[i]] += x[i];
    return n;
}

/* Add some non-zeros of document d of the piece. */
static void add_joint(const share *s, int64_t d, const int32_t *rows, const uint32_t *x,
                      int64_t n) {
    const dcme_statistics *t = s->statistics;
    const uint32_t *p = s->units->whole + d * t->classes;
    const int32_t *list = s->units->listed + d * t->classes;
    int64_t kept = s->units->kept[d];
    if (kept < 0)
        s->kernels->add_products(t->joint, rows, x, n, p, t->classes);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < kept; k++)
            t->joint[rows[i] * t->classes + list[k]] += (int64_t)((uint64_t)x[i] * p[list[k]]);
}

static void add_document(const share *s, int64_t d, int64_t from, int64_t to) {
    const dcme_sparse_rows *documents = s->documents;
    const int32_t *rows;
    int32_t own[BLOCK];
    uint32_t x[BLOCK];
    for (; from < to; from += BLOCK) {
        int64_t n = to - from < BLOCK ? to - from : BLOCK;
        n = add_counts(s->statistics, documents->features + from, documents->values + from, n,
                       &rows, own, x);
        if (s->statistics->joint)
            add_joint(s, d, rows, x, n);
    }
}

static void *add_share(void *argument) {
    share *s = argument;
    const dcme_sparse_rows *rows = s->documents;
    for (int64_t d = 0; d < s->count; d++) {
        int64_t from = rows->starts[s->begin + d], to = rows->starts[s->begin + d + 1];
        if (s->lowest > 0)
            from = place_of(rows->features, from, to, s->lowest);
        if (s->highest < s->statistics->features)
            to = place_of(rows->features, from, to, s->highest);
        add_document(s, d, from, to);
    }
    return NULL;
}

/* Round the probabilities of one document. */
static void take_document(const units *u, int64_t classes, int64_t d, const double *log_p,
                          double lowest) {
    uint32_t *p = u->whole + d * classes;
    int32_t *list = u->listed + d * classes;
    int64_t kept = 0;
    for (int64_t c = 0; c < classes; c++) {
        p[c] = 0;
        if (log_p[c] >= lowest) {
            double probability = exp(log_p[c]);
            p[c] = (uint32_t)((probability < 1 ? probability : 1) * DCME_UNIT + 0.5);
            list[kept++] = (int32_t)c;
        }
    }
    u->kept[d] = 4 * kept > classes ? -1 : kept;
}

/* Round the probabilities of this thread's part of the piece. */
static void *take_share(void *argument) {
    share *s = argument;
    int64_t classes = s->statistics->classes;
    for (int64_t d = s->first; d < s->last; d++)
        take_document(s->units, classes, d, s->log_p + d * classes, s->least);
    return NULL;
}

static void add_prior(const units *u, dcme_statistics *t, int64_t count) {
    for (int64_t d = 0; d < count; d++)
        for (int64_t c = 0; c < t->classes; c++)
            t->prior[c] += u->whole[d * t->classes + c];
}

static int ascending(const void *a, const void *b) {
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* Features up to which a share of the non-zeros of `count` documents lies, by a sample of them. */
static void part_features(share *shares, int32_t threads, const dcme_sparse_rows *documents,
                          int64_t begin, int64_t count, int64_t features, int32_t *sample) {
    int64_t from = documents->starts[begin], total = documents->starts[begin + count] - from;
    int64_t n = total < SAMPLE ? total : SAMPLE;
    for (int64_t i = 0; i < n; i++)
        sample[i] = documents->features[from + total / n * i];
    qsort(sample, (size_t)n, sizeof *sample, ascending);
    for (int32_t t = 0; t < threads; t++) {
        shares[t].lowest = t == 0 ? 0 : shares[t - 1].highest;
        shares[t].highest = t + 1 < threads && n ? sample[n * (t + 1) / threads] : features;
    }
}

static void run_pieces(share *shares, int32_t threads, int64_t begin, int64_t count,
                       const double *log_p, double cut) {
    dcme_statistics *statistics = shares->statistics;
    const units *u = shares->units;
    for (int64_t first = 0; first < count; first += PIECE) {
        int64_t n = count - first < PIECE ? count - first : PIECE;
        for (int32_t t = 0; t < threads; t++) {
            shares[t].begin = begin + first;
            shares[t].count = n;
            shares[t].first = n * t / threads;
            shares[t].last = n * (t + 1) / threads;
            shares[t].log_p = u->whole ? log_p + first * statistics->classes : NULL;
            shares[t].least = log(cut);
        }
        if (u->whole) {
            dcme_run_threads(take_share, shares, sizeof *shares, threads);
            add_prior(u, statistics, n);
        }
        dcme_run_threads(add_share, shares, sizeof *shares, threads);
    }
}

static dcme_status open_units(units *u, int64_t classes) {
    u->whole = dcme_allocate(PIECE * classes, sizeof *u->whole);
    u->listed = dcme_allocate(PIECE * classes, sizeof *u->listed);
    u->kept = dcme_allocate(PIECE, sizeof *u->kept);
    return u->whole && u->listed && u->kept ? DCME_OK : DCME_NO_MEMORY;
}

dcme_status dcme_add_statistics(dcme_statistics *statistics, const dcme_sparse_rows *documents,
                                int64_t begin, int64_t count, const double *log_probabilities,
                                double cut, int32_t threads, dcme_error *error) {
    units u = {NULL, NULL, NULL};
    share *shares = dcme_allocate_zeros(threads, sizeof *shares);
    int32_t *sample = dcme_allocate(SAMPLE, sizeof *sample);
    dcme_status status = shares && sample ? DCME_OK : DCME_NO_MEMORY;
    if (status == DCME_OK && statistics->joint)
        status = open_units(&u, statistics->classes);
    if (status == DCME_OK && count > 0) {
        for (int32_t t = 0; t < threads; t++)
            shares[t] = (share){.statistics = statistics,
                                .documents = documents,
                                .units = &u,
                                .kernels = dcme_kernels_choose(NULL)};
        part_features(shares, threads, documents, begin, count, statistics->features, sample);
        run_pieces(shares, threads, begin, count, log_probabilities, cut);
    }
    free(u.whole), free(u.listed), free(u.kept), free(shares), free(sample);
    if (status != DCME_OK)
        return dcme_no_memory(error, PIECE * statistics->classes * 8,
                              "the probabilities of some documents", "give fewer classes");
    return DCME_OK;
}

int64_t dcme_check_statistics(const dcme_sparse_rows *documents, int64_t features, float largest) {
    int bad = 0;
    const int32_t *f = documents->features;
    const real *v = documents->values;
    int64_t total = documents->starts[documents->count];
    for (int64_t i = 0; i < total; i++)
        bad |= !((v[i] >= 0) & (v[i] < (real)largest));
    if (bad)
        return -2;
    for (int64_t d = 0; d < documents->count; d++) {
        int64_t begin = documents->starts[d], end = documents->starts[d + 1];
        if (begin > end)
            return d;
        for (int64_t i = begin + 1; i < end; i++)
            bad |= f[i] <= f[i - 1];
        if (begin < end && (bad || f[begin] < 0 || f[end - 1] >= features))
            return d;
    }
    return -1;
}
