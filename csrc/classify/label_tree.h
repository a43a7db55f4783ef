/* Predict labels by beam search in a tree of labels with sparse weights (Prabhu et al. 2018,
 * Parabel). Nodes are numbered level by level from the root, 0. A node has one sparse row of
 * weights for each feature that occurs in it. A child's score is its parent's score plus log
 * sigma(s) of its own linear score s; only the best nodes of each level are searched further. */
#pragma once

#include "classify/classify.h"

typedef struct {
    int64_t nodes;
    const int64_t *children; /* (nodes + 1) node n has the children children[n] .. children[n + 1] -
                                1, which are all greater than n. Numbers from `nodes` on are labels,
                                which are all on the lowest level */
    const int64_t *rows;     /* (nodes + 1) range of each node's rows */
    const int32_t *features; /* (rows) feature of each row, ascending within a node */
    const int64_t *starts;   /* (rows + 1) range of each row's entries */
    const uint16_t *columns; /* (entries) index of the child within the node */
    const real *values;      /* (entries) */
    int32_t bias_feature;    /* constant feature of every document, which is the last */
    real bias;               /* value of the constant feature */
    int64_t widest;          /* maximum number of children of a node */
} dcme_label_tree;

/* For each document begin + d, write the positions of its `count` most probable labels to best[d],
 * in descending order of their scores, and the scores to scores[d]. If the search reached fewer
 * labels, the other positions are -1. `beam` nodes are searched per level. */
dcme_status dcme_tree_best(int32_t *best, real *scores, int64_t count, int64_t beam,
                           const dcme_label_tree *tree, const dcme_sparse_rows *documents,
                           int64_t begin, int64_t end, dcme_error *error);
