/* Sums of probability times feature over documents, as integers.
 *
 * A document's probabilities become a list of the classes that it has more than `cut` of, in units.
 * Each thread takes a range of features of all documents: a row's features ascend, so that its part
 * is one piece of the row. Where a row is divided is found once, when its probabilities are
 * rounded.
 */
#include "engine/threads.h"
#include "fused/fused.h"

#include <math.h>
#include <stdlib.h>

enum {
    CELLS = 1 << 20, /* probabilities that are held at once */
    LEAST = 256,     /* documents whose probabilities are held at once, ... */
    MOST = 16384,    /* ... at least and at most */
    SAMPLE = 4096,   /* non-zeros by which threads share the features */
    BLOCK = 256,     /* non-zeros of a document that are added at once */
    FIRST = 8, /* of these, prefetched while they are counted; add_products prefetches later ones */
    LINE = 8   /* integers of a cache line */
};

/* Probabilities of some documents in units: those above the cut, as lists or, where most are, as
 * whole rows of `classes`, which compilers make vectors of. */
typedef struct {
    int64_t documents; /* room for so many */
    uint32_t *whole;   /* (documents, classes) */
    int32_t *listed;   /* (documents, classes) numbers of classes, those kept first */
    int64_t *kept;     /* (documents) how many; -1: take the whole row */
    int64_t *borders;  /* (documents, threads - 1) where the next thread's features begin */
} units;

typedef struct {
    dcme_handle handle;
    dcme_statistics *statistics;
    const dcme_sparse_rows *documents;
    const units *units;
    const dcme_kernels *kernels;
    const double *log_p;  /* of the piece */
    double least;         /* log of the cut */
    int64_t begin, count; /* documents of the piece */
    int64_t first, last;  /* those of them whose probabilities this thread rounds */
    int32_t thread, threads;
    const int32_t *highest; /* (threads - 1) features of a thread are below */
} share;

/* The first place in begin .. end - 1 whose feature is at least f, or end. Without branches, which
 * could not be predicted. */
static int64_t place_of(const int32_t *features, int64_t begin, int64_t end, int32_t f) {
    int64_t left = end - begin;
    while (left > 1) {
        int64_t half = left / 2;
        begin += features[begin + half - 1] < f ? half : 0;
        left -= half;
    }
    return begin + (left == 1 && features[begin] < f);
}

/* Add n non-zeros to the counts; x gets their values in units. Returns how many have sums, which
 * come first, and *rows, theirs: the features themselves, or `own`. */
static int64_t add_counts(const dcme_statistics *t, const int32_t *features, const real *values,
                          int64_t n, const int32_t **rows, int32_t *own, uint32_t *x) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        x[i] = (uint32_t)(int32_t)(values[i] * DCME_UNIT + 0.5F); /* below 2^31: a vector's step */
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

/* Prefetch the sums of the first of some features. */
static void prefetch_sums(const dcme_statistics *t, const int32_t *features, int64_t n) {
    for (int64_t i = 0; i < n && i < FIRST; i++) {
        int64_t row = t->rows ? t->rows[features[i]] : features[i];
        const int64_t *sums = t->joint + (row < 0 ? 0 : row) * t->classes;
        for (int64_t c = 0; c < t->classes && c < FIRST * LINE; c += LINE)
            __builtin_prefetch(sums + c, 1);
    }
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
        if (s->statistics->joint)
            prefetch_sums(s->statistics, documents->features + from, n);
        n = add_counts(s->statistics, documents->features + from, documents->values + from, n,
                       &rows, own, x);
        if (s->statistics->joint)
            add_joint(s, d, rows, x, n);
    }
}

