/* Counts of words and of n-grams of words; see text.h. */
#include "text/table.h"

#include <stdlib.h>

typedef struct {
    int64_t begin, end; /* offsets in the joined words */
} span;

/* The words of one text. They are joined by single spaces, so that each n-gram is a range of
 * bytes. */
typedef struct {
    char *joined;
    span *words;
    int64_t count, length;
} words_of_text;

static int is_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

static void join(words_of_text *to, const char *text, int64_t length) {
    to->count = to->length = 0;
    for (int64_t i = 0; i < length;) {
        if (is_space(text[i])) {
            i++;
            continue;
        }
        int64_t begin = i;
        while (i < length && !is_space(text[i]))
            i++;
        memcpy(to->joined + to->length, text + begin, i - begin);
        to->words[to->count++] = (span){to->length, to->length + i - begin};
        to->length += i - begin;
        to->joined[to->length++] = ' ';
    }
}

/* Write the columns of the n-grams that start at the first `words` words to `columns`; return how
 * many n-grams have a column. */
static int64_t find(const dcme_vocabulary *v, const words_of_text *text, int64_t words, int64_t n,
                    int32_t *columns) {
    int64_t found = 0;
    for (int64_t i = 0; i + n <= words; i++) {
        const char *gram = text->joined + text->words[i].begin;
        int64_t length = text->words[i + n - 1].end - text->words[i].begin;
        uint64_t hash = dcme_hash(v->seed, gram, length, text->joined + text->length);
        const dcme_slot *slot = dcme_find(v, gram, length, hash);
        if (slot->length)
            columns[found++] = (int32_t)slot->id;
    }
    return found;
}

enum { FEW = 64 }; /* number of features up to which insertion sort is used */

static int compare(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Sort the columns of a row, and merge equal columns into one entry with their count; return the
 * number of entries. */
static int64_t merge(int32_t *columns, float *counts, int64_t n) {
    int64_t kept = 0;
    if (n > FEW)
        qsort(columns, n, sizeof *columns, compare);
    for (int64_t i = 1; i < n && n <= FEW; i++) {
        int32_t column = columns[i];
        int64_t to = i;
        for (; to > 0 && columns[to - 1] > column; to--)
            columns[to] = columns[to - 1];
        columns[to] = column;
    }
    for (int64_t i = 0; i < n; i++) {
        if (kept && columns[kept - 1] == columns[i]) {
            counts[kept - 1]++;
        } else {
            columns[kept] = columns[i];
            counts[kept++] = 1;
        }
    }
    return kept;
}

int64_t dcme_grams_most(const dcme_gram_lengths *lengths, int64_t bytes) {
    return (bytes + 1) / 2 * (1 + dcme_max(1, lengths->longest));
}

dcme_status dcme_count_grams(const dcme_vocabulary *v, const dcme_gram_lengths *lengths,
                             const char *text, const int64_t *offsets, int64_t n, int64_t *starts,
                             int32_t *columns, float *counts, dcme_error *error) {
    int64_t most = 0, end = 0;
    for (int64_t i = 0; i < n; i++)
        most = dcme_max(most, offsets[i + 1] - offsets[i]);
    words_of_text words = {malloc(most + 1), malloc((most / 2 + 1) * sizeof(span)), 0, 0};
    dcme_status status = DCME_OK;
    if (!words.joined || !words.words)
        status = dcme_fail(error, DCME_NO_MEMORY, most, "no memory for a text of %lld bytes",
                           (long long)most);
    starts[0] = 0;
    for (int64_t i = 0; i < n && status == DCME_OK; i++) {
        int32_t *row = columns + end;
        int64_t found = 0;
        join(&words, text + offsets[i], v->types ? offsets[i + 1] - offsets[i] : 0);
        int64_t lead = dcme_min(words.count, lengths->lead);
        found += find(v, &words, words.count, 1, row);
        found += find(v, &words, lead, 1, row + found);
        for (int64_t k = 2; k <= lengths->longest; k++)
            found += find(v, &words, k <= lengths->everywhere ? words.count : lead, k, row + found);
        end += merge(row, counts + end, found);
        starts[i + 1] = end;
    }
    free(words.joined);
    free(words.words);
    return status;
}
