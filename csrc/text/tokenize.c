/* The tokenizer of raw text.
 *
 * ASCII takes the fast way: one table look-up a byte. Other text is cut at ASCII white space, which
 * no normalization joins to anything, into pieces. A piece without unstable characters is its own
 * normal form (the quick check of Unicode Standard Annex 15); any other piece is decomposed, put
 * into canonical order and composed (ibid., and section 3.12 of the standard for Hangul).
 */
#include "text/tokenize.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

/* Characters above the end of Unicode stand for bytes that are not UTF-8. */
enum { BYTE = DCME_UNICODE_END, ASCII = 0x80 };

/* Actions for a byte, beside the kinds: a line feed stays; others belong to no ASCII text. */
enum { NEWLINE = DCME_KIND + 1, OTHER };

/* Hangul syllables are arithmetic: base + (leading * 21 + vowel) * 28 + trailing. */
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
    uint8_t actions[256]; /* for each byte: the kind after `mapping`, NEWLINE or OTHER */
    char lower[256];      /* ASCII characters after `mapping` */
    characters piece, scratch;
    char *out;
    int64_t length, capacity;
    const uint8_t *bad; /* the first byte that is not UTF-8 text, or NULL */
    int in_token;       /* the last byte written belongs to a token that may go on */
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

/* Call `body` with each character `c` that an entry of a table stands for. */
#define FOR_EACH_REPLACEMENT(t, table, original, c, body)                                          \
    do {                                                                                           \
        int32_t entry_ = (original) >= BYTE ? 0 : look_up(&(t)->unicode.table, original);          \
        if (entry_ >= 0) {                                                                         \
            int32_t c = entry_ ? entry_ : (original);                                              \
            body;                                                                                  \
        } else {                                                                                   \
            const int32_t *sequence_ = (t)->unicode.sequences - entry_;                            \
            for (int32_t i_ = 1; i_ <= sequence_[0]; i_++) {                                       \
                int32_t c = sequence_[i_];                                                         \
                body;                                                                              \
            }                                                                                      \
        }                                                                                          \
    } while (0)

static dcme_status reserve_characters(characters *list, int64_t n, dcme_error *error) {
    if (n <= list->capacity)
        return DCME_OK;
    int64_t capacity = 2 * n + 64;
    if ((uint64_t)capacity > SIZE_MAX / sizeof *list->items)
        return dcme_no_memory(error, capacity, "characters of a token", "shorten the token");
    int32_t *items = realloc(list->items, (size_t)capacity * sizeof *items);
    if (!items)
        return dcme_no_memory(error, capacity * 4, "characters of a token", "shorten the token");
    list->items = items;
    list->capacity = capacity;
    return DCME_OK;
}

