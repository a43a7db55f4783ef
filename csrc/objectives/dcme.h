/* One training step of DCME's Algorithm 1; see dcme.c. */
#pragma once

#include "common/loss.h"
#include "objectives/deferred_updates.h"

/* Memory of one thread. */
typedef struct {
    dcme_clusters *clusters; /* shared by the threads */
    dcme_cluster_sums *sums; /* (K) */
    dcme_deferred *deferred; /* (K), or NULL for a single thread, which updates top items at once */
    real **rows;             /* (Q + 1) rows that move along the h of an instance, */
    real *weights;           /* (Q + 1) and their weights */
    real *scores;            /* (K) */
    dcme_scratch scratch;
} dcme_paper;

/* `me` must be all zeros. */
void dcme_paper_open(dcme_paper *me, dcme_arena *arena, dcme_clusters *clusters, int32_t threads);

/* Train on the target of context h, and write the direction in which h should move. */
void dcme_paper_step(dcme_paper *me, int32_t target, real rate, const real *h, real *gradient,
                     dcme_loss *loss);
