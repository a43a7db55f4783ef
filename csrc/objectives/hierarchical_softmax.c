/* Hierarchical softmax (Morin & Bengio 2005; Mikolov et al. 2013): a target is found on a path of
 * binary decisions through a Huffman tree of the words.
 *
 * For context h and the nodes n of the target's path, with scores s_n = v_n . h and the child c_n
 * that the path takes, ascend log p(target | h) = sum_n log sigma((2 c_n - 1) s_n):
 * v_n += rate (c_n - sigma(s_n)) h, and h's direction is sum_n (c_n - sigma(s_n)) v_n.
 * The probabilities of all words sum to 1. Row n of the output table belongs to inner node n; the
 * last row is not used.
 *
 * All paths begin at the root. So nodes are numbered from there, and each thread has copies of the
 * first rows (row_replicas.h), which it would else wait for.
 */
#include "objectives/noise.h"
#include "objectives/objective.h"
#include "objectives/row_replicas.h"

enum { NEAR = 1024 }; /* rows of nodes below this are in the cache, or soon are */

/* The tree of Huffman (1952): join the two nodes of the lowest counts, until one is left. Words are
 * sorted by count, and inner nodes are made in the order of their counts, so that the two lowest
 * are always at the ends of two queues. Of equal counts a word is joined before an inner node,
 * which keeps paths short. */

/* Inner nodes are numbered from the root, 0, by descending count. */
typedef struct {
    int64_t longest; /* nodes of the longest path */
    int64_t *begin;  /* (items + 1) where the path of each word begins in `steps` */
    uint32_t
        *steps; /* from the root: twice the node's number, plus which of its children follows */
} huffman;

static inline int32_t node_of(uint32_t step) { return (int32_t)(step >> 1); }
/* 1 for the more probable child. */
static inline int32_t child_of(uint32_t step) { return (int32_t)(step & 1); }

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

static void write_paths(huffman *tree, dcme_arena *arena, const uint32_t *up, int64_t items) {
    for (int64_t i = 0; i < items; i++) {
        int64_t length = 1;
        for (uint32_t step = up[i]; step >> 1; step = up[items + (step >> 1)])
            length++;
        tree->begin[i + 1] = tree->begin[i] + length;
        tree->longest = dcme_max(length, tree->longest);
    }
    DCME_TAKE_UNSET(arena, tree->steps, tree->begin[items]);
    for (int64_t i = 0; tree->steps && i < items; i++) {
        uint32_t step = up[i];
        for (int64_t p = tree->begin[i + 1] - 1; p >= tree->begin[i]; p--) {
            tree->steps[p] = step;
            step = up[items + (step >> 1)];
        }
    }
}

/* Build the tree of at most 2^31 - 1 words by their counts, in descending order. */
static void open_huffman(huffman *tree, dcme_arena *arena, const int64_t *counts, int64_t items) {
    dcme_arena scratch = {0};
    DCME_TAKE(arena, tree->begin, items + 1);
    if (items < 2) /* a single word has no alternative */
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

typedef struct {
    const dcme_model *model;
    int32_t threads;
    huffman tree;
} tree_state;

typedef struct {
    dcme_row_replicas replicas; /* first, for dcme_replicas_end() */
    const dcme_model *model;
    const huffman *tree;
    int32_t last;   /* target that was prefetched, -1 for none */
    real **rows;    /* (longest) of the path's nodes */
    real *scores;   /* dcme_stride(longest) */
    real *weights;  /* dcme_stride(longest) */
    real *children; /* (longest) c_n */
} thread_state;

static void open_tree(void *shared, dcme_arena *arena, const dcme_model *model,
                      const dcme_train_options *options) {
    tree_state *state = shared;
    state->model = model;
    state->threads = options->threads;
    open_huffman(&state->tree, arena, model->counts, model->items);
}

static void thread_open(void *thread, dcme_arena *arena, void *shared) {
    thread_state *me = thread;
    const tree_state *state = shared;
    int64_t n = state->tree.longest;
    me->model = state->model;
    me->tree = &state->tree;
    DCME_TAKE(arena, me->rows, n);
    DCME_TAKE(arena, me->scores, dcme_stride(n));
    DCME_TAKE(arena, me->weights, dcme_stride(n));
    DCME_TAKE(arena, me->children, n);
    dcme_replicas_open(&me->replicas, arena, state->model, state->threads);
}

/* Nothing is drawn; only which copies are synchronized first depends on the stream. */
static void seed(void *thread, uint64_t stream) {
    thread_state *me = thread;
    dcme_replicas_seed(&me->replicas, stream);
    me->last = -1;
}

static void prefetch_rows(const thread_state *me, int32_t target) {
    const huffman *tree = me->tree;
    const dcme_model *model = me->model;
    for (int64_t p = tree->begin[target]; p < tree->begin[target + 1]; p++) {
        int32_t node = node_of(tree->steps[p]);
        if (node >= NEAR)
            dcme_prefetch(model->output + node * model->stride, model->stride);
    }
}

/* The path of this target, and the rows of the one before, whose path has arrived. */
static void prefetch(void *thread, int32_t target) {
    thread_state *me = thread;
    const huffman *tree = me->tree;
    const uint32_t *path = tree->steps + tree->begin[target];
    __builtin_prefetch(path);
    __builtin_prefetch(path + 64 / sizeof *path);
    dcme_replicas_begin(&me->replicas);
    if (me->last >= 0)
        prefetch_rows(me, me->last);
    me->last = target;
}

/* weights[i] = c_i - sigma(scores[i]); the kernel takes the first for a target, c = 1. */
static void decide(const thread_state *me, int64_t count) {
    me->model->kernels->residuals(me->weights, me->scores, count);
    me->weights[0] += me->children[0] - 1;
    for (int64_t i = 1; i < count; i++)
        me->weights[i] += me->children[i];
}

/* -log p(target | h) */
static double path_loss(const thread_state *me, int64_t count) {
    double loss = 0;
    for (int64_t i = 0; i < count; i++)
        loss += dcme_softplus(me->children[i] > 0 ? -(double)me->scores[i] : me->scores[i]);
    return loss;
}

static void step(void *thread, const dcme_instance *instance, dcme_loss *loss) {
    thread_state *me = thread;
    const huffman *tree = me->tree;
    const dcme_model *model = me->model;
    int32_t target = instance->target;
    const uint32_t *path = tree->steps + tree->begin[target];
    int64_t count = tree->begin[target + 1] - tree->begin[target];

    if (count == 0) {
        DCME_CLEAR(instance->gradient, model->stride);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        me->rows[i] = dcme_replica_row(&me->replicas, node_of(path[i]));
        me->children[i] = (real)child_of(path[i]);
    }
    dcme_dots(model->kernels, me->scores, instance->h, me->rows, count, model->size);
    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY))
        dcme_loss_add(loss, path_loss(me, count));
    decide(me, count);
    model->kernels->update(instance->gradient, instance->h, me->rows, me->weights, instance->rate,
                           count, model->size);
    dcme_replicas_step(&me->replicas);
}

const dcme_objective dcme_objective_hs = {
    .open = open_tree,
    .shared_size = sizeof(tree_state),
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .seed = seed,
    .prefetch = prefetch,
    .step = step,
    .flush = dcme_replicas_end,
};
