/* Dual clusters whose centers are distributions over neighboring classes; see class_dcme.c.
 *
 * Cluster k has the classes of the columns k width .. (k + 1) width of W and a center alpha_k over
 * them, so that its bound on the share of its classes in the partition function,
 *     log(sum of exp(s_j) over its classes) >= u_k . x + H(alpha_k),    u_k = W alpha_k,
 * takes one column, and all bounds one product of K columns. What a document's share p_k of a
 * cluster asks of its classes, w_j -= rate p_k alpha_kj x, is one more column: owed_k += rate p_k
 * x, in place of which u_k . x - |alpha_k|^2 owed_k . x and s_j - alpha_kj owed_k . x are the
 * products with the weights as they ought to be. It is folded into W when the center changes.
 *
 * Legend: C classes, F features with the bias, K clusters, alpha center, H entropy.
 */
#pragma once

#include "classify/class_objective.h"
#include "objectives/center.h"

typedef struct {
    const dcme_problem *problem;
    int64_t count;     /* K */
    int64_t width;     /* classes of a cluster, a multiple of DCME_PAD; the last may have fewer */
    int64_t stride;    /* dcme_stride(K) */
    int64_t features;  /* F */
    real *table;       /* (F, 2 stride) u and owed of a feature side by side */
    real *alpha;       /* (stride of W) all centers, each at its classes */
    real *entropy;     /* (stride) H(alpha_k) */
    real *square;      /* (stride) |alpha_k|^2 */
    real *weight;      /* (stride) sum of rate p_k in owed_k */
    _Atomic int *busy; /* (K) a thread is at its offline update */
} dcme_class_clusters;

/* products (2 stride) = table . x of instance d; then bounds (stride), -INFINITY in the padding. */
void dcme_class_clusters_bounds(const dcme_class_clusters *clusters, dcme_batch *batch, int64_t d,
                                real *products, real *bounds);

/* Fold what all clusters owe into W; centers stay. */
void dcme_class_clusters_fold(dcme_class_clusters *clusters);
