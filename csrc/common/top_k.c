/* The heaviest items so far are kept in a heap, with the lightest of them as its root. */
#include "common/top_k.h"

/* Whether item a comes after item b in the order of the result. */
static int comes_after(const real *weights, int32_t a, int32_t b) {
    return weights[a] < weights[b] || (weights[a] == weights[b] && a > b);
}

static void sift_down(int32_t *heap, int64_t size, int64_t i, const real *weights) {
    int32_t item = heap[i];
    for (int64_t child; (child = 2 * i + 1) < size; i = child) {
        if (child + 1 < size && comes_after(weights, heap[child + 1], heap[child]))
            child++;
        if (!comes_after(weights, heap[child], item))
            break;
        heap[i] = heap[child];
    }
    heap[i] = item;
}

void dcme_top_k(int32_t *heaviest, int64_t count, const real *weights, int64_t items) {
    if (count == 0)
        return;
    for (int64_t i = 0; i < count; i++)
        heaviest[i] = (int32_t)i;
    for (int64_t i = count / 2; i-- > 0;)
        sift_down(heaviest, count, i, weights);
    for (int64_t j = count; j < items; j++)
        if (comes_after(weights, heaviest[0], (int32_t)j)) {
            heaviest[0] = (int32_t)j;
            sift_down(heaviest, count, 0, weights);
        }
    for (int64_t size = count - 1; size > 0; size--) { /* move the lightest item to the end */
        int32_t lightest = heaviest[0];
        heaviest[0] = heaviest[size];
        heaviest[size] = lightest;
        sift_down(heaviest, size, 0, weights);
    }
}
