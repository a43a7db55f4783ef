/* One training step for a block of targets that share their samples; see blocks.c. */
#pragma once

#include "common/loss.h"
#include "objectives/draws.h"

enum { DCME_BLOCK_MAX = 16 }; /* maximum number of targets per block */

/* Memory of one thread. */
typedef struct {
    dcme_draws *draws;
    const dcme_model *model;
    const dcme_noise *noise;
    int64_t samples;   /* S */
    real weight;       /* nu / S */
    uint64_t *randoms; /* (S) for the samples two blocks ahead; their cells are prefetched */
    int32_t *upcoming; /* (S) the next block's samples */
    int32_t *words;    /* (S) */
    real **rows;       /* (S) */
    real *memory;      /* (S + 2, DCME_BLOCK_MAX) an unused row, then `scores` */
    real *weights;     /* (S + 1, DCME_BLOCK_MAX) scores, then weights; targets come last */
    int32_t targets[DCME_BLOCK_MAX];
    real rates[DCME_BLOCK_MAX]; /* 0 beyond the last target of a block */
    real *target_rows[DCME_BLOCK_MAX], *contexts[DCME_BLOCK_MAX], *gradients[DCME_BLOCK_MAX];
} dcme_blocks;

/* `me` must be all zeros. The contexts h of the targets have the shape (DCME_BLOCK_MAX, stride). So
 * does `gradients`, to which a step writes the directions in which the contexts should move. */
void dcme_blocks_open(dcme_blocks *me, dcme_arena *arena, dcme_draws *draws, real *h,
                      real *gradients);

/* Draw the samples of the first block. */
void dcme_blocks_seed(dcme_blocks *me);

void dcme_blocks_step(dcme_blocks *me, const int32_t *targets, int64_t count, real rate,
                      dcme_loss *loss);
