/* See by_feature.h. */
#include "classify/by_feature.h"

typedef struct {
    const dcme_sparse_rows *documents;
    const int64_t *numbers; /* the document of each instance */
    int64_t *places; /* (features) values of a feature in a piece, then where the next goes */
} source;

void dcme_by_feature_close(dcme_by_feature *columns) {
    if (columns)
        dcme_arena_close(&columns->arena);
    dcme_free(columns);
}

/* Count each feature's values in a piece; returns how many features have some. */
static int64_t count_values(const source *from, int64_t features, int64_t begin, int64_t end) {
    const dcme_sparse_rows *documents = from->documents;
    int64_t distinct = 0;
    DCME_CLEAR(from->places, features);
    for (int64_t i = begin; i < end; i++) {
        int64_t d = from->numbers[i];
        for (int64_t v = documents->starts[d]; v < documents->starts[d + 1]; v++)
            distinct += from->places[documents->features[v]]++ == 0;
    }
    return distinct;
}

static int64_t piece_end(const dcme_by_feature *columns, int64_t piece) {
    return dcme_min((piece + 1) * DCME_PIECE, columns->count);
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

static void fill(dcme_by_feature *columns, source *from, int64_t values) {
    int64_t pieces = dcme_pieces(columns->count);
    dcme_arena *arena = &columns->arena;
    DCME_TAKE(arena, columns->first, pieces + 1);
    DCME_TAKE_UNSET(arena, columns->instances, values);
    DCME_TAKE_UNSET(arena, columns->values, values);
    if (arena->status != DCME_OK)
        return;
    for (int64_t i = 0; i < pieces; i++)
        columns->first[i + 1] =
            columns->first[i] +
            count_values(from, columns->features, i * DCME_PIECE, piece_end(columns, i));
    DCME_TAKE(arena, columns->feature, columns->first[pieces]);
    DCME_TAKE(arena, columns->starts, columns->first[pieces] + 1);
    for (int64_t i = 0; arena->status == DCME_OK && i < pieces; i++)
        fill_piece(columns, from, i);
}

dcme_status dcme_by_feature_open(dcme_by_feature **columns, const dcme_sparse_rows *documents,
                                 const dcme_instances *instances, int64_t features,
                                 dcme_error *error) {
    const dcme_purpose purpose = {"the documents by feature", "give fewer documents"};
    source from = {documents, instances->documents, NULL};
    dcme_by_feature *found = dcme_allocate_zeros(1, sizeof *found);
    dcme_arena scratch = {0};
    int64_t values = 0;
    for (int64_t i = 0; i < instances->count; i++)
        values += documents->starts[from.numbers[i] + 1] - documents->starts[from.numbers[i]];
    if (!found)
        return dcme_no_memory(error, sizeof *found, purpose.what, purpose.advice);
    found->count = instances->count;
    found->features = features;
    DCME_TAKE(&scratch, from.places, features);
    dcme_arena_join(&found->arena, &scratch);
    fill(found, &from, values);
    dcme_arena_close(&scratch);
    dcme_status status = dcme_arena_check(&found->arena, purpose, error);
    if (status == DCME_OK)
        *columns = found;
    else
        dcme_by_feature_close(found);
    return status;
}
