/* Composes document vectors: sums of word vectors with one part per topic. */
#include "documents/documents.h"

#include "common/arena.h"

#include <math.h>

typedef struct {
    const dcme_composition *words;
    dcme_arena arena;
    float *row;      /* (topics, stride) */
    int32_t *counts; /* (words) counts in the document, reset to zero after each */
} composer;

static dcme_status start(composer *c, const dcme_composition *words, dcme_error *error) {
    const dcme_purpose purpose = {"a document's vector", "use fewer --clusters"};
    *c = (composer){.words = words};
    DCME_TAKE_UNSET(&c->arena, c->row, words->topics * words->stride);
    DCME_TAKE(&c->arena, c->counts, words->words);
    return dcme_arena_check(&c->arena, purpose, error);
}

/* Add a word that occurs `count` times in the document. */
static void add(const composer *c, uint32_t id, int32_t count) {
    const dcme_composition *w = c->words;
    float frequency = w->log_counts ? 1 + logf((float)count) : (float)count;
    float weight = frequency * w->weights[id];
    const float *vector = w->vectors + id * w->stride;
    for (int64_t i = w->starts[id]; i < w->starts[id + 1]; i++)
        dcme_axpy(w->kernels, c->row + w->topic[i] * w->stride, weight * w->share[i], vector,
                  w->stride);
}

/* Compute a document's row, and return 1 / length, or 0 for a row of zeros. */
static float compose(const composer *c, const uint32_t *ids, int64_t n) {
    const dcme_composition *w = c->words;
    int64_t size = w->topics * w->stride;
    double squares = 0;
    DCME_CLEAR(c->row, size);
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < w->words)
            c->counts[ids[i]]++;
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < w->words && c->counts[ids[i]]) {
            add(c, ids[i], c->counts[ids[i]]);
            c->counts[ids[i]] = 0;
        }
    for (int64_t topic = 0; topic < w->topics; topic++) {
        const float *part = c->row + topic * w->stride;
        float sum = 0;
        for (int64_t i = 0; i < w->stride; i++)
            sum += part[i] * part[i];
        squares += sum;
    }
    return squares > 0 ? (float)(1 / sqrt(squares)) : 0;
}

dcme_status dcme_compose_extremes(const dcme_composition *words, const dcme_documents *documents,
                                  float *lowest, float *highest, dcme_error *error) {
    composer c;
    dcme_status status = start(&c, words, error);
    for (int64_t d = 0; d < documents->count && status == DCME_OK; d++) {
        int64_t first = documents->starts[d], n = documents->starts[d + 1] - first;
        float scale = compose(&c, documents->ids + first, n);
        float low = c.row[0], high = c.row[0];
        for (int64_t topic = 0; topic < words->topics; topic++)
            for (int64_t i = topic * words->stride; i < topic * words->stride + words->dim; i++) {
                low = c.row[i] < low ? c.row[i] : low;
                high = c.row[i] > high ? c.row[i] : high;
            }
        lowest[d] = low * scale;
        highest[d] = high * scale;
    }
    dcme_arena_close(&c.arena);
    return status;
}

/* Write the entries of a row that reach the threshold, and return their number. */
static int64_t keep(const composer *c, float scale, float threshold, int32_t *columns,
                    float *values) {
    const dcme_composition *w = c->words;
    int64_t n = 0;
    for (int64_t topic = 0; topic < w->topics; topic++)
        for (int64_t i = 0; i < w->dim; i++) {
            float value = c->row[topic * w->stride + i] * scale;
            /* every entry is written, and the next one overwrites it unless it is kept: a branch
             * would be unpredictable */
            columns[n] = (int32_t)(topic * w->dim + i);
            values[n] = value;
            n += value != 0 && fabsf(value) >= threshold;
        }
    return n;
}

dcme_status dcme_compose_rows(const dcme_composition *words, const dcme_documents *documents,
                              float threshold, int64_t *starts, int32_t *columns, float *values,
                              dcme_error *error) {
    composer c;
    dcme_status status = start(&c, words, error);
    int64_t n = 0;
    starts[0] = 0;
    for (int64_t d = 0; d < documents->count && status == DCME_OK; d++) {
        int64_t first = documents->starts[d];
        float scale = compose(&c, documents->ids + first, documents->starts[d + 1] - first);
        if (scale > 0)
            n += keep(&c, scale, threshold, columns + n, values + n);
        starts[d + 1] = n;
    }
    dcme_arena_close(&c.arena);
    return status;
}
