/* A binary Huffman tree of the words: the more frequent a word, the shorter its path. */
#ifndef DCME_HUFFMAN_H
#define DCME_HUFFMAN_H

#include "common/arena.h"

/* Inner nodes are numbered from the root, 0, by descending count. */
typedef struct {
    int64_t longest; /* nodes of the longest path */
    int64_t *begin;  /* (items + 1) where the path of each word begins in `steps` */
    uint32_t
        *steps; /* from the root: twice the node's number, plus which of its children follows */
} dcme_huffman;

static inline int32_t dcme_huffman_node(uint32_t step) { return (int32_t)(step >> 1); }
/* 1 for the more probable child. */
static inline int32_t dcme_huffman_child(uint32_t step) { return (int32_t)(step & 1); }

/* Build the tree of at most 2^31 - 1 words by their counts, in descending order. */
void dcme_huffman_open(dcme_huffman *tree, dcme_arena *arena, const int64_t *counts, int64_t items);

#endif
