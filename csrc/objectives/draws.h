/* What a target is scored against: output rows, each with a label, 1 or 0.
 *
 * An objective is a function that draws them, some targets ahead, so that rows are on their way
 * from memory when they are needed; ../words/hot.c scores and moves them, the same for all. Blocks
 * (blocks.h) and DCME (dcme.h) have a step of their own and draw nothing.
 */
#pragma once

#include "objectives/noise.h"
#include "objectives/row_replicas.h"

/* Targets that may be drawn for and not be learned yet; and room for them and the one being
 * learned, a power of two. */
enum { DCME_AHEAD = 2, DCME_DRAWS = 4 };

/* A code is twice the number of a row, plus its label. */
typedef struct {
    int64_t count;
    uint32_t *codes;
} dcme_draw;

static inline int32_t dcme_row_of(uint32_t code) { return (int32_t)(code >> 1); }
static inline uint32_t dcme_label_of(uint32_t code) { return code & 1; }

/* A Huffman tree: the path of word i is the codes from begin[i] to begin[i + 1] - 1. */
typedef struct {
    int64_t longest; /* nodes of the longest path */
    int64_t *begin;  /* (items + 1) */
    uint32_t *codes; /* from the root: a node, and 1 if its more probable child follows */
} dcme_tree;

/* hierarchical_softmax.c: the tree of at most 2^31 - 1 words by their counts, in descending order
 */
void dcme_tree_open(dcme_tree *tree, dcme_arena *arena, const int64_t *counts, int64_t items);

/* The draws of one thread. */
typedef struct dcme_draws {
    const dcme_model *model;
    const dcme_noise *noise; /* which the threads share, like the tree */
    const dcme_tree *tree;
    void (*draw)(struct dcme_draws *draws, int32_t target);
    int32_t negative; /* samples of a target */
    real weight;      /* of each of them */
    dcme_row_replicas replicas;
    uint64_t stream;
    uint64_t next;          /* random number of the next sample, whose cell has been asked for */
    int32_t *pool;          /* words drawn from the noise last */
    uint32_t made, waiting; /* draw n is queue[n % DCME_DRAWS] */
    dcme_draw queue[DCME_DRAWS];
} dcme_draws;

/* All but the noise and the tree is zeros before. */
void dcme_draws_open(dcme_draws *draws, dcme_arena *arena, const dcme_model *model,
                     const dcme_train_options *options);

/* Name the stream of random numbers for what follows. No draw waits then. */
void dcme_draws_seed(dcme_draws *draws, uint64_t stream);

/* The next draw, to be filled; and the oldest one. */
static inline dcme_draw *dcme_draws_push(dcme_draws *draws) {
    draws->waiting++;
    return &draws->queue[draws->made++ % DCME_DRAWS];
}

static inline const dcme_draw *dcme_draws_pop(dcme_draws *draws) {
    return &draws->queue[(draws->made - draws->waiting--) % DCME_DRAWS];
}

/* What is needed of a word is on its way from memory. */
static inline void dcme_draws_fetch(const dcme_draws *draws, int32_t word) {
    if (draws->noise->offset)
        __builtin_prefetch(&draws->noise->offset[word]);
    dcme_prefetch(dcme_replica_row(&draws->replicas, word), draws->model->stride);
}

/* The objectives; see their files. */
void dcme_draw_pooled(dcme_draws *draws, int32_t target);
void dcme_draw_fresh(dcme_draws *draws, int32_t target);
void dcme_draw_path(dcme_draws *draws, int32_t target);

/* negative_sampling.c: what a thread has of the noise, and what it starts with */
void dcme_draws_open_noise(dcme_draws *draws, dcme_arena *arena);
void dcme_draws_seed_noise(dcme_draws *draws);
