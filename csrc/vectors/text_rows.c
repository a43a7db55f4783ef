/* Rows in word2vec's text format: a word, then its numbers, separated by blanks. */
#include "vectors.h"

#include <math.h>

static inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

int64_t dcme_write_rows(bool binary, char *out, const float *matrix, int64_t dim, const char *text,
                        const int64_t *offsets, int64_t first, int64_t last) {
    const char *start = out;
    for (int64_t row = first; row < last; row++, matrix += dim) {
        int64_t size = offsets[row + 1] - offsets[row];
        memcpy(out, text + offsets[row], size);
        out += size;
        if (binary) {
            *out++ = ' ';
            memcpy(out, matrix, dim * sizeof *matrix);
            out += dim * sizeof *matrix;
        }
        for (int64_t i = 0; !binary && i < dim; i++) {
            *out++ = ' ';
            out += dcme_write_number(out, matrix[i]);
        }
        *out++ = '\n';
    }
    return out - start;
}

int64_t dcme_cut_text(const dcme_block *block, int64_t limit, bool final, int64_t *end) {
    const char *start = block->bytes, *stop = start + block->size, *line = start;
    int64_t rows = 0;
    if (final)
        while (stop > start && (is_blank(stop[-1]) || stop[-1] == '\n' || stop[-1] == '\r'))
            stop--;
    while (rows < limit && line < stop) {
        const char *newline = memchr(line, '\n', (stop - line));
        if (!newline && !final)
            break;
        rows++;
        line = newline ? newline + 1 : stop;
    }
    *end = final && line == stop ? block->size : line - start;
    return rows;
}

/* Return what is wrong with a row that does not consist of a word and `dim` numbers. `fields` is
 * the number of fields after the word. */
static dcme_fault_kind name_fault(const char *fields, const char *end, int64_t dim) {
    int64_t count = 0, last_other = -1;
    for (const char *c = fields; c < end; count++) {
        float value;
        const char *field = c;
        while (c < end && !is_blank(*c))
            c++;
        if (dcme_read_number(field, c, &value) != c)
            last_other = count;
        while (c < end && is_blank(*c))
            c++;
    }
    if (count > dim && last_other >= 0 && last_other < count - dim)
        return DCME_FAULT_SEPARATOR; /* the last `dim` fields are numbers, so the rest is the word
                                      */
    return last_other >= 0 && count <= dim ? DCME_FAULT_NUMBER : DCME_FAULT_DIMENSION;
}

static dcme_fault_kind read_row(const char *line, const char *end, int64_t dim, float *row,
                                int64_t *word_size) {
    const char *c = line;
    while (end > line && (is_blank(end[-1]) || end[-1] == '\r'))
        end--;
    while (c < end && !is_blank(*c))
        c++;
    *word_size = c - line;
    while (c < end && is_blank(*c))
        c++;
    const char *fields = c;
    bool finite = true;
    for (int64_t i = 0; i < dim; i++) {
        c = dcme_read_number(c, end, &row[i]);
        if (!c || (c < end && !is_blank(*c)))
            return name_fault(fields, end, dim);
        finite &= isfinite(row[i]) != 0;
        while (c < end && is_blank(*c))
            c++;
    }
    if (c < end)
        return name_fault(fields, end, dim);
    dcme_fault_kind kind = dcme_check_word(line, *word_size);
    return kind != DCME_NO_FAULT || finite ? kind : DCME_FAULT_FINITE;
}

void dcme_read_text(const dcme_block *block, int64_t limit, dcme_rows *rows) {
    const char *line = block->bytes, *stop = block->bytes + block->size;
    rows->offsets[0] = 0;
    rows->count = 0;
    for (int64_t i = 0; i < limit; i++) {
        const char *next = memchr(line, '\n', (stop - line));
        float *values = rows->matrix + rows->count * rows->step;
        int64_t size;
        dcme_fault_kind kind = read_row(line, next ? next : stop, block->dim, values, &size);
        if (!dcme_keep_word(block, rows, i, kind, line, size))
            return;
        line = next ? next + 1 : stop;
    }
}
