/* Sums of probability times feature over documents, as integers.
 *
 * A document's probabilities become a list of the classes that it has more than `cut` of, in units.
 * Where there is much to add to each sum, threads share the documents: each has sums of its own,
 * and these are added in the end. Elsewhere those would cost more than they save, in memory too, so
 * the threads share the features: each goes through all documents, and no two write to one place.
 */
#include "fused/fused.h"
#include "platform.h"

#include <math.h>

enum {
    CELLS = 1 << 18, /* probabilities that are held at once, */
    LEAST = 256,     /* of so many documents at least, ... */
    MOST = 16384,    /* ... and at most */
    REPAID = 8,      /* non-zeros for each row of sums that a thread has of its own, at least */
    OWN = 1 << 23,   /* integers in such sums of all threads, at most: 64 MB */
    GROUP = 8,     /* neighboring features that a thread has, so that a cache line has one owner */
    CHECKERS = 16, /* threads that check the rows, at most */
    AT_ONCE = 256, /* non-zeros of a document that are added at once */
    FIRST = 8, /* of these, prefetched while they are counted; add_products prefetches later ones */
    LINE = 8   /* integers of a cache line */
};

/* Probabilities of some documents in units: those above the cut, as lists or, where most are, as
 * whole rows of `classes`, which compilers make vectors of. */
typedef struct {
    uint32_t *whole; /* (documents, classes) */
    int32_t *listed; /* (documents, classes) numbers of classes, those kept first */
    int64_t *kept;   /* (documents) how many; -1: take the whole row */
} units;

typedef struct {
    dcme_handle handle;
    dcme_statistics sums; /* the caller's, or this thread's own */
    const dcme_sparse_rows *documents;
    const double *log_p;  /* of the piece */
    double least;         /* log of the cut */
    int64_t begin, count; /* documents of the piece */
    int64_t first, last;  /* the documents of this thread */
    int32_t thread, threads;
    int32_t owners; /* threads that share the features, each the groups of one remainder; or 1 */
    units units;    /* of the piece */
} share;

/* Non-zeros of a document: features, which are rows of sums, and values in units. */
typedef struct {
    const int32_t *rows; /* all of the document's features, or `own` */
    int64_t count;
    int32_t own[AT_ONCE];
    uint32_t x[AT_ONCE];
} part;

/* Keep the non-zeros, of n, whose sums this thread has; returns how many. Without branches, which
 * could not be predicted. */
static int64_t keep_own(const share *s, const int32_t *features, int64_t n, part *p) {
    int32_t owner = s->thread % s->owners;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        p->own[kept] = features[i];
        p->x[kept] = p->x[i];
        kept += features[i] / GROUP % s->owners == owner;
    }
    return kept;
}

static void add_values(int64_t *restrict counts, const int32_t *rows, const uint32_t *x,
                       int64_t n) {
    for (int64_t i = 0; i < n; i++)
        counts[rows[i]] += x[i];
}

/* Take n non-zeros, and add them to the counts. */
static void add_counts(const share *s, const int32_t *features, const real *values, int64_t n,
                       part *p) {
    int some = s->owners > 1;
    for (int64_t i = 0; i < n; i++)
        p->x[i] = (uint32_t)(int32_t)(values[i] * DCME_UNIT + 0.5F); /* below 2^31: vectors */
    n = some ? keep_own(s, features, n, p) : n;
    p->rows = some ? p->own : features;
    p->count = n;
    add_values(s->sums.counts, p->rows, p->x, n);
}

/* Prefetch the sums of the first of some features. */
static void prefetch_sums(const dcme_statistics *t, const int32_t *features, int64_t n) {
    for (int64_t i = 0; i < n && i < FIRST; i++) {
        const int64_t *sums = t->joint + features[i] * t->classes;
        for (int64_t c = 0; c < t->classes && c < FIRST * LINE; c += LINE)
            __builtin_prefetch(sums + c, 1);
    }
}

/* Add some non-zeros of document d of the units. */
static void add_joint(const share *s, int64_t d, const part *n) {
    const dcme_statistics *t = &s->sums;
    const uint32_t *p = s->units.whole + d * t->classes;
    const int32_t *list = s->units.listed + d * t->classes;
    int64_t kept = s->units.kept[d];
    if (kept < 0)
        t->kernels->add_products(t->joint, n->rows, n->x, n->count, p, t->classes);
    for (int64_t i = 0; kept > 0 && i < n->count; i++) {
        int64_t *restrict sums = t->joint + n->rows[i] * t->classes;
        for (int64_t k = 0; k < kept; k++)
            sums[list[k]] += (uint64_t)n->x[i] * p[list[k]];
    }
}

