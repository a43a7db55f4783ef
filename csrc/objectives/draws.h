/* The output rows against which a target is scored, each with a label, 1 or 0. An objective is a
 * function that draws these rows a few targets ahead, so that they are already in the cache when
 * they are needed; ../words/hot.c scores and updates them in the same way for all objectives.
 * Blocks (blocks.h) and DCME (dcme.h) have their own training step and draw nothing. */
#pragma once

#include "objectives/noise.h"
#include "objectives/row_replicas.h"

/* The maximum number of targets with drawn rows that have not been trained on yet, and the length
 * of the queue, which includes the current target and is a power of two. */
enum { DCME_AHEAD = 2, DCME_DRAWS = 4 };

/* A code is twice the index of a row, plus its label. */
typedef struct {
    int64_t count;
    uint32_t *codes;
} dcme_draw;

static inline int32_t dcme_row_of(uint32_t code) { return (int32_t)(code >> 1); }
static inline uint32_t dcme_label_of(uint32_t code) { return code & 1; }

/* A Huffman tree: the path of word i has the codes begin[i] .. begin[i + 1] - 1. */
typedef struct {
    int64_t longest; /* number of nodes on the longest path */
    int64_t *begin;  /* (items + 1) */
    uint32_t *codes; /* for each node from the root, its code, whose label is 1 if the path takes
                        the more probable child */
} dcme_tree;

/* Defined in hierarchical_softmax.c: build the tree of at most 2^31 - 1 words from their descending
 * counts.
 */
void dcme_tree_open(dcme_tree *tree, dcme_arena *arena, const int64_t *counts, int64_t items);

/* One thread's draws. */
typedef struct dcme_draws {
    const dcme_model *model;
    const dcme_noise *noise; /* shared by the threads, as is the tree */
    const dcme_tree *tree;
    void (*draw)(struct dcme_draws *draws, int32_t target);
    int32_t negative; /* number of samples per target */
    real weight;      /* weight of each sample */
    dcme_row_replicas replicas;
    uint64_t stream;
    uint64_t next;          /* random number of the next sample, whose cell has been prefetched */
    int32_t *pool;          /* words most recently drawn from the noise */
    uint32_t made, waiting; /* draw n is queue[n % DCME_DRAWS] */
    dcme_draw queue[DCME_DRAWS];
} dcme_draws;

/* All fields except the noise and the tree must be zeros. */
void dcme_draws_open(dcme_draws *draws, dcme_arena *arena, const dcme_model *model,
                     const dcme_train_options *options);

/* Select the stream of random numbers for the next draws. The queue must be empty. */
void dcme_draws_seed(dcme_draws *draws, uint64_t stream);

/* The next draw, to be filled; and the oldest draw. */
static inline dcme_draw *dcme_draws_push(dcme_draws *draws) {
    draws->waiting++;
    return &draws->queue[draws->made++ % DCME_DRAWS];
}

static inline const dcme_draw *dcme_draws_pop(dcme_draws *draws) {
    return &draws->queue[(draws->made - draws->waiting--) % DCME_DRAWS];
}

/* Prefetch the memory that training on a word needs. */
static inline void dcme_draws_fetch(const dcme_draws *draws, int32_t word) {
    if (draws->noise->offset)
        __builtin_prefetch(&draws->noise->offset[word]);
    dcme_prefetch(dcme_replica_row(&draws->replicas, word), draws->model->stride);
}

/* The objectives; see their files. */
void dcme_draw_pooled(dcme_draws *draws, int32_t target);
void dcme_draw_fresh(dcme_draws *draws, int32_t target);
void dcme_draw_path(dcme_draws *draws, int32_t target);

/* Defined in negative_sampling.c: the noise memory of one thread, and its initialization. */
void dcme_draws_open_noise(dcme_draws *draws, dcme_arena *arena);
void dcme_draws_seed_noise(dcme_draws *draws);
