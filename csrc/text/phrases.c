/* Word pairs in a hash table with open addressing and linear probing, 16 bytes per slot. */
#include "text/phrases.h"

#include "text/table.h"

enum { FIRST_CAPACITY = 1 << 12, BATCH = 32, RUN_BITS = 8 * DCME_RUN_MAX, VALUE_BITS = 40 };

/* A slot is free if `value` is 0. No text has more than 2^40 - 1 tokens. */
typedef struct {
    uint32_t left, right;
    uint64_t value : VALUE_BITS, run : RUN_BITS;
} slot;

typedef struct {
    uint32_t left, right;
    dcme_run run;
    uint64_t hash;
} pair;

struct dcme_pairs {
    slot *slots;
    int64_t capacity, most; /* number of slots, a power of two; its maximum */
    int64_t used;
    int32_t bits; /* number of low bits in which all hashes equal `wanted` */
    uint64_t wanted;
    uint32_t held[DCME_RUN_MAX + 1]; /* the last word that may start a pair, and its connectors */
    int32_t holds;
    dcme_run run;
};

static uint64_t hash_of(uint32_t left, uint32_t right, dcme_run run) {
    uint64_t key = (uint64_t)left << 32 | right;
    return dcme_hash_mix(key ^ run * UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t hash_of_slot(const slot *s) { return hash_of(s->left, s->right, (dcme_run)s->run); }

static int is_wanted(const dcme_pairs *pairs, uint64_t hash) {
    return (hash & ((UINT64_C(1) << pairs->bits) - 1)) == pairs->wanted;
}

/* All pairs in a table share the low bits of their hashes, so slots are chosen by the high bits. */
static int64_t first_place(const dcme_pairs *pairs, uint64_t hash) {
    return (hash >> 24) & (pairs->capacity - 1);
}

static slot *find(const dcme_pairs *pairs, const pair *wanted) {
    for (int64_t i = first_place(pairs, wanted->hash);; i = (i + 1) & (pairs->capacity - 1)) {
        slot *s = &pairs->slots[i];
        if (s->value == 0 ||
            (s->left == wanted->left && s->right == wanted->right && s->run == wanted->run))
            return s;
    }
}

static void put(dcme_pairs *pairs, const slot *from) {
    pair moved = {from->left, from->right, (dcme_run)from->run, hash_of_slot(from)};
    *find(pairs, &moved) = *from;
    pairs->used++;
}

static dcme_status fail(int64_t bytes, dcme_error *error) {
    return dcme_no_memory(error, bytes, "the counts of pairs", "use a smaller --memory");
}

static dcme_status grow(dcme_pairs *pairs, dcme_error *error) {
    slot *old = pairs->slots;
    int64_t capacity = pairs->capacity;
    slot *slots = dcme_allocate_zeros(capacity * 2, sizeof *slots);
    if (!slots)
        return fail(capacity * 2 * sizeof *slots, error);
    pairs->slots = slots;
    pairs->capacity = capacity * 2;
    pairs->used = 0;
    for (int64_t i = 0; i < capacity; i++)
        if (old[i].value)
            put(pairs, &old[i]);
    dcme_free(old);
    return DCME_OK;
}

/* Keep only the pairs whose hashes have a zero in the next bit, about half of all pairs. */
static dcme_status halve(dcme_pairs *pairs, dcme_error *error) {
    slot *kept = dcme_allocate(pairs->used, sizeof *kept);
    int64_t n = 0;
    if (!kept)
        return fail(pairs->used * sizeof *kept, error);
    pairs->bits++;
    for (int64_t i = 0; i < pairs->capacity; i++) {
        const slot *s = &pairs->slots[i];
        if (s->value && is_wanted(pairs, hash_of_slot(s)))
            kept[n++] = *s;
    }
    DCME_CLEAR(pairs->slots, pairs->capacity);
    pairs->used = 0;
    for (int64_t i = 0; i < n; i++)
        put(pairs, &kept[i]);
    dcme_free(kept);
    return DCME_OK;
}

/* Make room for one more pair. */
static dcme_status reserve(dcme_pairs *pairs, dcme_error *error) {
    while (pairs->used >= pairs->capacity / 4 * 3) {
        int full = pairs->capacity >= pairs->most && pairs->bits < 24;
        DCME_TRY(full ? halve(pairs, error) : grow(pairs, error));
    }
    return DCME_OK;
}

dcme_status dcme_pairs_open(dcme_pairs **opened, int64_t bytes, int32_t bits, uint64_t value,
                            dcme_error *error) {
    dcme_pairs *pairs = *opened = dcme_allocate_zeros(1, sizeof *pairs);
    if (!pairs)
        return fail(sizeof *pairs, error);
    pairs->capacity = pairs->most = FIRST_CAPACITY;
    pairs->bits = bits;
    pairs->wanted = value;
    /* While the table grows, the old one, half as large, is also in memory. */
    while (pairs->most * 2 <= bytes / (int64_t)(sizeof *pairs->slots * 3 / 2))
        pairs->most *= 2;
    pairs->slots = dcme_allocate_zeros(pairs->capacity, sizeof *pairs->slots);
    if (!pairs->slots)
        return fail(pairs->capacity * sizeof *pairs->slots, error);
    return DCME_OK;
}

void dcme_pairs_close(dcme_pairs *pairs) {
    if (pairs)
        dcme_free(pairs->slots);
    dcme_free(pairs);
}

int64_t dcme_pairs_bits(const dcme_pairs *pairs) { return pairs->bits; }

static void hold(dcme_pairs *pairs, uint32_t id) {
    pairs->held[0] = id;
    pairs->holds = 1;
    pairs->run = 0;
}

/* Append a connector to the run since the last word; return 0 if there is no such word or the run
 * is too long. */
static int continue_run(dcme_pairs *pairs, uint32_t id, uint8_t role) {
    if (pairs->holds == 0 || pairs->holds > DCME_RUN_MAX)
        return 0;
    pairs->held[pairs->holds++] = id;
    pairs->run = pairs->run << 8 | role;
    return 1;
}

static dcme_status tally(dcme_pairs *pairs, const pair *found, int n, dcme_error *error) {
    for (int i = 0; i < n; i++)
        __builtin_prefetch(&pairs->slots[first_place(pairs, found[i].hash)], 1);
    for (int i = 0; i < n; i++) {
        slot *s = find(pairs, &found[i]);
        if (s->value) {
            s->value++;
            continue;
        }
        DCME_TRY(reserve(pairs, error));
        if (!is_wanted(pairs, found[i].hash))
            continue;
        s = find(pairs, &found[i]); /* the table may have been rebuilt */
        *s = (slot){found[i].left, found[i].right, 1, found[i].run};
        pairs->used++;
    }
    return DCME_OK;
}

dcme_status dcme_pairs_count(dcme_pairs *pairs, const uint32_t *ids, int64_t n,
                             const uint8_t *roles, dcme_error *error) {
    pair found[BATCH];
    int waiting = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = ids[i] & ~DCME_SENTENCE_END;
        uint8_t role = roles[word];
        if (role == DCME_ROLE_SIDE) {
            if (pairs->holds) {
                uint64_t hash = hash_of(pairs->held[0], word, pairs->run);
                if (is_wanted(pairs, hash))
                    found[waiting++] = (pair){pairs->held[0], word, pairs->run, hash};
            }
            hold(pairs, word);
        } else if (role == DCME_ROLE_NONE || !continue_run(pairs, word, role)) {
            pairs->holds = 0;
        }
        if (ids[i] & DCME_SENTENCE_END)
            pairs->holds = 0;
        if (waiting == BATCH || (waiting && i + 1 == n)) {
            DCME_TRY(tally(pairs, found, waiting, error));
            waiting = 0;
        }
    }
    return DCME_OK;
}

int64_t dcme_pairs_counted(const dcme_pairs *pairs, int64_t least, uint32_t *left, uint32_t *right,
                           uint32_t *runs, int64_t *counts) {
    int64_t n = 0;
    for (int64_t i = 0; i < pairs->capacity; i++) {
        const slot *s = &pairs->slots[i];
        if (s->value == 0 || s->value < (uint64_t)least)
            continue;
        if (left) {
            left[n] = s->left;
            right[n] = s->right;
            runs[n] = (uint32_t)s->run;
            counts[n] = s->value;
        }
        n++;
    }
    return n;
}

dcme_status dcme_pairs_add(dcme_pairs *pairs, uint32_t left, uint32_t right, dcme_run run,
                           uint32_t joined, dcme_error *error) {
    pair added = {left, right, run, hash_of(left, right, run)};
    pairs->most = INT64_MAX / 2; /* no limit: pairs may be dropped only while counting */
    DCME_TRY(reserve(pairs, error));
    slot *s = find(pairs, &added);
    if (s->value == 0) {
        *s = (slot){left, right, (uint64_t)joined + 1, run};
        pairs->used++;
    }
    return DCME_OK;
}

static int64_t release(dcme_pairs *pairs, uint32_t *to) {
    DCME_COPY(to, pairs->held, pairs->holds);
    int64_t n = pairs->holds;
    pairs->holds = 0;
    return n;
}

int64_t dcme_pairs_join(dcme_pairs *pairs, const uint32_t *ids, int64_t n, const uint8_t *roles,
                        int32_t last, uint32_t *to) {
    int64_t written = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = ids[i] & ~DCME_SENTENCE_END, end = ids[i] & DCME_SENTENCE_END;
        uint8_t role = roles[word];
        if (role == DCME_ROLE_SIDE) {
            pair wanted = {pairs->held[0], word, pairs->run, 0};
            wanted.hash = hash_of(wanted.left, word, wanted.run);
            const slot *s = pairs->holds ? find(pairs, &wanted) : NULL;
            if (s && s->value) {
                pairs->holds = 0;
                to[written++] = (uint32_t)(s->value - 1) | end;
                continue;
            }
            written += release(pairs, to + written);
            hold(pairs, ids[i]);
        } else if (role == DCME_ROLE_NONE || !continue_run(pairs, ids[i], role)) {
            written += release(pairs, to + written);
            to[written++] = ids[i];
        }
        if (end)
            written += release(pairs, to + written);
    }
    return last ? written + release(pairs, to + written) : written;
}

int64_t dcme_ids_text(const uint32_t *ids, int64_t n, const char *words, const int64_t *offsets,
                      char *text) {
    int64_t length = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t word = ids[i] & ~DCME_SENTENCE_END;
        int64_t bytes = offsets[word + 1] - offsets[word];
        if (text) {
            memcpy(text + length, words + offsets[word], bytes);
            text[length + bytes] = ids[i] & DCME_SENTENCE_END ? '\n' : ' ';
        }
        length += bytes + 1;
    }
    return length;
}
