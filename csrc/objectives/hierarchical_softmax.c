/* Hierarchical softmax (Morin & Bengio 2005; Mikolov et al. 2013): a target is found on a path of
 * binary decisions through a Huffman tree of the words.
 *
 * For context h and the nodes n of the target's path, with scores s_n = v_n . h and the child c_n
 * that the path takes, ascend log p(target | h) = sum_n log sigma((2 c_n - 1) s_n). The drawn rows
 * are the path, and a node's label is the next child: 1 for the more probable one. The
 * probabilities of all words sum to 1. Row n of the output table belongs to inner node n; the last
 * row is unused.
 *
 * All paths begin at the root. So nodes are numbered from the root, and each thread has its own
 * copies of the first rows (row_replicas.h), to avoid waiting for them.
 */
#include "objectives/draws.h"

enum { NEAR = 1024 }; /* rows of nodes below this number stay in the cache */

/* A Huffman tree (1952): join the two nodes with the lowest counts until one is left. Words are
 * sorted by count, and inner nodes are created in the order of their counts, so that the two lowest
 * are always at the ends of two queues. If counts are equal, a word is joined before an inner node,
 * which keeps paths short. Inner nodes are numbered from the root, 0, by descending count. */

/* The queues of nodes that do not have a parent yet. */
typedef struct {
    int64_t word, node; /* the node with the lowest count in each queue; both indices descend */
    const int64_t *counts;
    int64_t *node_counts; /* (items - 1) */
} queues;

/* Pop the node with the lower count: the ID of a word, or items + the number of an inner node. */
static int64_t pop_lowest(queues *q, int64_t items, int64_t made, int64_t *count) {
    int has_node = q->node >= made;
    if (q->word >= 0 && (!has_node || q->counts[q->word] <= q->node_counts[q->node])) {
        *count += q->counts[q->word];
        return q->word--;
    }
    *count += q->node_counts[q->node];
    return items + q->node--;
}

/* up[i] = 2 parent + child for each word i; up[items + n] is the same for each inner node n. */
static void join(uint32_t *up, const int64_t *counts, int64_t *node_counts, int64_t items) {
    queues q = {items - 1, items - 2, counts, node_counts};
    for (int64_t node = items - 2; node >= 0; node--) {
        int64_t count = 0;
        up[pop_lowest(&q, items, node + 1, &count)] = (uint32_t)(2 * node);
        up[pop_lowest(&q, items, node + 1, &count)] = (uint32_t)(2 * node + 1);
        node_counts[node] = count;
    }
}

static void write_paths(dcme_tree *tree, dcme_arena *arena, const uint32_t *up, int64_t items) {
    for (int64_t i = 0; i < items; i++) {
        int64_t length = 1;
        for (uint32_t code = up[i]; code >> 1; code = up[items + (code >> 1)])
            length++;
        tree->begin[i + 1] = tree->begin[i] + length;
        tree->longest = dcme_max(length, tree->longest);
    }
    DCME_TAKE_UNSET(arena, tree->codes, tree->begin[items]);
    for (int64_t i = 0; tree->codes && i < items; i++) {
        uint32_t code = up[i];
        for (int64_t p = tree->begin[i + 1] - 1; p >= tree->begin[i]; p--) {
            tree->codes[p] = code;
            code = up[items + (code >> 1)];
        }
    }
}

void dcme_tree_open(dcme_tree *tree, dcme_arena *arena, const int64_t *counts, int64_t items) {
    dcme_arena scratch = {0};
    DCME_TAKE(arena, tree->begin, items + 1);
    if (items < 2) /* with a single word, there is nothing to decide */
        return;
    uint32_t *up = dcme_take(&scratch, 2 * items - 1, sizeof *up);
    int64_t *node_counts = dcme_take(&scratch, items - 1, sizeof *node_counts);
    dcme_arena_join(arena, &scratch);
    if (arena->status == DCME_OK) {
        join(up, counts, node_counts, items);
        write_paths(tree, arena, up, items);
    }
    dcme_arena_close(&scratch);
}

/* Prefetch the path of this target, and the rows of the previous target, whose path is now in the
 * cache. */
void dcme_draw_path(dcme_draws *d, int32_t target) {
    const dcme_tree *tree = d->tree;
    const dcme_draw *before = &d->queue[(d->made - 1) % DCME_DRAWS];
    dcme_draw *draw = dcme_draws_push(d);
    draw->codes = tree->codes + tree->begin[target];
    draw->count = tree->begin[target + 1] - tree->begin[target];
    __builtin_prefetch(draw->codes);
    __builtin_prefetch(draw->codes + 64 / sizeof *draw->codes);
    for (int64_t i = 0; i < before->count; i++) {
        int32_t node = dcme_row_of(before->codes[i]);
        if (node >= NEAR)
            dcme_prefetch(d->model->output + node * d->model->stride, d->model->stride);
    }
}