/* Add a document, whose probabilities are number d of the units. */
static void add_document(const share *s, int64_t document, int64_t d) {
    int64_t from = s->documents->starts[document], to = s->documents->starts[document + 1];
    part p;
    for (; from < to; from += AT_ONCE) {
        const int32_t *features = s->documents->features + from;
        int64_t n = dcme_min(to - from, AT_ONCE);
        if (s->owners == 1)
            prefetch_sums(&s->sums, features, n);
        add_counts(s, features, s->documents->values + from, n, &p);
        add_joint(s, d, &p);
    }
}

/* Round the probabilities of a document. */
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

/* Add the piece's probabilities of this thread's part of the classes. */
static void add_prior(const share *s) {
    int64_t classes = s->sums.classes, begin = classes * s->thread / s->threads;
    int64_t end = classes * (s->thread + 1) / s->threads;
    for (int64_t d = 0; d < s->count; d++)
        for (int64_t c = begin; c < end; c++)
            s->sums.prior[c] += s->units.whole[d * classes + c];
}

static void open_units(units *u, dcme_arena *arena, int64_t classes, int64_t documents) {
    DCME_TAKE_UNSET(arena, u->whole, documents * classes);
    DCME_TAKE_UNSET(arena, u->listed, documents * classes);
    DCME_TAKE_UNSET(arena, u->kept, documents);
}

/* ---- threads ---- */

/* Round the probabilities of this thread's part of the piece. */
static void *take_documents(void *argument) {
    share *s = argument;
    for (int64_t d = s->first; d < s->last; d++)
        take_document(&s->units, s->sums.classes, d, s->log_p + d * s->sums.classes, s->least);
    return NULL;
}

/* Add the documents of this thread, or of all the features of this thread. */
static void *add_documents(void *argument) {
    share *s = argument;
    int64_t first = s->owners > 1 ? 0 : s->first, last = s->owners > 1 ? s->count : s->last;
    add_prior(s);
    for (int64_t d = first; d < last; d++)
        add_document(s, s->begin + d, d);
    return NULL;
}

static void add_numbers(int64_t *restrict sums, const int64_t *restrict own, int64_t begin,
                        int64_t end) {
    for (int64_t i = begin; i < end; i++)
        sums[i] += own[i];
}

/* Add this thread's part of the sums of all threads to the caller's. */
static void *merge_sums(void *argument) {
    const share *s = argument, *shares = s - s->thread;
    const dcme_statistics *all = &shares->sums;
    int64_t cells = all->features * all->classes, t = s->thread, threads = s->threads;
    for (int64_t i = 1; i < threads; i++) {
        add_numbers(all->joint, shares[i].sums.joint, cells * t / threads,
                    cells * (t + 1) / threads);
        add_numbers(all->counts, shares[i].sums.counts, all->features * t / threads,
                    all->features * (t + 1) / threads);
    }
    return NULL;
}

