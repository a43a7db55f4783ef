/* See by_feature.h. */
#include "classify/by_feature.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const dcme_sparse_rows *documents;
    const int64_t *numbers; /* the document of each instance */
    int64_t *places; /* (features) values of a feature in a piece, then where the next goes */
} source;

void dcme_by_feature_close(dcme_by_feature *columns) {
    if (!columns)
        return;
    free(columns->first), free(columns->feature), free(columns->starts);
    free(columns->instances), free(columns->values);
    free(columns);
}

/* Count each feature's values in a piece; returns how many features have some. */
static int64_t count_values(const source *from, int64_t features, int64_t begin, int64_t end) {
    const dcme_sparse_rows *documents = from->documents;
    int64_t distinct = 0;
    memset(from->places, 0, (size_t)features * sizeof *from->places);
    for (int64_t i = begin; i < end; i++) {
        int64_t d = from->numbers[i];
        for (int64_t v = documents->starts[d]; v < documents->starts[d + 1]; v++)
            distinct += from->places[documents->features[v]]++ == 0;
    }
    return distinct;
}

static int64_t piece_end(const dcme_by_feature *columns, int64_t piece) {
    int64_t end = (piece + 1) * DCME_PIECE;
    return end < columns->count ? end : columns->count;
}

static void fill_piece(dcme_by_feature *columns, const source *from, int64_t piece) {
    const dcme_sparse_rows *documents = from->documents;
    int64_t begin = piece * DCME_PIECE, end = piece_end(columns, piece);
    int64_t c = columns->first[piece], at = columns->starts[c];
    count_values(from, columns->features, begin, end);
    for (int64_t f = 0; f < columns->features; f++) {
        int64_t values = from->places[f];
        from->places[f] = at;
        if (!values)
            continue;
        at += values;
        columns->feature[c] = (int32_t)f;
        columns->starts[++c] = at;
    }
    for (int64_t i = begin; i < end; i++) {
        int64_t d = from->numbers[i];
        for (int64_t v = documents->starts[d]; v < documents->starts[d + 1]; v++) {
            int64_t place = from->places[documents->features[v]]++;
            columns->instances[place] = (uint16_t)(i - begin);
            columns->values[place] = documents->values[v];
        }
    }
}

static dcme_status allocate(dcme_by_feature *columns, source *from, int64_t values) {
    int64_t pieces = dcme_pieces(columns->count);
    columns->first = dcme_allocate_zeros(pieces + 1, sizeof *columns->first);
    columns->instances = dcme_allocate(values, sizeof *columns->instances);
    columns->values = dcme_allocate(values, sizeof *columns->values);
    from->places = dcme_allocate(columns->features, sizeof *from->places);
    if (!columns->first || !columns->instances || !columns->values || !from->places)
        return DCME_NO_MEMORY;
    for (int64_t i = 0; i < pieces; i++)
        columns->first[i + 1] =
            columns->first[i] +
            count_values(from, columns->features, i * DCME_PIECE, piece_end(columns, i));
    columns->feature = dcme_allocate(columns->first[pieces], sizeof *columns->feature);
    columns->starts = dcme_allocate_zeros(columns->first[pieces] + 1, sizeof *columns->starts);
    return columns->feature && columns->starts ? DCME_OK : DCME_NO_MEMORY;
}

dcme_status dcme_by_feature_open(dcme_by_feature **columns, const dcme_sparse_rows *documents,
                                 const dcme_instances *instances, int64_t features,
                                 dcme_error *error) {
    source from = {documents, instances->documents, NULL};
    dcme_by_feature *found = dcme_allocate_zeros(1, sizeof *found);
    int64_t values = 0;
    for (int64_t i = 0; i < instances->count; i++)
        values += documents->starts[from.numbers[i] + 1] - documents->starts[from.numbers[i]];
    if (found) {
        found->count = instances->count;
        found->features = features;
    }
    if (!found || allocate(found, &from, values) != DCME_OK) {
        dcme_by_feature_close(found);
        free(from.places);
        int64_t bytes = values * (int64_t)(sizeof(uint16_t) + sizeof(real)) + features * 20;
        return dcme_no_memory(error, bytes, "the documents by feature", "give fewer documents");
    }
    for (int64_t i = 0; i < dcme_pieces(found->count); i++)
        fill_piece(found, &from, i);
    free(from.places);
    *columns = found;
    return DCME_OK;
}