/* Make room for `more` bytes of output. */
static dcme_status reserve_bytes(dcme_tokenizer *t, int64_t more, dcme_error *error) {
    if (t->length + more <= t->capacity)
        return DCME_OK;
    int64_t capacity = 2 * (t->length + more);
    char *out = realloc(t->out, (size_t)capacity);
    if (!out)
        return dcme_no_memory(error, capacity, "tokenised text", "give shorter texts");
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
    if (c >= BYTE) {
        out[0] = (char)(c - BYTE);
        return 1;
    }
    if (c < ASCII) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Write one character by its kind; the caller has reserved a space and four bytes for it. */
static inline void put(dcme_tokenizer *t, int32_t c, int32_t kind) {
    if (kind == DCME_REMOVED)
        return;
    if (kind == DCME_SEPARATOR) {
        t->in_token = 0;
        return;
    }
    if (!t->in_token || kind == DCME_SINGLE)
        t->out[t->length++] = ' ';
    t->length += encode(c, t->out + t->length);
    t->in_token = kind == DCME_WORD;
}

/* ---- normalization ------------------------------------------------------------------------- */

static dcme_status append(characters *list, int32_t c, dcme_error *error) {
    dcme_status status = reserve_characters(list, list->n + 1, error);
    if (status == DCME_OK)
        list->items[list->n++] = c;
    return status;
}

static dcme_status decompose(dcme_tokenizer *t, int32_t c, characters *to, dcme_error *error) {
    dcme_status status = DCME_OK;
    int32_t syllable = c - SYLLABLES;
    if (syllable >= 0 && syllable < N_SYLLABLES) {
        int32_t trailing = TRAILING + syllable % N_TRAILING;
        status = append(to, LEADING + syllable / (N_VOWELS * N_TRAILING), error);
        if (status == DCME_OK)
            status = append(to, VOWELS + syllable / N_TRAILING % N_VOWELS, error);
        if (status == DCME_OK && trailing > TRAILING)
            status = append(to, trailing, error);
        return status;
    }
    FOR_EACH_REPLACEMENT(t, decompositions, c, part, {
        if (status == DCME_OK)
            status = append(to, part, error);
    });
    return status;
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

/* Sort a run of n marks by their class, equal ones as they are. Runs are short, but hostile text
 * may have one of a megabyte, which insertion would sort in hours. */
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
    qsort(marks, (size_t)n, sizeof *marks, by_class);
    for (int64_t i = 0; i < n; i++)
        items[i] = marks[i].character;
    if (marks != few)
        dcme_free(marks);
    return DCME_OK;
}

static dcme_status order(const dcme_tokenizer *t, characters *list, dcme_error *error) {
    dcme_status status = DCME_OK;
    for (int64_t i = 0; i < list->n && status == DCME_OK;) {
        int64_t from = i;
        while (i < list->n && combining_class(t, list->items[i]) > 0)
            i++;
        status = sort_marks(t, list->items + from, i - from, error);
        i += i == from;
    }
    return status;
}

/* The character that two compose to, or 0. */
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

/* Compose in place: a character joins the last starter unless one between them has a class that is
 * at least as high (definition D115 of the standard: it is blocked). */
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
    dcme_status status = DCME_OK;
    to->n = 0;
    for (int64_t i = 0; i < piece.n && status == DCME_OK; i++)
        status = decompose(t, piece.items[i], to, error);
    if (status == DCME_OK)
        status = order(t, to, error);
    if (status != DCME_OK)
        return status;
    if (t->unicode.remove_marks) {
        int64_t n = 0;
        for (int64_t i = 0; i < to->n; i++)
            if ((property(t, to->items[i]) & DCME_KIND) != DCME_REMOVED)
                to->items[n++] = to->items[i];
        to->n = n;
    }
    compose(t, to);
    t->piece = *to;
    *to = piece;
    return DCME_OK;
}

/* ---- pieces -------------------------------------------------------------------------------- */

/* Tokenize text without ASCII white space. */
static dcme_status put_piece(dcme_tokenizer *t, const uint8_t *text, const uint8_t *end,
                             dcme_error *error) {
    t->piece.n = 0;
    dcme_status status = reserve_characters(&t->piece, end - text, error);
    if (status != DCME_OK)
        return status;
    int32_t seen = 0;
    while (text < end) {
        const uint8_t *before = text;
        int32_t c = decode(&text, end);
        if (c >= BYTE && !t->bad)
            t->bad = before;
        seen |= property(t, c);
        t->piece.items[t->piece.n++] = c;
    }
    if (t->unicode.normalize && seen & DCME_UNSTABLE)
        status = normalize(t, error);
    for (int64_t i = 0; i < t->piece.n && status == DCME_OK; i++) {
        FOR_EACH_REPLACEMENT(t, mapping, t->piece.items[i], c, {
            if ((status = reserve_bytes(t, 5, error)) == DCME_OK)
                put(t, c, property(t, c) & DCME_KIND);
        });
    }
    return status;
}

/* Tokenize ASCII from `at` on, up to the first byte that is not, which is returned. Separators and
 * parts of tokens take no branch: words are too short for the branches to be predicted. `piece` and
 * `piece_length` become where the last piece starts in the text and in the output. */
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
    dcme_status status = DCME_OK;
    t->length = 0;
    t->bad = NULL;
    while (at < end && status == DCME_OK) {
        /* A byte of ASCII becomes at most a space and itself. */
        status = reserve_bytes(t, 2 * (end - at) + 8, error);
        if (status != DCME_OK)
            break;
        const uint8_t *piece = at;
        int64_t piece_length = t->length;
        at = put_ascii(t, at, end, &piece, &piece_length);
        if (at == end)
            break;
        while (at < end && !dcme_is_separator((char)*at))
            at++;
        t->length = piece_length;
        t->in_token = 0;
        status = put_piece(t, piece, at, error);
    }
    *bad = t->bad ? t->bad - start : -1;
    *out = t->out;
    *out_length = t->length;
    return status;
}

dcme_status dcme_tokenizer_open(dcme_tokenizer **tokenizer, const dcme_unicode *unicode,
                                dcme_error *error) {
    dcme_tokenizer *t = *tokenizer = dcme_allocate_zeros(1, sizeof *t);
    if (!t)
        return dcme_no_memory(error, (int64_t)sizeof *t, "a tokeniser", "free some memory");
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
