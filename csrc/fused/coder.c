/* Entropy coding of levels and numbers: an adaptive binary range coder.
 *
 * Each bit has a probability that the bits before it in the same context have set, and costs -log2
 * of it. Encoder and decoder walk through the same code, so that they cannot disagree: code_bit
 * writes the bit that it is given, or reads one. All arithmetic is in integers: the same bytes on
 * every machine. A decoder never reads or writes out of bounds, whatever its input.
 */
#include "fused/fused.h"

enum {
    TOP = 1 << 24,
    ONE = 1 << 16, /* probabilities are 16 bits */
    LIMIT = 60,    /* bits after which a context forgets old ones */
    KINDS = 32     /* contexts of a row of levels */
};

typedef struct {
    uint16_t p; /* that the next bit is 1 */
    uint16_t count;
} context;

typedef struct {
    int decoding;
    uint8_t *out; /* encoding */
    const uint8_t *in;
    int64_t size, room; /* bytes so far, and at most */
    uint64_t low;
    uint32_t range, code;
    uint8_t cache;
    int64_t pending; /* bytes that a carry may still change */
    int started;
} coder;

/* ---- the range coder ---- */

static void put(coder *c, uint8_t byte) {
    if (c->size < c->room)
        c->out[c->size] = byte;
    c->size++;
}

static uint8_t get(coder *c) {
    uint8_t byte = c->size < c->room ? c->in[c->size] : 0;
    c->size++;
    return byte;
}

static void shift_low(coder *c) {
    if (c->low < 0xFF000000U || c->low >> 32) {
        uint8_t carry = (uint8_t)(c->low >> 32);
        if (c->started)
            put(c, (uint8_t)(c->cache + carry));
        for (; c->pending; c->pending--)
            put(c, (uint8_t)(0xFF + carry));
        c->cache = (uint8_t)(c->low >> 24);
        c->started = 1;
    } else {
        c->pending++;
    }
    c->low = (c->low & 0x00FFFFFF) << 8;
}

static void start(coder *c, int decoding, uint8_t *out, const uint8_t *in, int64_t room) {
    *c = (coder){.decoding = decoding, .out = out, .in = in, .room = room, .range = UINT32_MAX};
    for (int i = 0; decoding && i < 4; i++)
        c->code = c->code << 8 | get(c);
}

static void finish(coder *c) {
    for (int i = 0; !c->decoding && i < 5; i++)
        shift_low(c);
}

/* Write `bit`, or read and return it; p of 2^16 is the probability that it is 1. */
static int code_with(coder *c, uint32_t p, int bit) {
    uint32_t bound = (c->range >> 16) * (p < 32 ? 32 : p > ONE - 32 ? ONE - 32 : p);
    if (c->decoding)
        bit = c->code < bound;
    if (bit) {
        c->range = bound;
    } else {
        c->range -= bound;
        if (c->decoding)
            c->code -= bound;
        else
            c->low += bound;
    }
    while (c->range < TOP) {
        c->range <<= 8;
        if (c->decoding)
            c->code = c->code << 8 | get(c);
        else
            shift_low(c);
    }
    return bit;
}

/* Move a context's probability to the bit, by the share that one of count + 1.5 bits has. */
static void learn(context *x, int bit) {
    int32_t twice = 2 * ((bit ? ONE - 1 : 0) - x->p);
    if (x->count == LIMIT) { /* a constant divisor is a multiplication */
        x->p = (uint16_t)(x->p + twice / (2 * LIMIT + 3));
    } else {
        x->p = (uint16_t)(x->p + twice / (2 * x->count + 3));
        x->count++;
    }
}

static int code_bit(coder *c, context *x, int bit) {
    bit = code_with(c, x->p, bit);
    learn(x, bit);
    return bit;
}

static void open_contexts(context *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        x[i] = (context){ONE / 2, 0};
}

/* A number of `bits` bits, the highest first; the tree has 1 << bits contexts. */
static uint32_t code_tree(coder *c, context *tree, int bits, uint32_t value) {
    uint32_t node = 1;
    for (int i = bits - 1; i >= 0; i--)
        node = node << 1 | (uint32_t)code_bit(c, tree + node, value >> i & 1);
    return node - (1U << bits);
}

enum { NUMBER = 64 + 32 * 4 }; /* contexts of code_number */

/* Any number: its length in bits, the two bits below the highest by context, the others plain. */
static uint32_t code_number(coder *c, context *contexts, uint32_t value) {
    int length = 0;
    while (length < 32 && value >> length)
        length++;
    length = (int)code_tree(c, contexts, 6, (uint32_t)length);
    length = length > 32 ? 32 : length;
    uint32_t found = length > 0;
    for (int i = length - 2; i >= 0; i--) {
        int bit = value >> i & 1;
        if (i >= length - 3)
            bit = code_bit(c,
                           contexts + 64 + 4 * (length - 1) + (i == length - 3) * 2 +
                               (i == length - 3 ? (int)(found & 1) : 0),
                           bit);
        else
            bit = code_with(c, ONE / 2, bit);
        found = found << 1 | (uint32_t)bit;
    }
    return found;
}

