/* Runs the training of words and of classes: epochs, threads, work units, progress, stopping,
 * divergence, the state of an unfinished run.
 *
 * An epoch is a number of units, cut and numbered by the caller; a unit is a range of positions (of
 * tokens or of instances). Threads take units from one counter and learn them step by step. Rows
 * are written without locks: an update may be lost where two threads meet, which costs less than
 * waiting (Recht et al. 2011).
 *
 * dcme_engine_epoch() runs the threads and returns when the epoch is over; meanwhile another thread
 * may call dcme_engine_progress(), dcme_engine_is_finite() and dcme_engine_stop().
 */
#pragma once

#include "common/arena.h"
#include "common/loss.h"
#include "dcme.h"
#include "engine/schedule.h"
#include "kernels/kernels.h"
#include "platform.h"

#include <stdatomic.h>

/* Counts of one thread. */
typedef struct {
    int64_t trained;         /* tokens that were targets, or instances */
    int64_t subsampled;      /* tokens dropped because they are frequent */
    int64_t without_context; /* tokens alone in their sentence */
    dcme_loss loss;
    double rate; /* learning rate of the last step */
} dcme_done;

/* Sums over all threads. */
typedef struct {
    int64_t trained, subsampled, without_context;
    double loss;    /* sum over the sampled instances */
    int64_t losses; /* number of sampled instances */
    double rate;    /* at the furthest position */
} dcme_progress;

typedef struct dcme_thread dcme_thread;

/* Callbacks of a kind of training. A job is shared by threads, a worker is of one thread. flush,
 * begin and end may be NULL. */
typedef struct {
    /* Make a worker, worker_size bytes of zeros. */
    dcme_status (*open)(void *job, void *worker, dcme_thread *thread, dcme_error *error);
    int64_t worker_size;

    /* The positions of a unit, which the worker is about to learn. */
    void (*start_unit)(void *worker, int64_t unit, int64_t *begin, int64_t *end);
    /* Learn some of them, and return the position after. */
    int64_t (*learn)(void *worker, int64_t position, int64_t end);

    void (*flush)(void *worker);                   /* the thread stops and may be resumed */
    void (*begin_epoch)(void *job, int64_t epoch); /* an epoch begins or is resumed */
    void (*end_epoch)(void *job, int64_t epoch);   /* an epoch is complete */
} dcme_work;

typedef struct dcme_engine dcme_engine;

struct dcme_thread {
    _Alignas(DCME_LINE) dcme_handle handle; /* no other thread in its cache lines */
    dcme_engine *engine;
    void *worker;
    dcme_arena arena;      /* the worker's memory */
    int64_t position, end; /* the remainder of the current unit */
    dcme_done done;
    /* published once a step; no other thread writes to these cache lines */
    _Alignas(DCME_LINE) _Atomic int64_t trained;
    _Atomic int64_t subsampled, without_context, losses;
    _Atomic double loss, rate;
};

/* A table that is learned; rows of all tables are numbered one after the other. */
typedef struct {
    const real *rows;
    int64_t count, stride;
} dcme_table;

enum { DCME_TABLES = 4 };

struct dcme_engine {
    /* filled by the caller */
    const dcme_work *work;
    void *job;
    int32_t thread_count;
    int64_t units;   /* of an epoch */
    int64_t longest; /* positions of a unit, at most */
    double worst;    /* mean loss of a run that learns nothing; 0 if none is known */
    dcme_schedule schedule;
    dcme_table tables[DCME_TABLES]; /* those that are not used have no rows */
    const char *row_name;           /* for messages: "vector" */
    dcme_arena arena;               /* the job's memory */
    /* the engine's */
    int64_t epoch;                            /* under way, or -1 */
    dcme_thread *threads;                     /* (thread_count) */
    _Alignas(DCME_LINE) _Atomic int64_t next; /* unit, taken by a thread */
    _Alignas(DCME_LINE) _Atomic int stop;     /* read once a step */
    _Atomic int diverged;
};

/* Make the threads, then their workers. Close the engine even if this fails: it frees the arenas.
 */
dcme_status dcme_engine_open(dcme_engine *engine, dcme_error *error);
dcme_status dcme_engine_open_workers(dcme_engine *engine, dcme_error *error);
void dcme_engine_close(dcme_engine *engine);

/* Train one epoch, 0 <= epoch < epochs of the schedule, or resume the one that was stopped.
 * DCME_STOPPED after dcme_engine_stop(), at the end of each thread's step; DCME_DIVERGED if a loss
 * that was sampled, or at the end a row, is not finite. */
dcme_status dcme_engine_epoch(dcme_engine *engine, int64_t epoch, dcme_error *error);

/* Sums over the threads since the engine was opened; may lag by a step. */
void dcme_engine_progress(const dcme_engine *engine, dcme_progress *progress);

/* May come before the epoch has begun, which then ends at once. */
void dcme_engine_stop(dcme_engine *engine);

/* The epoch that was stopped and not finished, or -1. */
int64_t dcme_engine_unfinished(const dcme_engine *engine);

/* List all that a run depends on but its options, its data and the tables: put back into a run that
 * was opened equally, with the tables, it continues identically. Not while an epoch runs.
 */
void dcme_engine_state(const dcme_engine *engine, dcme_state *state);

/* After the state was put back: check its positions and numbers, and publish what was done. */
dcme_status dcme_engine_check_state(dcme_engine *engine, dcme_error *error);

/* Whether the rows begin .. end - 1 of the tables are finite. */
int dcme_engine_is_finite(const dcme_engine *engine, int64_t begin, int64_t end);
