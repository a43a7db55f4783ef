/* Runs word and classifier training: epochs, threads, work units, progress, stopping, divergence,
 * and the state of an unfinished run.
 *
 * The caller divides an epoch into numbered units; a unit is a range of positions (of tokens or of
 * instances). Threads take units from one counter and train on them step by step. Rows are written
 * without locks: an update may be lost if two threads write the same row, which costs less than
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
    int64_t subsampled;      /* frequent tokens that were dropped */
    int64_t without_context; /* tokens alone in their sentence */
    dcme_loss loss;
    double rate; /* learning rate of the last step */
} dcme_done;

/* Sums over all threads. */
typedef struct {
    int64_t trained, subsampled, without_context;
    double loss;    /* sum over the sampled instances */
    int64_t losses; /* number of sampled instances */
    double rate;    /* learning rate at the furthest position */
} dcme_progress;

typedef struct dcme_thread dcme_thread;

/* Callbacks for one kind of training. All threads share a job; each has its own worker. flush,
 * begin_epoch and end_epoch may be NULL. */
typedef struct {
    /* Initialize a worker, which is worker_size bytes of zeros. */
    dcme_status (*open)(void *job, void *worker, dcme_thread *thread, dcme_error *error);
    int64_t worker_size;

    /* Return the positions of a unit that the worker is about to train on. */
    void (*start_unit)(void *worker, int64_t unit, int64_t *begin, int64_t *end);
    /* Train on some of these positions, and return the next one. */
    int64_t (*learn)(void *worker, int64_t position, int64_t end);

    void (*flush)(void *worker);                   /* the thread stops and may be resumed */
    void (*begin_epoch)(void *job, int64_t epoch); /* an epoch begins or is resumed */
    void (*end_epoch)(void *job, int64_t epoch);   /* an epoch is complete */
} dcme_work;

typedef struct dcme_engine dcme_engine;

struct dcme_thread {
    _Alignas(DCME_LINE) dcme_handle handle; /* no two threads share a cache line */
    dcme_engine *engine;
    void *worker;
    dcme_arena arena;      /* the worker's memory */
    int64_t position, end; /* the remainder of the current unit */
    dcme_done done;
    /* published after each step; no other thread writes to these cache lines */
    _Alignas(DCME_LINE) _Atomic int64_t trained;
    _Atomic int64_t subsampled, without_context, losses;
    _Atomic double loss, rate;
};

/* A table of parameters. Rows are numbered consecutively across all tables. */
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
    int64_t units;   /* number of units per epoch */
    int64_t longest; /* maximum positions per unit */
    double worst;    /* mean loss of an untrained model; 0 if unknown */
    dcme_schedule schedule;
    dcme_table tables[DCME_TABLES]; /* unused tables have no rows */
    const char *row_name;           /* name of a row in messages, such as "vector" */
    dcme_arena arena;               /* the job's memory */
    /* filled by the engine */
    int64_t epoch;                            /* current epoch, or -1 */
    dcme_thread *threads;                     /* (thread_count) */
    _Alignas(DCME_LINE) _Atomic int64_t next; /* the next unit for a thread to take */
    _Alignas(DCME_LINE) _Atomic int stop;     /* read once per step */
    _Atomic int diverged;
};

/* Create the threads, then their workers. Close the engine even if this fails, to free the arenas.
 */
dcme_status dcme_engine_open(dcme_engine *engine, dcme_error *error);
dcme_status dcme_engine_open_workers(dcme_engine *engine, dcme_error *error);
void dcme_engine_close(dcme_engine *engine);

/* Train one epoch, 0 <= epoch < epochs of the schedule, or resume the stopped epoch. Returns
 * DCME_STOPPED after dcme_engine_stop(), at the end of each thread's step; DCME_DIVERGED if a
 * sampled loss is not finite, or a row at the end of the epoch. */
dcme_status dcme_engine_epoch(dcme_engine *engine, int64_t epoch, dcme_error *error);

/* Return the sums over all threads since the engine was opened; each thread may lag by a step. */
void dcme_engine_progress(const dcme_engine *engine, dcme_progress *progress);

/* Stop the epoch. If called before it begins, the epoch ends at once. */
void dcme_engine_stop(dcme_engine *engine);

/* Return the epoch that was stopped before its end, or -1. */
int64_t dcme_engine_unfinished(const dcme_engine *engine);

/* List all state of a run other than options, data and tables. If this state and the tables are
 * restored into a run that was opened in the same way, that run continues identically. Do not call
 * while an epoch runs.
 */
void dcme_engine_state(const dcme_engine *engine, dcme_state *state);

/* After the state was restored, check its positions and numbers, and update the progress. */
dcme_status dcme_engine_check_state(dcme_engine *engine, dcme_error *error);

/* Whether the rows begin .. end - 1 of the tables are finite. */
int dcme_engine_is_finite(const dcme_engine *engine, int64_t begin, int64_t end);
