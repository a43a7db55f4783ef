/* The tokenizer of raw text.
 *
 * ASCII takes the fast path: one table lookup per byte. Other text is split into pieces at ASCII
 * whitespace, which normalization never combines with other characters. A piece without unstable
 * characters is its own normal form (the quick check of Unicode Standard Annex 15); any other piece
 * is decomposed, put into canonical order and composed (ibid., and section 3.12 of the standard for
 * Hangul).
 */
#include "text/tokenize.h"

#include <stdlib.h>

#include "text/utf8.h"

/* Code points above the Unicode range stand for bytes that are not UTF-8. */
enum { BYTE = DCME_UNICODE_END, ASCII = 0x80 };

/* Two more actions for a byte, besides its kinds: keep a line feed, or leave the ASCII path. */
enum { NEWLINE = DCME_KIND + 1, OTHER };

/* Hangul syllables are computed: base + (leading * 21 + vowel) * 28 + trailing. */
enum {
    SYLLABLES = 0xac00,
    LEADING = 0x1100,
    VOWELS = 0x1161,
    TRAILING = 0x11a7, /* no trailing consonant */
    N_LEADING = 19,
    N_VOWELS = 21,
    N_TRAILING = 28,
    N_SYLLABLES = N_LEADING * N_VOWELS * N_TRAILING
};

typedef struct {
    int32_t *items;
    int64_t n, capacity;
} characters;

struct dcme_tokenizer {
    dcme_unicode unicode;
    uint8_t actions[256]; /* for each byte: its kind after `mapping`, or NEWLINE or OTHER */
    char lower[256];      /* each ASCII character after `mapping` was applied */
    characters piece, scratch;
    char *out;
    int64_t length, capacity;
    const uint8_t *bad; /* the first byte that is not UTF-8 text, or NULL */
    int in_token;       /* whether the last byte written belongs to a token that may continue */
    int64_t joined;     /* size of the joiners after the output, kept if the token continues */
};

static inline int32_t look_up(const dcme_character_table *table, int32_t c) {
    return table->values[(int64_t)table->pages[c >> 8] << 8 | (c & 255)];
}

static inline int32_t property(const dcme_tokenizer *t, int32_t c) {
    return c >= BYTE ? DCME_WORD : look_up(&t->unicode.properties, c);
}

static inline int32_t combining_class(const dcme_tokenizer *t, int32_t c) {
    return c >= BYTE ? 0 : look_up(&t->unicode.combining, c);
}

/* Return the *n characters that `c` is replaced by according to a table; this may be `c` itself.
 */
static inline const int32_t *replacement(const dcme_tokenizer *t, const dcme_character_table *table,
                                         int32_t *c, int32_t *n) {
    int32_t entry = *c >= BYTE ? 0 : look_up(table, *c);
    if (entry < 0) {
        *n = t->unicode.sequences[-entry];
        return &t->unicode.sequences[-entry + 1];
    }
    *c = entry ? entry : *c;
    *n = 1;
    return c;
}

static dcme_status reserve_characters(characters *list, int64_t n, dcme_error *error) {
    int64_t capacity = 2 * n + 64, bytes = capacity * (int64_t)sizeof *list->items;
    if (n <= list->capacity)
        return DCME_OK;
    int32_t *items = (uint64_t)bytes > SIZE_MAX ? NULL : realloc(list->items, bytes);
    if (!items)
        return dcme_no_memory(error, bytes, "characters of a token", "shorten the token");
    list->items = items;
    list->capacity = capacity;
    return DCME_OK;
}

/* Reserve space for `more` bytes of output. */
static dcme_status reserve_bytes(dcme_tokenizer *t, int64_t more, dcme_error *error) {
    int64_t capacity = 2 * (t->length + more);
    if (capacity / 2 <= t->capacity)
        return DCME_OK;
    char *out = realloc(t->out, capacity);
    if (!out)
        return dcme_no_memory(error, capacity, "tokenized text", "give shorter texts");
    t->out = out;
    t->capacity = capacity;
    return DCME_OK;
}

