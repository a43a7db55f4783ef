#include "classify/label_tree.h"

#include "common/arena.h"
#include "common/top_k.h"
#include "objectives/noise.h"

typedef struct {
    const dcme_label_tree *tree;
    real *linear;    /* (widest) scores of a node's children */
    int64_t *found;  /* (beam * widest) children of the nodes that are searched */
    real *scores;    /* (beam * widest) */
    int32_t *chosen; /* (maximum of beam and count) */
    int64_t *beam;   /* (beam) nodes to search */
    real *reached;   /* (beam) scores of these nodes */
} search;

static void add_row(search *s, int64_t row, real value) {
    const dcme_label_tree *tree = s->tree;
    for (int64_t i = tree->starts[row]; i < tree->starts[row + 1]; i++)
        s->linear[tree->columns[i]] += value * tree->values[i];
}

/* Return the first row in low .. high - 1 whose feature is at least `feature`. */
static int64_t row_of(const int32_t *features, int64_t low, int64_t high, int32_t feature) {
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (features[middle] < feature)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_feature(search *s, int64_t *row, int64_t end, int32_t feature, real value) {
    *row = row_of(s->tree->features, *row, end, feature);
    if (*row < end && s->tree->features[*row] == feature)
        add_row(s, *row, value);
}

/* Append a node's children to the candidates, and return their number. */
static int64_t expand(search *s, int64_t node, real score, int64_t found,
                      const dcme_sparse_rows *documents, int64_t d) {
    const dcme_label_tree *tree = s->tree;
    int64_t first = tree->children[node], count = tree->children[node + 1] - first;
    int64_t row = tree->rows[node], end = tree->rows[node + 1];
    for (int64_t c = 0; c < count; c++)
        s->linear[c] = 0;
    for (int64_t i = documents->starts[d]; i < documents->starts[d + 1]; i++)
        add_feature(s, &row, end, documents->features[i], documents->values[i]);
    add_feature(s, &row, end, tree->bias_feature, tree->bias);
    for (int64_t c = 0; c < count; c++) {
        s->found[found + c] = first + c; /* log sigma(x) */
        s->scores[found + c] = score - (real)dcme_softplus(-(double)s->linear[c]);
    }
    return found + count;
}

static void search_document(search *s, int32_t *best, real *scores, int64_t count, int64_t beam,
                            const dcme_sparse_rows *documents, int64_t d) {
    int64_t width = 1, found = 0;
    s->beam[0] = 0;
    s->reached[0] = 0;
    for (int is_lowest = 0; !is_lowest;) {
        found = 0;
        for (int64_t i = 0; i < width; i++)
            found = expand(s, s->beam[i], s->reached[i], found, documents, d);
        is_lowest = s->found[0] >= s->tree->nodes;
        width = is_lowest ? count : beam;
        width = width < found ? width : found;
        dcme_top_k(s->chosen, width, s->scores, found);
        for (int64_t i = 0; !is_lowest && i < width; i++) {
            s->beam[i] = s->found[s->chosen[i]];
            s->reached[i] = s->scores[s->chosen[i]];
        }
    }
    for (int64_t i = 0; i < count; i++) {
        best[i] = i < width ? (int32_t)(s->found[s->chosen[i]] - s->tree->nodes) : -1;
        scores[i] = i < width ? s->scores[s->chosen[i]] : 0;
    }
}

dcme_status dcme_tree_best(int32_t *best, real *scores, int64_t count, int64_t beam,
                           const dcme_label_tree *tree, const dcme_sparse_rows *documents,
                           int64_t begin, int64_t end, dcme_error *error) {
    const dcme_purpose purpose = {"the search for labels", "lower --threads"};
    dcme_arena arena = {0};
    search s = {.tree = tree};
    s.linear = dcme_take_unset(&arena, tree->widest, sizeof *s.linear);
    s.found = dcme_take_unset(&arena, beam * tree->widest, sizeof *s.found);
    s.scores = dcme_take_unset(&arena, beam * tree->widest, sizeof *s.scores);
    s.chosen = dcme_take_unset(&arena, beam > count ? beam : count, sizeof *s.chosen);
    s.beam = dcme_take_unset(&arena, beam, sizeof *s.beam);
    s.reached = dcme_take_unset(&arena, beam, sizeof *s.reached);
    dcme_status status = dcme_arena_check(&arena, purpose, error);
    for (int64_t d = begin; status == DCME_OK && d < end; d++)
        search_document(&s, best + (d - begin) * count, scores + (d - begin) * count, count, beam,
                        documents, d);
    dcme_arena_close(&arena);
    return status;
}