/* ---- levels ---- */

typedef struct {
    context counts[KINDS][NUMBER]; /* of levels in a row */
    context there[8][8];          /* by how many are still to come, and the share of the row left */
    context sign[KINDS][2][4];    /* by whether there was a positive one, and negative ones */
    context level[KINDS][2][128]; /* by the sign */
} level_contexts;

/* A row of `classes` levels with signs, 0 for none. Encoding takes them from `row`; decoding writes
 * those that are there, and their columns, up to `room` of them. Returns how many there are. */
static int64_t code_row(coder *c, level_contexts *x, int kind, const int8_t *row, int64_t classes,
                        int32_t *columns, int8_t *levels, int64_t room) {
    int64_t left = 0, found = 0, share = 0; /* share: 8 left / cells */
    int positive = 0, negative = 0;
    for (int64_t j = 0; !c->decoding && j < classes; j++)
        left += row[j] != 0;
    left = code_number(c, x->counts[kind], (uint32_t)left);
    for (int64_t j = 0; left && j < classes; j++) {
        int64_t cells = classes - j;
        int level = c->decoding ? 0 : row[j];
        if (left < cells) {
            while (8 * left >= (share + 1) * cells)
                share++;
            while (8 * left < share * cells)
                share--;
            if (!code_bit(c, &x->there[left < 8 ? left : 7][share], level != 0))
                continue;
        }
        left--;
        int sign = code_bit(c, &x->sign[kind][positive][negative], level < 0);
        level = (int)code_tree(c, x->level[kind][sign], 7, (uint32_t)(level < 0 ? -level : level));
        if (c->decoding && level && found < room) {
            columns[found] = (int32_t)j;
            levels[found] = (int8_t)(sign ? -level : level);
        }
        found += level != 0;
        positive |= !sign;
        negative += sign && negative < 3;
    }
    return found;
}

dcme_status dcme_code_levels(int decoding, uint8_t *bytes, int64_t room, int64_t *size,
                             const dcme_level_rows *levels, dcme_error *error) {
    level_contexts *x = dcme_allocate(1, sizeof *x);
    int8_t *row = dcme_allocate_zeros(levels->classes, 1);
    int64_t found = 0;
    coder c;
    if (!x || !row) {
        dcme_free(x), dcme_free(row);
        return dcme_no_memory(error, sizeof *x + levels->classes, "levels", "free some");
    }
    open_contexts((context *)x, sizeof *x / sizeof(context));
    start(&c, decoding, bytes, bytes, room);
    for (int64_t i = 0; i < levels->rows && found <= levels->entries; i++) {
        for (int64_t k = levels->starts[i]; !decoding && k < levels->starts[i + 1]; k++)
            row[levels->columns[k]] = levels->levels[k];
        int64_t at = found;
        found += code_row(&c, x, levels->kinds[i] % KINDS, row, levels->classes,
                          levels->columns + at, levels->levels + at, levels->entries - at);
        for (int64_t k = levels->starts[i]; !decoding && k < levels->starts[i + 1]; k++)
            row[levels->columns[k]] = 0;
        if (decoding)
            levels->starts[i] = at;
    }
    finish(&c);
    if (decoding)
        levels->starts[levels->rows] = found;
    dcme_free(x), dcme_free(row);
    *size = c.size;
    return found == levels->entries
               ? DCME_OK
               : dcme_fail(error, DCME_BAD_FORMAT, found, "the coded levels are damaged");
}

/* ---- numbers ---- */

dcme_status dcme_code_numbers(int decoding, uint8_t *bytes, int64_t room, int64_t *size,
                              uint32_t *numbers, int64_t n, int32_t bits, dcme_error *error) {
    context x[NUMBER > 256 ? NUMBER : 256];
    coder c;
    if (bits < 0 || bits > 8)
        return dcme_fail(error, DCME_BAD_ARGUMENT, bits, "numbers have up to 8 bits");
    open_contexts(x, sizeof x / sizeof *x);
    start(&c, decoding, bytes, bytes, room);
    for (int64_t i = 0; i < n; i++) {
        uint32_t value = decoding ? 0 : numbers[i];
        value = bits ? code_tree(&c, x, bits, value) : code_number(&c, x, value);
        if (decoding)
            numbers[i] = value;
    }
    finish(&c);
    *size = c.size;
    return DCME_OK;
}
