/* Hierarchical softmax (Morin & Bengio 2005; Mikolov et al. 2013): a target is found on a path of
 * binary decisions through a Huffman tree of the words.
 *
 * For context h and the nodes n of the target's path, with scores s_n = v_n . h and the child c_n
 * that the path takes, ascend log p(target | h) = sum_n log sigma((2 c_n - 1) s_n):
 * v_n += rate (c_n - sigma(s_n)) h, and h's direction is sum_n (c_n - sigma(s_n)) v_n.
 * The probabilities of all words sum to 1. Row n of the output table is that of inner node n; the
 * last row is not used.
 *
 * All paths begin at the root. So nodes are numbered from there, and each thread has copies of the
 * first rows (row_replicas.h), which it would else wait for.
 */
#include "objectives/huffman.h"
#include "objectives/noise.h"
#include "objectives/objective.h"
#include "objectives/row_replicas.h"

#include <string.h>

enum { NEAR = 1024 }; /* rows of nodes below this are in the cache, or soon are */
enum { TARGETS = 4 }; /* at least DCME_AHEAD + 1, the one being learned; a power of two */

typedef struct {
    const dcme_model *model;
    int32_t threads;
    dcme_huffman tree;
} tree_state;

typedef struct {
    const tree_state *shared;
    uint32_t prefetched, taken; /* targets so far; number n is targets[n % TARGETS] */
    int32_t targets[TARGETS];
    dcme_row_replicas replicas;
    real **rows;    /* (longest) of the path's nodes */
    real *scores;   /* dcme_stride(longest) */
    real *weights;  /* dcme_stride(longest) */
    real *children; /* (longest) c_n */
} thread_state;

static void *open_tree(dcme_arena *arena, const dcme_model *model,
                       const dcme_train_options *options) {
    tree_state *state = dcme_take(arena, 1, sizeof *state);
    if (!state)
        return NULL;
    state->model = model;
    state->threads = options->threads;
    dcme_huffman_open(&state->tree, arena, model->counts, model->items);
    return state;
}

static void thread_open(void *thread, dcme_arena *arena, void *shared) {
    thread_state *me = thread;
    const tree_state *state = me->shared = shared;
    int64_t n = state->tree.longest;
    me->rows = dcme_take(arena, n, sizeof *me->rows);
    me->scores = dcme_take(arena, dcme_stride(n), sizeof *me->scores);
    me->weights = dcme_take(arena, dcme_stride(n), sizeof *me->weights);
    me->children = dcme_take(arena, n, sizeof *me->children);
    dcme_replicas_open(&me->replicas, arena, state->model, state->threads);
}

/* Nothing is drawn; only which copies are synchronised first depends on the stream. */
static void seed(void *thread, uint64_t stream) {
    thread_state *me = thread;
    dcme_replicas_seed(&me->replicas, stream);
    me->prefetched = me->taken = 0;
}

static void prefetch_rows(const thread_state *me, int32_t target) {
    const dcme_huffman *tree = &me->shared->tree;
    const dcme_model *model = me->shared->model;
    for (int64_t p = tree->begin[target]; p < tree->begin[target + 1]; p++) {
        int32_t node = dcme_huffman_node(tree->steps[p]);
        if (node >= NEAR)
            dcme_prefetch(model->output + node * model->stride, model->stride);
    }
}

/* The path of this target, and the rows of the one before, whose path has arrived. */
static void prefetch(void *thread, int32_t target) {
    thread_state *me = thread;
    const dcme_huffman *tree = &me->shared->tree;
    const uint32_t *path = tree->steps + tree->begin[target];
    __builtin_prefetch(path);
    __builtin_prefetch(path + 64 / sizeof *path);
    dcme_replicas_begin(&me->replicas);
    if (me->prefetched != me->taken)
        prefetch_rows(me, me->targets[(me->prefetched - 1) % TARGETS]);
    me->targets[me->prefetched++ % TARGETS] = target;
}

/* weights[i] = c_i - sigma(scores[i]); the kernel takes the first for a target, c = 1. */
static void decide(const thread_state *me, int64_t count) {
    me->shared->model->kernels->residuals(me->weights, me->scores, count);
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
    const dcme_huffman *tree = &me->shared->tree;
    const dcme_model *model = me->shared->model;
    int32_t target = me->targets[me->taken++ % TARGETS];
    const uint32_t *path = tree->steps + tree->begin[target];
    int64_t count = tree->begin[target + 1] - tree->begin[target];

    if (count == 0) {
        memset(instance->gradient, 0, (size_t)model->stride * sizeof(real));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        me->rows[i] = dcme_replica_row(&me->replicas, dcme_huffman_node(path[i]));
        me->children[i] = (real)dcme_huffman_child(path[i]);
    }
    model->kernels->dots(me->scores, instance->h, me->rows, count, model->stride);
    if (dcme_loss_wanted(loss, DCME_LOSS_EVERY))
        dcme_loss_add(loss, path_loss(me, count));
    decide(me, count);
    model->kernels->update(instance->gradient, instance->h, me->rows, me->weights, instance->rate,
                           count, model->stride);
    dcme_replicas_step(&me->replicas);
}

static void flush(void *thread) { dcme_replicas_end(&((thread_state *)thread)->replicas); }

const dcme_objective dcme_objective_hs = {
    .name = "hs",
    .open = open_tree,
    .whole = {"the Huffman tree", "lower --max-vocab or raise --min-count"},
    .thread_open = thread_open,
    .thread_size = sizeof(thread_state),
    .own = {"a thread's copies of rows", "lower --threads"},
    .seed = seed,
    .prefetch = prefetch,
    .step = step,
    .flush = flush,
};
