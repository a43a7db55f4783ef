/* Convert raw text to tokens separated by spaces: Unicode normalization, lower case, and a split by
 * character classes. Everything about Unicode is in tables that the caller builds.
 */
#pragma once

#include "dcme.h"

enum { DCME_UNICODE_END = 0x110000, DCME_PAGE = 256, DCME_PAGES = DCME_UNICODE_END / DCME_PAGE };

/* The kind of a character decides how the tokenizer treats it; it is in the low bits of its entry
 * in `properties`. */
enum {
    DCME_SEPARATOR = 0, /* separates tokens and is dropped */
    DCME_WORD,          /* part of a token */
    DCME_SINGLE,        /* a token of its own */
    DCME_REMOVED,       /* dropped before composition, without separating tokens */
    DCME_JOINER,        /* part of a token between two other parts, and dropped elsewhere */
    DCME_KIND = 7,
    /* A text with this character may differ from its normal form. It is set for all characters that
     * differ from their normal form, that have a combining class, or that may be composed with the
     * character before them. Only text with such characters is processed by the slow path. */
    DCME_UNSTABLE = 8
};

/* A table with a property of every character; that of c is values[pages[c >> 8] << 8 | (c &
 * 255)]. */
typedef struct {
    const uint16_t *pages; /* DCME_PAGES */
    const int32_t *values;
} dcme_character_table;

/* In `decompositions` and `mapping`, the value for a character is 0 if it stays as it is, -s if it
 * is replaced by the sequence at `sequences[s]` (its length, then its characters), or else the
 * character that replaces it. Decompositions are full, not single steps; Hangul syllables are not
 * in the tables. */
typedef struct {
    dcme_character_table properties; /* kind and DCME_UNSTABLE, of characters before `mapping` */
    dcme_character_table mapping;    /* lower case, digits */
    dcme_character_table decompositions; /* canonical or compatible */
    dcme_character_table combining;      /* canonical combining class */
    const int32_t *sequences;
    const uint64_t *pairs;     /* first << 32 | second, ascending: two characters that compose, */
    const int32_t *composites; /* and the character that they become */
    int64_t n_pairs;
    int32_t normalize; /* whether text is normalized at all */
} dcme_unicode;

typedef struct dcme_tokenizer dcme_tokenizer;

/* Open a tokenizer. It must be closed even if opening it failed. The tables must outlive it. */
dcme_status dcme_tokenizer_open(dcme_tokenizer **tokenizer, const dcme_unicode *unicode,
                                dcme_error *error);
void dcme_tokenizer_close(dcme_tokenizer *tokenizer);

/* Tokenize `text`. The result has a space before each token, and the line feeds of the text; `out`
 * and `out_length` are set to it, and it is valid until the tokenizer is used again. NUL bytes and
 * bytes that are not UTF-8 are kept as parts of tokens; `bad` is set to the offset of the first
 * one, or to -1. */
dcme_status dcme_tokenize(dcme_tokenizer *tokenizer, const char *text, int64_t length,
                          const char **out, int64_t *out_length, int64_t *bad, dcme_error *error);
