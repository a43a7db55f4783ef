/* See ngrams.h. */
#include "text/ngrams.h"

#include "text/table.h"

/* The 32-bit FNV-1a hash (Fowler, Noll and Vo). */
static const uint32_t START = 2166136261u, PRIME = 16777619u;

/* fastText sign-extends each byte, so the buckets in its files depend on this. */
static uint32_t extend(uint32_t hash, char byte) {
    return (hash ^ (uint32_t)(int32_t)(int8_t)byte) * PRIME;
}

/* Return a byte of "<word>". */
static char byte_at(const char *word, int64_t length, int64_t i) {
    return i == 0 ? '<' : i == length + 1 ? '>' : word[i - 1];
}

/* Whether a byte continues a UTF-8 character. */
static int continues(char byte) { return ((uint8_t)byte & 0xc0) == 0x80; }

int64_t dcme_ngrams_of(const dcme_ngrams *ngrams, const char *word, int64_t length, int32_t *out) {
    int64_t found = 0, end = length + 2;
    if (length == 4 && memcmp(word, "</s>", 4) == 0)
        return 0;
    for (int64_t i = 0; i < end; i++) {
        uint32_t hash = START;
        if (continues(byte_at(word, length, i)))
            continue;
        for (int64_t j = i, n = 1; j < end && n <= ngrams->longest; n++) {
            do
                hash = extend(hash, byte_at(word, length, j++));
            while (j < end && continues(byte_at(word, length, j)));
            if (n < ngrams->shortest || (n == 1 && (i == 0 || j == end)))
                continue; /* too short, or < or > alone */
            if (out)
                out[found] = (int32_t)(hash % ngrams->buckets);
            found++;
        }
    }
    return found;
}

int64_t dcme_mark_word(const char *word, int64_t length, int64_t most, char *out) {
    int64_t end = 0;
    for (; end < length && (most > 0 || continues(word[end])); end++)
        most -= !continues(word[end]);
    out[0] = ' ';
    out[1] = '<';
    DCME_COPY(out + 2, word, end);
    out[end + 2] = '>';
    return end + 3;
}

/* Write the ID of an n-gram, which begins with a space, and increase `count` if the n-gram has an
 * ID. */
static dcme_status number(dcme_vocabulary *v, const char *ngram, int64_t length, const char *end,
                          int32_t learns, int32_t *out, int64_t *count, dcme_error *error) {
    if (learns)
        DCME_TRY(dcme_reserve(v, 1, error));
    uint64_t hash = dcme_hash(v->seed, ngram, length, end);
    dcme_slot *slot = dcme_find(v, ngram, length, hash);
    if (slot->length == 0 && learns)
        DCME_TRY(dcme_insert(v, slot, ngram, length, hash, error));
    if (slot->length)
        out[(*count)++] = (int32_t)slot->id;
    return DCME_OK;
}

dcme_status dcme_ngrams_number(dcme_vocabulary *v, const dcme_ngrams *ngrams, char *word,
                               int64_t length, const char *end, int32_t learns, int32_t *out,
                               int64_t *count, dcme_error *error) {
    dcme_status status = DCME_OK;
    *count = 0;
    for (int64_t i = 1; i < length && status == DCME_OK; i++) {
        if (continues(word[i]))
            continue;
        char before = word[i - 1];
        word[i - 1] = ' ';
        for (int64_t j = i, n = 1; j < length && n <= ngrams->longest; n++) {
            do
                j++;
            while (j < length && continues(word[j]));
            if (n < ngrams->shortest || (n == 1 && (i == 1 || j == length)))
                continue; /* too short, or < or > alone */
            status = number(v, word + i - 1, j - i + 1, end, learns, out, count, error);
            if (status != DCME_OK)
                break;
        }
        word[i - 1] = before;
    }
    return status;
}