/* Decode one character of valid UTF-8, or one byte that is not, and step past it. */
static inline int32_t decode(const uint8_t **at, const uint8_t *end) {
    const uint8_t *p = *at;
    int64_t size = dcme_utf8_length(p, end - p);
    if (size <= 0) { /* not UTF-8, or NUL */
        *at = p + 1;
        return BYTE + p[0];
    }
    *at = p + size;
    if (size == 1)
        return p[0];
    int32_t c = p[0] & (0xff >> (size + 1));
    for (int64_t i = 1; i < size; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

static inline int64_t encode(int32_t c, char *out) {
    int64_t size = c < ASCII || c >= BYTE ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int64_t i = size - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(size > 1 ? 0xf00 >> size | c : c);
    return size;
}

/* Write one character according to its kind. The caller must have reserved memory for a space and
 * four bytes. */
static inline void put(dcme_tokenizer *t, int32_t c, int32_t kind) {
    if (kind == DCME_REMOVED)
        return;
    if (kind == DCME_JOINER) {
        if (t->in_token)
            t->joined += encode(c, t->out + t->length + t->joined);
        return;
    }
    if (kind == DCME_SEPARATOR) {
        t->in_token = 0;
        return;
    }
    if (!t->in_token || kind == DCME_SINGLE)
        t->out[t->length++] = ' ';
    else
        t->length += t->joined;
    t->joined = 0;
    t->length += encode(c, t->out + t->length);
    t->in_token = kind == DCME_WORD;
}

/* ---- normalization ------------------------------------------------------------------------- */

static dcme_status append(characters *list, int32_t c, dcme_error *error) {
    DCME_TRY(reserve_characters(list, list->n + 1, error));
    list->items[list->n++] = c;
    return DCME_OK;
}

static dcme_status decompose(dcme_tokenizer *t, int32_t c, characters *to, dcme_error *error) {
    int32_t syllable = c - SYLLABLES, n;
    const int32_t *parts = replacement(t, &t->unicode.decompositions, &c, &n);
    int32_t jamo[] = {LEADING + syllable / (N_VOWELS * N_TRAILING),
                      VOWELS + syllable / N_TRAILING % N_VOWELS, TRAILING + syllable % N_TRAILING};
    if (syllable >= 0 && syllable < N_SYLLABLES) {
        parts = jamo;
        n = 2 + (jamo[2] > TRAILING);
    }
    for (int32_t i = 0; i < n; i++)
        DCME_TRY(append(to, parts[i], error));
    return DCME_OK;
}

typedef struct {
    int32_t combining_class, position, character;
} mark;

static int by_class(const void *a, const void *b) {
    const mark *left = a, *right = b;
    if (left->combining_class != right->combining_class)
        return left->combining_class < right->combining_class ? -1 : 1;
    return (left->position > right->position) - (left->position < right->position);
}

/* Sort a run of n marks by their class with a stable sort. Runs are short, but hostile text may
 * contain one of a megabyte, which would take insertion sort hours. */
static dcme_status sort_marks(const dcme_tokenizer *t, int32_t *items, int64_t n,
                              dcme_error *error) {
    int ordered = 1;
    for (int64_t i = 1; i < n; i++)
        ordered &= combining_class(t, items[i - 1]) <= combining_class(t, items[i]);
    if (ordered)
        return DCME_OK;
    mark few[32], *marks = n <= 32 ? few : dcme_allocate(n, sizeof *marks);
    if (!marks || n > INT32_MAX)
        return dcme_no_memory(error, n * (int64_t)sizeof *marks, "marks", "shorten the token");
    for (int64_t i = 0; i < n; i++)
        marks[i] = (mark){combining_class(t, items[i]), (int32_t)i, items[i]};
    qsort(marks, n, sizeof *marks, by_class);
    for (int64_t i = 0; i < n; i++)
        items[i] = marks[i].character;
    if (marks != few)
        dcme_free(marks);
    return DCME_OK;
}

static dcme_status order(const dcme_tokenizer *t, characters *list, dcme_error *error) {
    for (int64_t i = 0; i < list->n;) {
        int64_t from = i;
        while (i < list->n && combining_class(t, list->items[i]) > 0)
            i++;
        DCME_TRY(sort_marks(t, list->items + from, i - from, error));
        i += i == from;
    }
    return DCME_OK;
}

/* Return the character into which two characters are composed, or 0 if there is none. */
static int32_t composite(const dcme_tokenizer *t, int32_t first, int32_t second) {
    int32_t leading = first - LEADING, vowel = second - VOWELS;
    if (leading >= 0 && leading < N_LEADING && vowel >= 0 && vowel < N_VOWELS)
        return SYLLABLES + (leading * N_VOWELS + vowel) * N_TRAILING;
    int32_t syllable = first - SYLLABLES, trailing = second - TRAILING;
    if (syllable >= 0 && syllable < N_SYLLABLES && syllable % N_TRAILING == 0 && trailing > 0 &&
        trailing < N_TRAILING)
        return first + trailing;
    const dcme_unicode *u = &t->unicode;
    uint64_t wanted = (uint64_t)first << 32 | (uint32_t)second;
    int64_t low = 0, high = u->n_pairs;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (u->pairs[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < u->n_pairs && u->pairs[low] == wanted ? u->composites[low] : 0;
}

/* Compose in place: a character is composed with the last starter unless it is blocked, which means
 * that a character between them has at least as high a class (definition D115 of the standard). */
static void compose(const dcme_tokenizer *t, characters *list) {
    int64_t starter = -1, n = 0;
    int32_t last_class = 0;
    for (int64_t i = 0; i < list->n; i++) {
        int32_t c = list->items[i], class = combining_class(t, c), joined = 0;
        int blocked = n > starter + 1 && last_class >= class;
        if (starter >= 0 && !blocked && c < BYTE && list->items[starter] < BYTE)
            joined = composite(t, list->items[starter], c);
        if (joined) {
            list->items[starter] = joined;
            continue;
        }
        if (class == 0)
            starter = n;
        last_class = class;
        list->items[n++] = c;
    }
    list->n = n;
}

/* Replace the piece by its normal form. */
static dcme_status normalize(dcme_tokenizer *t, dcme_error *error) {
    characters *to = &t->scratch, piece = t->piece;
    to->n = 0;
    for (int64_t i = 0; i < piece.n; i++)
        DCME_TRY(decompose(t, piece.items[i], to, error));
    int64_t n = 0;
    for (int64_t i = 0; i < to->n; i++)
        if ((property(t, to->items[i]) & DCME_KIND) != DCME_REMOVED)
            to->items[n++] = to->items[i];
    to->n = n;
    DCME_TRY(order(t, to, error));
    compose(t, to);
    t->piece = *to;
    *to = piece;
    return DCME_OK;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Tokenize text without ASCII white space. */
static dcme_status put_piece(dcme_tokenizer *t, const uint8_t *text, const uint8_t *end,
                             dcme_error *error) {
    int32_t seen = 0;
    t->piece.n = 0;
    DCME_TRY(reserve_characters(&t->piece, end - text, error));
    while (text < end) {
        const uint8_t *before = text;
        int32_t c = decode(&text, end);
        if (c >= BYTE && !t->bad)
            t->bad = before;
        seen |= property(t, c);
        t->piece.items[t->piece.n++] = c;
    }
    if (t->unicode.normalize && seen & DCME_UNSTABLE)
        DCME_TRY(normalize(t, error));
    for (int64_t i = 0; i < t->piece.n; i++) {
        int32_t n;
        const int32_t *parts = replacement(t, &t->unicode.mapping, &t->piece.items[i], &n);
        DCME_TRY(reserve_bytes(t, t->joined + 5 * (int64_t)n, error));
        for (int32_t k = 0; k < n; k++)
            put(t, parts[k], property(t, parts[k]) & DCME_KIND);
    }
    return DCME_OK;
}

/* Tokenize ASCII text from `at` on, and return the first byte that is not ASCII. Separators and
 * parts of tokens are handled without branches, because words are too short for branches to be
 * predicted. `piece` and `piece_length` are set to the start of the last piece in the text and in
 * the output. */
static const uint8_t *put_ascii(dcme_tokenizer *t, const uint8_t *at, const uint8_t *end,
                                const uint8_t **piece, int64_t *piece_length) {
    char *out = t->out;
    int64_t n = t->length;
    int in_token = 0;
    for (; at < end; at++) {
        uint8_t action = t->actions[*at];
        if (action <= DCME_WORD) {
            out[n] = ' ';
            n += action & !in_token;
            out[n] = t->lower[*at];
            n += action;
            in_token = action;
        } else if (action == NEWLINE) {
            out[n++] = '\n';
            in_token = 0;
        } else if (action == DCME_SINGLE) {
            out[n++] = ' ';
            out[n++] = t->lower[*at];
            in_token = 0;
        } else if (action == OTHER) {
            break;
        }
        int space = dcme_is_separator((char)*at);
        *piece = space ? at + 1 : *piece;
        *piece_length = space ? n : *piece_length;
    }
    t->length = n;
    return at;
}

dcme_status dcme_tokenize(dcme_tokenizer *t, const char *text, int64_t length, const char **out,
                          int64_t *out_length, int64_t *bad, dcme_error *error) {
    const uint8_t *start = (const uint8_t *)text, *at = start, *end = start + length;
    t->length = 0;
    t->bad = NULL;
    while (at < end) {
        /* An ASCII byte becomes at most two bytes: a space and the byte. */
        DCME_TRY(reserve_bytes(t, 2 * (end - at) + 8, error));
        const uint8_t *piece = at;
        int64_t piece_length = t->length;
        at = put_ascii(t, at, end, &piece, &piece_length);
        if (at == end)
            break;
        while (at < end && !dcme_is_separator((char)*at))
            at++;
        t->length = piece_length;
        t->in_token = 0;
        DCME_TRY(put_piece(t, piece, at, error));
    }
    *bad = t->bad ? t->bad - start : -1;
    *out = t->out;
    *out_length = t->length;
    return DCME_OK;
}

dcme_status dcme_tokenizer_open(dcme_tokenizer **tokenizer, const dcme_unicode *unicode,
                                dcme_error *error) {
    dcme_tokenizer *t = *tokenizer = dcme_allocate_zeros(1, sizeof *t);
    if (!t)
        return dcme_no_memory(error, sizeof *t, "a tokenizer", "free some memory");
    t->unicode = *unicode;
    memset(t->actions, OTHER, sizeof t->actions);
    for (int32_t c = 1; c < ASCII; c++) {
        int32_t lower = look_up(&unicode->mapping, c);
        if (lower < 0 || lower >= ASCII || property(t, c) & DCME_UNSTABLE)
            return dcme_fail(error, DCME_BAD_ARGUMENT, c, "ASCII must become ASCII");
        t->lower[c] = (char)(lower ? lower : c);
        t->actions[c] = (uint8_t)(property(t, lower ? lower : c) & DCME_KIND);
    }
    t->actions['\n'] = NEWLINE;
    return DCME_OK;
}

void dcme_tokenizer_close(dcme_tokenizer *tokenizer) {
    if (!tokenizer)
        return;
    free(tokenizer->piece.items);
    free(tokenizer->scratch.items);
    free(tokenizer->out);
    dcme_free(tokenizer);
}
