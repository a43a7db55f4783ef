/* Words as bytes: find faulty and repeated words, and read the lines of a .vocab file. */
#include "vectors.h"

#include "common/integer.h"
#include "text/text.h"
#include "text/utf8.h"

#include <math.h>
#include <stdlib.h>

void dcme_note_fault(dcme_fault *faults, dcme_fault_kind kind, int64_t row, int64_t offset) {
    dcme_fault *fault = &faults[kind];
    if (fault->count++ == 0) {
        fault->row = row;
        fault->offset = offset;
    }
}

dcme_fault_kind dcme_check_word(const char *word, int64_t size) {
    int64_t valid = dcme_utf8_valid(word, size);
    if (size == 0)
        return DCME_FAULT_EMPTY;
    for (int64_t i = 0; i < valid; i++)
        if (dcme_is_separator(word[i]))
            return DCME_FAULT_SEPARATOR;
    if (valid < size)
        return word[valid] == 0 ? DCME_FAULT_NUL : DCME_FAULT_ENCODING;
    return DCME_NO_FAULT;
}

/* Whether the length of a vector can be computed; only cosines need it. */
static dcme_fault_kind check_length(const float *row, int64_t dim) {
    float sum = 0;
    for (int64_t i = 0; i < dim; i++)
        sum += row[i] * row[i];
    return isfinite(sum) ? DCME_NO_FAULT : DCME_FAULT_LENGTH;
}

bool dcme_keep_word(const dcme_block *block, dcme_rows *rows, int64_t row, dcme_fault_kind kind,
                    const char *word, int64_t size) {
    int64_t filled = rows->offsets[rows->count];
    if (kind == DCME_NO_FAULT && rows->matrix && (rows->skips || !rows->step))
        kind = check_length(rows->matrix + rows->count * rows->step, block->dim);
    if (kind != DCME_NO_FAULT) {
        dcme_note_fault(rows->faults, kind, row, word - block->bytes);
        if (rows->step)
            return rows->skips;
        size = 0;
    }
    memcpy(rows->text + filled, word, size);
    rows->offsets[++rows->count] = filled + size;
    return true;
}

void dcme_check_words(const char *text, const int64_t *offsets, int64_t count, dcme_fault *faults) {
    for (int64_t i = 0; i < count; i++) {
        dcme_fault_kind kind = dcme_check_word(text + offsets[i], offsets[i + 1] - offsets[i]);
        if (kind != DCME_NO_FAULT)
            dcme_note_fault(faults, kind, i, offsets[i]);
    }
}

/* ---- words that repeat ---- */

static dcme_status find_duplicates(dcme_vocabulary *seen, const char *text, const int64_t *offsets,
                                   int64_t count, dcme_fault *faults, dcme_error *error) {
    for (int64_t row = 0; row < count; row++) {
        int64_t size = offsets[row + 1] - offsets[row], types = dcme_vocabulary_types(seen);
        uint32_t id;
        if (size == 0)
            continue;
        DCME_TRY(dcme_vocabulary_add(seen, text + offsets[row], size, 0, &id, error));
        if (dcme_vocabulary_types(seen) == types)
            dcme_note_fault(faults, DCME_FAULT_DUPLICATE, row, offsets[row]);
    }
    return DCME_OK;
}

dcme_status dcme_find_duplicates(const char *text, const int64_t *offsets, int64_t count,
                                 uint64_t seed, dcme_fault *faults, dcme_error *error) {
    dcme_vocabulary *seen = NULL;
    dcme_status status = dcme_vocabulary_open(&seen, seed, error);
    if (status == DCME_OK)
        status = find_duplicates(seen, text, offsets, count, faults, error);
    dcme_vocabulary_close(seen);
    return status;
}

dcme_status dcme_unpack_words(const uint8_t *shared, const char *rests, int64_t size, int64_t count,
                              char *text, int64_t length, int64_t *offsets, dcme_error *error) {
    const char *rest = rests, *stop = rests + size;
    int64_t end = 0, before = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        const char *nul = memchr(rest, 0, stop - rest);
        if (!nul || shared[i] > before || shared[i] + (nul - rest) > length - end)
            return dcme_fail(error, DCME_BAD_FORMAT, i, "word %lld is damaged", (long long)i);
        memcpy(text + end, text + end - before, shared[i]);
        memcpy(text + end + shared[i], rest, nul - rest);
        before = shared[i] + (nul - rest);
        end += before;
        offsets[i + 1] = end;
        rest = nul + 1;
    }
    if (rest != stop || end != length)
        return dcme_fail(error, DCME_BAD_FORMAT, count, "the lengths of the words do not add up");
    return DCME_OK;
}

/* ---- words in byte order ---- */

typedef struct {
    uint64_t prefix; /* the first eight bytes; they decide most comparisons */
    const char *bytes;
    int64_t length, index;
} sorted_word;

static uint64_t prefix_of(const char *word, int64_t length) {
    uint64_t prefix = 0;
    for (int64_t i = 0; i < 8; i++)
        prefix = prefix << 8 | (i < length ? (uint8_t)word[i] : 0);
    return prefix;
}

static int compare_words(const void *a, const void *b) {
    const sorted_word *one = a, *two = b;
    if (one->prefix != two->prefix)
        return one->prefix < two->prefix ? -1 : 1;
    int order = memcmp(one->bytes, two->bytes, dcme_min(one->length, two->length));
    return order ? order : (one->length > two->length) - (one->length < two->length);
}

dcme_status dcme_byte_order(const char *text, const int64_t *offsets, int64_t count, int64_t *order,
                            dcme_error *error) {
    sorted_word *words = malloc((count + 1) * sizeof *words);
    if (!words)
        return dcme_fail(error, DCME_NO_MEMORY, count, "no memory to sort %lld words",
                         (long long)count);
    for (int64_t i = 0; i < count; i++) {
        const char *word = text + offsets[i];
        int64_t length = offsets[i + 1] - offsets[i];
        words[i] = (sorted_word){prefix_of(word, length), word, length, i};
    }
    qsort(words, count, sizeof *words, compare_words);
    for (int64_t i = 0; i < count; i++)
        order[i] = words[i].index;
    free(words);
    return DCME_OK;
}

/* ---- lines of "word" or "word count" ---- */

static dcme_fault_kind read_count_line(const char *line, const char *end, int64_t *word_size,
                                       int64_t *count) {
    const char *space = memchr(line, ' ', (end - line)), *last = space;
    *word_size = (space ? space : end) - line;
    *count = -1;
    for (const char *c = space; c && c < end; c++)
        if (*c == ' ')
            last = c;
    if (space) {
        *count = end - last > 19 ? -1 : dcme_read_integer(last + 1, end);
        if (*count < 0)
            return DCME_FAULT_COUNT;
        if (last != space)
            return DCME_FAULT_SEPARATOR;
    }
    return dcme_check_word(line, *word_size);
}

void dcme_read_counts(const dcme_block *block, int64_t limit, dcme_rows *rows) {
    const char *line = block->bytes, *stop = block->bytes + block->size;
    rows->offsets[0] = 0;
    rows->count = 0;
    for (int64_t i = 0; i < limit; i++) {
        const char *next = memchr(line, '\n', (stop - line));
        const char *end = next ? next : stop;
        int64_t size;
        if (end > line && end[-1] == '\r')
            end--;
        dcme_fault_kind kind = read_count_line(line, end, &size, &rows->counts[i]);
        dcme_keep_word(block, rows, i, kind, line, size);
        line = next ? next + 1 : stop;
    }
}
