/* Rows in word2vec's binary format: a word, a space, little-endian floats and, in most files, a
 * newline. */
#include "vectors.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the binary format is copied from and to memory, so the machine must be little-endian"
#endif

/* Find the space after the word of the row at `row`; *word becomes the start of the word, after
 * the line end of the previous row. Return NULL if the block ends first. */
static const char *find_space(const char *row, const char *stop, const char **word) {
    *word = row < stop && *row == '\n' ? row + 1 : row;
    return memchr(*word, ' ', (stop - *word));
}

int64_t dcme_cut_binary(const dcme_block *block, int64_t limit, int64_t *end) {
    const char *row = block->bytes, *stop = block->bytes + block->size, *word;
    int64_t rows = 0, bytes = block->dim * sizeof(float);
    for (; rows < limit; rows++) {
        const char *space = find_space(row, stop, &word);
        if (!space || stop - space - 1 < bytes)
            break;
        row = space + 1 + bytes;
    }
    *end = row - block->bytes;
    return rows;
}

static bool all_finite(const float *values, int64_t count) {
    uint32_t worst = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        bits &= 0x7F800000u;
        worst = bits > worst ? bits : worst;
    }
    return worst != 0x7F800000u;
}

void dcme_read_binary(const dcme_block *block, int64_t limit, dcme_rows *rows) {
    const char *start = block->bytes, *stop = start + block->size, *word;
    size_t bytes = block->dim * sizeof(float);
    rows->offsets[0] = 0;
    rows->count = 0;
    for (int64_t i = 0; i < limit; i++) {
        float *values = rows->matrix + rows->count * rows->step;
        const char *space = find_space(start, stop, &word);
        int64_t size = space - word;
        memcpy(values, space + 1, bytes);
        dcme_fault_kind kind = dcme_check_word(word, size);
        if (kind == DCME_NO_FAULT && !all_finite(values, block->dim))
            kind = DCME_FAULT_FINITE;
        if (!dcme_keep_word(block, rows, i, kind, word, size))
            return;
        start = space + 1 + bytes;
    }
}