/* The first document by which so much is to be done: a document counts as one non-zero more. */
static int64_t document_after(const int64_t *starts, int64_t count, int64_t work) {
    int64_t low = 0;
    while (low < count) {
        int64_t middle = low + (count - low) / 2;
        if (starts[middle] - starts[0] + middle < work)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* Add the piece of the `count` documents from `done` on. */
static void add_piece(share *shares, const share *given, int64_t done, int64_t count) {
    const int64_t *starts = given->documents->starts + done;
    int64_t work = starts[count] - starts[0] + count, threads = given->threads;
    for (int64_t t = 0; t < threads; t++) {
        share *s = &shares[t];
        s->begin = done, s->count = count;
        s->log_p = given->log_p + done * given->sums.classes;
        s->first = t > 0 ? shares[t - 1].last : 0;
        s->last = t + 1 < threads ? document_after(starts, count, work / threads * (t + 1)) : count;
    }
    dcme_run_threads(take_documents, shares, sizeof *shares, given->threads);
    dcme_run_threads(add_documents, shares, sizeof *shares, given->threads);
}

/* Let threads share the features, or the documents: then with sums of its own for each but the
 * first. If there is not enough memory nothing is added. */
static dcme_status add_shares(const share *given, int apart) {
    int64_t classes = given->sums.classes;
    int64_t room = dcme_min(dcme_max(CELLS / (classes + 1), LEAST), MOST);
    dcme_arena arena = {0};
    share *shares = dcme_take(&arena, given->threads, sizeof *shares);
    units units = {0};
    open_units(&units, &arena, classes, dcme_min(room, given->count));
    for (int32_t t = 0; shares && t < given->threads; t++) {
        share *s = &shares[t];
        *s = *given;
        s->thread = t;
        s->units = units;
        s->owners = apart ? 1 : given->threads;
        if (apart && t > 0) {
            DCME_TAKE(&arena, s->sums.counts, s->sums.features);
            DCME_TAKE(&arena, s->sums.joint, s->sums.features * classes);
        }
    }
    for (int64_t done = 0; arena.status == DCME_OK && done < given->count; done += room)
        add_piece(shares, given, done, dcme_min(given->count - done, room));
    if (arena.status == DCME_OK && apart && given->threads > 1)
        dcme_run_threads(merge_sums, shares, sizeof *shares, given->threads);
    dcme_status status = arena.status;
    dcme_arena_close(&arena);
    return status;
}

/* Whether sums of each thread's own are worth their merging. */
static int is_repaid(const share *s) {
    const int64_t values = s->documents->starts[s->count], threads = s->threads;
    int64_t features = s->sums.features;
    return threads == 1 || (features <= values / threads / REPAID &&
                            features <= OWN / (s->sums.classes + 1) / threads);
}

dcme_status dcme_add_statistics(dcme_statistics *statistics, const dcme_sparse_rows *documents,
                                const double *log_probabilities, double cut, int32_t threads,
                                dcme_error *error) {
    share given = {.sums = *statistics,
                   .documents = documents,
                   .log_p = log_probabilities,
                   .least = log(cut),
                   .count = documents->count,
                   .threads = threads};
    if (given.count <= 0 || (is_repaid(&given) && add_shares(&given, 1) == DCME_OK) ||
        add_shares(&given, 0) == DCME_OK)
        return DCME_OK;
    return dcme_no_memory(error, LEAST * statistics->classes * 8,
                          "the probabilities of some documents", "give fewer classes");
}

/* ---- rows that can be added ---- */

typedef struct {
    dcme_handle handle;
    const dcme_sparse_rows *documents;
    int64_t features, first, last; /* documents first .. last - 1 */
    real largest;
    int64_t found;
} checker;

static int64_t check_documents(const checker *c) {
    int bad = 0;
    const int32_t *f = c->documents->features;
    const real *v = c->documents->values;
    for (int64_t i = c->documents->starts[c->first]; i < c->documents->starts[c->last]; i++)
        bad |= !((v[i] >= 0) & (v[i] < c->largest));
    if (bad)
        return -2;
    for (int64_t d = c->first; d < c->last; d++) {
        int64_t begin = c->documents->starts[d], end = c->documents->starts[d + 1];
        if (begin > end)
            return d;
        for (int64_t i = begin + 1; i < end; i++)
            bad |= f[i] <= f[i - 1];
        if (begin < end && (bad || f[begin] < 0 || f[end - 1] >= c->features))
            return d;
    }
    return -1;
}

static void *check_share(void *argument) {
    checker *c = argument;
    c->found = check_documents(c);
    return NULL;
}

int64_t dcme_check_statistics(const dcme_sparse_rows *documents, int64_t features, float largest,
                              int32_t threads) {
    checker checkers[CHECKERS];
    threads = (int32_t)dcme_min(dcme_max(threads, 1), CHECKERS);
    for (int32_t t = 0; t < threads; t++)
        checkers[t] = (checker){.documents = documents,
                                .features = features,
                                .first = documents->count * t / threads,
                                .last = documents->count * (t + 1) / threads,
                                .largest = (real)largest};
    dcme_run_threads(check_share, checkers, sizeof *checkers, threads);
    int64_t found = -1;
    for (int32_t t = threads - 1; t >= 0; t--)
        if (checkers[t].found != -1 && found != -2)
            found = checkers[t].found;
    return found;
}
