/* One step of DCME's Algorithm 1, see dcme.c. */
#pragma once

#include "common/loss.h"
#include "objectives/deferred_updates.h"

/* Memory of one thread. */
typedef struct {
    dcme_clusters *clusters; /* which the threads share */
    dcme_cluster_sums *sums; /* (K) */
    dcme_deferred *deferred; /* (K), or NULL for a single thread, which moves top items at once */
    real **rows;             /* (Q + 1) that move by an instance's h, */
    real *weights;           /* (Q + 1) times these */
    real *scores;            /* (K) */
    dcme_scratch scratch;
} dcme_paper;

/* `me` is all zeros before. */
void dcme_paper_open(dcme_paper *me, dcme_arena *arena, dcme_clusters *clusters, int32_t threads);

/* Learn the target of context h, and write the direction in which h should move. */
void dcme_paper_step(dcme_paper *me, int32_t target, real rate, const real *h, real *gradient,
                     dcme_loss *loss);