static void *add_share(void *argument) {
    share *s = argument;
    const int64_t *starts = s->documents->starts + s->begin, *borders = s->units->borders;
    int32_t own = s->thread, more = s->threads - 1;
    for (int64_t d = 0; d < s->count; d++)
        add_document(s, d, own > 0 ? borders[d * more + own - 1] : starts[d],
                     own < more ? borders[d * more + own] : starts[d + 1]);
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

/* Find where the threads' features begin in the row of one document. */
static void divide_row(const share *s, int64_t d) {
    const dcme_sparse_rows *rows = s->documents;
    int64_t from = rows->starts[s->begin + d], to = rows->starts[s->begin + d + 1];
    int32_t more = s->threads - 1;
    for (int32_t t = 0; t < more; t++)
        from = s->units->borders[d * more + t] = place_of(rows->features, from, to, s->highest[t]);
}

/* Round the probabilities of this thread's part of the piece, and divide its rows. */
static void *take_share(void *argument) {
    share *s = argument;
    int64_t classes = s->statistics->classes;
    for (int64_t d = s->first; d < s->last; d++) {
        if (s->log_p)
            take_document(s->units, classes, d, s->log_p + d * classes, s->least);
        divide_row(s, d);
    }
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

/* Features below which so many shares of the non-zeros of all documents lie, by a sample of them.
 */
static void part_features(int32_t *highest, int32_t threads, const dcme_sparse_rows *documents,
                          int64_t begin, int64_t count, int32_t *sample) {
    int64_t from = documents->starts[begin], total = documents->starts[begin + count] - from;
    int64_t n = total < SAMPLE ? total : SAMPLE;
    for (int64_t i = 0; i < n; i++)
        sample[i] = documents->features[from + total / n * i];
    qsort(sample, (size_t)n, sizeof *sample, ascending);
    for (int32_t t = 0; t + 1 < threads; t++)
        highest[t] = n ? sample[n * (t + 1) / threads] : 0;
}

static void run_pieces(share *shares, int32_t threads, int64_t begin, int64_t count,
                       const double *log_p, double cut) {
    dcme_statistics *statistics = shares->statistics;
    const units *u = shares->units;
    for (int64_t first = 0; first < count; first += u->documents) {
        int64_t n = count - first < u->documents ? count - first : u->documents;
        for (int32_t t = 0; t < threads; t++) {
            shares[t].begin = begin + first;
            shares[t].count = n;
            shares[t].first = n * t / threads;
            shares[t].last = n * (t + 1) / threads;
            shares[t].log_p = u->whole ? log_p + first * statistics->classes : NULL;
            shares[t].least = log(cut);
        }
        dcme_run_threads(take_share, shares, sizeof *shares, threads);
        if (u->whole)
            add_prior(u, statistics, n);
        dcme_run_threads(add_share, shares, sizeof *shares, threads);
    }
}

static dcme_status open_units(units *u, int64_t classes, int64_t count, int32_t threads) {
    int64_t room = CELLS / (classes + threads);
    room = room < LEAST ? LEAST : room > MOST ? MOST : room;
    u->documents = room < count ? room : count;
    u->borders = dcme_allocate(u->documents * threads, sizeof *u->borders);
    if (classes) {
        u->whole = dcme_allocate(u->documents * classes, sizeof *u->whole);
        u->listed = dcme_allocate(u->documents * classes, sizeof *u->listed);
        u->kept = dcme_allocate(u->documents, sizeof *u->kept);
    }
    int filled = !classes || (u->whole && u->listed && u->kept);
    return u->borders && filled ? DCME_OK : DCME_NO_MEMORY;
}

static dcme_status add_pieces(dcme_statistics *statistics, const dcme_sparse_rows *documents,
                              int64_t begin, int64_t count, const double *log_p, double cut,
                              int32_t threads) {
    units u = {0};
    share *shares = dcme_allocate_zeros(threads, sizeof *shares);
    int32_t *highest = dcme_allocate(threads, sizeof *highest);
    int32_t *sample = dcme_allocate(SAMPLE, sizeof *sample);
    dcme_status status =
        open_units(&u, statistics->joint ? statistics->classes : 0, count, threads);
    if (status == DCME_OK && shares && sample && highest) {
        for (int32_t t = 0; t < threads; t++)
            shares[t] = (share){.statistics = statistics,
                                .documents = documents,
                                .units = &u,
                                .kernels = dcme_kernels_choose(NULL),
                                .thread = t,
                                .threads = threads,
                                .highest = highest};
        if (threads > 1)
            part_features(highest, threads, documents, begin, count, sample);
        run_pieces(shares, threads, begin, count, log_p, cut);
    } else {
        status = DCME_NO_MEMORY;
    }
    free(u.whole), free(u.listed), free(u.kept), free(u.borders);
    free(shares), free(highest), free(sample);
    return status;
}

dcme_status dcme_add_statistics(dcme_statistics *statistics, const dcme_sparse_rows *documents,
                                int64_t begin, int64_t count, const double *log_probabilities,
                                double cut, int32_t threads, dcme_error *error) {
    if (count > 0 &&
        add_pieces(statistics, documents, begin, count, log_probabilities, cut, threads) != DCME_OK)
        return dcme_no_memory(error, LEAST * statistics->classes * 8,
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
