/* See huffman.h.
 *
 * Huffman (1952): join the two nodes of the lowest counts, until one is left. Words are sorted by
 * count, and inner nodes are made in the order of their counts, so that the two lowest are always
 * at the ends of two queues. Of equal counts a word is joined before an inner node, which keeps
 * paths short.
 */
#include "objectives/huffman.h"

/* The nodes that have no parent yet. */
typedef struct {
    int64_t word, node; /* the lowest of either queue; both go downwards */
    const int64_t *counts;
    int64_t *node_counts; /* (items - 1) */
} queues;

/* Take the lowest of both queues: a word's number, or items + a node's. */
static int64_t take(queues *q, int64_t items, int64_t made, int64_t *count) {
    int has_node = q->node >= made;
    if (q->word >= 0 && (!has_node || q->counts[q->word] <= q->node_counts[q->node])) {
        *count += q->counts[q->word];
        return q->word--;
    }
    *count += q->node_counts[q->node];
    return items + q->node--;
}

/* up[i] = 2 parent + child for each word i, and for each inner node at items + its number. */
static void join(uint32_t *up, const int64_t *counts, int64_t *node_counts, int64_t items) {
    queues q = {items - 1, items - 2, counts, node_counts};
    for (int64_t node = items - 2; node >= 0; node--) {
        int64_t count = 0;
        up[take(&q, items, node + 1, &count)] = (uint32_t)(2 * node);
        up[take(&q, items, node + 1, &count)] = (uint32_t)(2 * node + 1);
        node_counts[node] = count;
    }
}

/* depth of each inner node; parents have lower numbers */
static void measure(int32_t *depth, const uint32_t *up, int64_t items) {
    depth[0] = 0;
    for (int64_t node = 1; node < items - 1; node++)
        depth[node] = depth[up[items + node] >> 1] + 1;
}

static void write_paths(dcme_huffman *tree, dcme_arena *arena, const uint32_t *up,
                        const int32_t *depth, int64_t items) {
    for (int64_t i = 0; i < items; i++) {
        int64_t length = depth[up[i] >> 1] + 1;
        tree->begin[i + 1] = tree->begin[i] + length;
        tree->longest = length > tree->longest ? length : tree->longest;
    }
    tree->steps = dcme_take_unset(arena, tree->begin[items], sizeof *tree->steps);
    for (int64_t i = 0; tree->steps && i < items; i++) {
        uint32_t step = up[i];
        for (int64_t p = tree->begin[i + 1] - 1; p >= tree->begin[i]; p--) {
            tree->steps[p] = step;
            step = up[items + (step >> 1)];
        }
    }
}

void dcme_huffman_open(dcme_huffman *tree, dcme_arena *arena, const int64_t *counts,
                       int64_t items) {
    dcme_arena scratch = {0};
    tree->begin = dcme_take(arena, items + 1, sizeof *tree->begin);
    if (items < 2) /* a single word has no alternative */
        return;
    uint32_t *up = dcme_take(&scratch, 2 * items - 1, sizeof *up);
    int64_t *node_counts = dcme_take(&scratch, items - 1, sizeof *node_counts);
    int32_t *depth = dcme_take(&scratch, items - 1, sizeof *depth);
    dcme_arena_join(arena, &scratch);
    if (arena->status == DCME_OK) {
        join(up, counts, node_counts, items);
        measure(depth, up, items);
        write_paths(tree, arena, up, depth, items);
    }
    dcme_arena_close(&scratch);
}
