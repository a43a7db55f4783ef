/* The encoder: finds the words in a block, counts them and writes their IDs.
 *
 * For every 64 bytes, two bit masks are computed: one of separators and one of newlines. Words
 * start and end where the separator bit changes. Words are looked up in batches: all hashes are
 * computed first, each with a prefetch of its slot, then all slots are read, so that cache misses
 * overlap.
 */
#include "text/table.h"

#include "text/utf8.h"

enum { STEP = 64, BATCH = 256, ROOM = BATCH + STEP };

typedef struct {
    int64_t borders[2 * ROOM]; /* start, end, start, end, ... as offsets into the block */
    int64_t n;                 /* number of borders; odd if the last word is unfinished */
    uint64_t hashes[ROOM];
    uint32_t last[ROOM]; /* DCME_SENTENCE_END if a line ends after the word */
} batch;

typedef struct {
    dcme_vocabulary *vocabulary;
    const char *text;
    int64_t length;
    dcme_refusal refuse;
    uint32_t *ids;
    dcme_encoded *block;
    dcme_error *error;
    batch batch;
} encoder;

static inline uint64_t every(uint8_t byte) { return UINT64_C(0x0101010101010101) * byte; }

/* Set bit 7 of each byte of which the low seven bits are at least `least`; `low` contains these
 * bits. */
static inline uint64_t at_least(uint64_t low, uint8_t least) {
    return low + every((uint8_t)(0x80 - least));
}

/* Gather bit 7 of each of eight bytes into one byte. */
static inline uint64_t gather(uint64_t flags) {
    return ((flags & every(0x80)) >> 7) * UINT64_C(0x0102040810204080) >> 56;
}

/* Compute the masks of separators and of newlines in 64 bytes. */
static inline void classify(const char *text, uint64_t *separators, uint64_t *newlines) {
    *separators = *newlines = 0;
    for (int i = 0; i < STEP; i += 8) {
        uint64_t x = dcme_load(text + i), low = x & every(0x7f);
        uint64_t control = at_least(low, '\t') & ~at_least(low, '\r' + 1);
        uint64_t space = at_least(low, ' ') & ~at_least(low, ' ' + 1);
        uint64_t newline = at_least(low, '\n') & ~at_least(low, '\n' + 1);
        *separators |= gather((control | space) & ~x) << i;
        *newlines |= gather(newline & ~x) << i;
    }
}

/* Check the encoding of a new word: sets block->bad if it is rejected. */
static dcme_status check_word(encoder *e, int64_t start, int64_t length) {
    const char *word = e->text + start;
    const char *nul = e->refuse >= DCME_REFUSE_NUL ? memchr(word, 0, length) : NULL;
    int64_t valid = e->refuse >= DCME_REFUSE_BROKEN ? dcme_utf8_valid(word, length) : length;
    if (!nul && valid == length)
        return DCME_OK;
    e->block->bad = start + (nul ? nul - word : valid);
    return dcme_fail(e->error, DCME_BAD_ENCODING, e->block->bad, "the text is not UTF-8");
}

static dcme_status look_up(encoder *e, int64_t i) {
    dcme_vocabulary *v = e->vocabulary;
    batch *b = &e->batch;
    int64_t start = b->borders[2 * i], length = b->borders[2 * i + 1] - start;
    const char *word = e->text + start;
    dcme_slot *slot = dcme_find(v, word, length, b->hashes[i]);
    if (slot->length == 0) {
        DCME_TRY(check_word(e, start, length));
        DCME_TRY(dcme_insert(v, slot, word, length, b->hashes[i], e->error));
    }
    v->counts[slot->id]++;
    if (e->ids)
        e->ids[e->block->tokens] = slot->id | b->last[i];
    e->block->tokens++;
    return DCME_OK;
}

/* Look up all complete words in the batch, and keep the start of an unfinished word. */
static dcme_status flush(encoder *e) {
    batch *b = &e->batch;
    int64_t words = b->n / 2;
    DCME_TRY(dcme_reserve(e->vocabulary, words, e->error));
    uint64_t mask = e->vocabulary->capacity - 1;
    for (int64_t i = 0; i < words; i++) {
        int64_t start = b->borders[2 * i], length = b->borders[2 * i + 1] - start;
        b->hashes[i] = dcme_hash(e->vocabulary->seed, e->text + start, length, e->text + e->length);
        __builtin_prefetch(&e->vocabulary->slots[b->hashes[i] & mask]);
    }
    for (int64_t i = 0; i < words; i++)
        DCME_TRY(look_up(e, i));
    DCME_CLEAR(b->last, words);
    b->borders[0] = b->borders[2 * words];
    b->n &= 1;
    return DCME_OK;
}

/* A line ends: mark its last word, either in this batch or, if the word has been looked up already,
 * in the IDs. */
static void end_line(encoder *e, int64_t words) {
    dcme_encoded *block = e->block;
    block->newlines++;
    if (words > 0)
        e->batch.last[words - 1] = DCME_SENTENCE_END;
    else if (block->tokens == 0)
        block->newline_first = 1;
    else if (e->ids)
        e->ids[block->tokens - 1] |= DCME_SENTENCE_END;
}

/* Add the borders of the words in the 64 bytes at `base`, given the masks of these bytes. */
static void add_borders(encoder *e, int64_t base, uint64_t changes, uint64_t newlines) {
    batch *b = &e->batch;
    for (; newlines; newlines &= newlines - 1) {
        uint64_t before = changes & (newlines ^ (newlines - 1));
        end_line(e, (b->n + __builtin_popcountll(before)) / 2);
    }
    int64_t n = b->n;
    for (; changes; changes &= changes - 1)
        b->borders[n++] = base + __builtin_ctzll(changes);
    b->n = n;
}

dcme_status dcme_encode(dcme_vocabulary *vocabulary, const char *text, int64_t length,
                        dcme_refusal refuse, uint32_t *ids, dcme_encoded *block,
                        dcme_error *error) {
    encoder e = {vocabulary, text, length, refuse, ids, block, error, {.n = 0}};
    uint64_t separators, newlines, separator_before = 1;
    *block = (dcme_encoded){.bad = -1};
    for (int64_t base = 0; base < length; base += STEP) {
        char rest[STEP];
        const char *bytes = text + base;
        if (length - base < STEP) {
            memset(rest, ' ', sizeof rest);
            bytes = memcpy(rest, bytes, (length - base));
        }
        classify(bytes, &separators, &newlines);
        add_borders(&e, base, separators ^ (separators << 1 | separator_before), newlines);
        separator_before = separators >> 63;
        if (e.batch.n >= 2 * BATCH)
            DCME_TRY(flush(&e));
    }
    if (e.batch.n & 1)
        e.batch.borders[e.batch.n++] = length;
    return flush(&e);
}
