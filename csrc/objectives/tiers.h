/* What each cluster of the tiered DCME expects of the items, and its offline updates; see dcme.c.
 *
 * Legend: e_zj expected weight of item j in cluster z, b_zj its bias, nu virtual draws.
 */
#ifndef DCME_TIERS_H
#define DCME_TIERS_H

#include "objectives/clusters.h"
#include "train/alias.h"

/* Virtual draws nu; more make the weights closer to those of a softmax. */
#define DCME_NU ((real)20)

/* What an item is to a cluster. */
typedef struct {
    real bias;  /* b_zj */
    real sigma; /* sigma(v_j . mean - b_zj), so that e_zj = nu alpha_zj sigma */
} dcme_item;

/* What a cluster has beside its centre. */
typedef struct {
    dcme_item *items;  /* (N) */
    int32_t *head;     /* (heads) heaviest items, the top ones first */
    uint8_t *is_head;  /* (N) */
    dcme_alias *noise; /* (N) alpha_z outside the top items */
    real mass;         /* of alpha_z outside the top items */
    real *mean;        /* (stride) mean context when the centre was made */
    real *u_head;      /* (stride) sum of e_zj v_j over the head, without the top items */
    real *u_tail;      /* (stride) and over the tail */
    real e_head;       /* sum of e_zj over the head, without the top items */
    real e_tail;       /* and over the tail */
    real u_mean;       /* (u_head + u_tail) . mean */
} dcme_tiers;

typedef struct {
    dcme_clusters clusters;
    dcme_tiers *tiers; /* (K) */
    real *unigram;     /* (N) */
    int64_t heads;     /* items in a head, the top ones included */
    real log_items;    /* log N */
} dcme_tiered;

/* Memory of one thread for making centres. */
typedef struct {
    double *noise; /* (N) weights of a new alias table */
    real *scratch; /* for dcme_cluster_move() and new sums u */
} dcme_workshop;

dcme_status dcme_workshop_open(dcme_workshop *workshop, const dcme_model *model);
void dcme_workshop_close(dcme_workshop *workshop);

/* `tiered` is all zeros before; close it even if this fails. */
dcme_status dcme_tiered_open(dcme_tiered *tiered, const dcme_model *model,
                             const dcme_train_options *options);
void dcme_tiered_close(dcme_tiered *tiered);

/* List what changes in the clusters and their tiers. */
void dcme_tiered_state(dcme_tiered *tiered, dcme_state *state);

/* The head's rows, or the tail's, take what the pending instances owe them; then the head's
 * weights and u_head follow the rows, and `pending` is cleared. */
void dcme_tiered_step_head(dcme_tiered *tiered, int64_t k, dcme_pending *pending, real *scratch);
void dcme_tiered_step_tail(dcme_tiered *tiered, int64_t k, const dcme_pending *pending);

/* A new centre at the mean of the pending contexts, and all that follows from it. */
void dcme_tiered_move(dcme_tiered *tiered, int64_t k, dcme_pending *pending,
                      dcme_workshop *workshop);

#endif
