/* Prediction by a tree of labels with sparse weights: beam search (Prabhu et al. 2018, Parabel).
 *
 * Nodes are numbered level by level, the root is 0. A node has for each feature that has weights in
 * it a sparse row of them. The score of a child is the score of its parent plus log sigma(s) of its
 * linear score s; only the best nodes of a level are searched further.
 */
#pragma once

#include "classify/classify.h"

typedef struct {
    int64_t nodes;
    const int64_t *children; /* (nodes + 1) node n has the children[n] <= . < children[n + 1], all
                                above n; children from `nodes` on are places of labels, and all
                                labels are on the lowest level */
    const int64_t *rows;     /* (nodes + 1) rows of a node */
    const int32_t *features; /* (rows) ascending within a node */
    const int64_t *starts;   /* (rows + 1) entries of a row */
    const uint16_t *columns; /* (entries) a child's number within the node */
    const real *values;      /* (entries) */
    int32_t bias_feature;    /* of every document, the last */
    real bias;               /* its value */
    int64_t widest;          /* children of a node, at most */
} dcme_label_tree;

/* best[d] (count) are places of labels of the document begin + d, the most probable first, -1 where
 * fewer were reached, and scores[d] their scores. `beam` nodes of each level are searched. */
dcme_status dcme_tree_best(int32_t *best, real *scores, int64_t count, int64_t beam,
                           const dcme_label_tree *tree, const dcme_sparse_rows *documents,
                           int64_t begin, int64_t end, dcme_error *error);
