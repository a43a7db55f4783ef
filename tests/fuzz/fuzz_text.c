/* The tokenizer and the compaction of its ids: text, in blocks, to numbers. */
#include "fuzz.h"
#include "text/text.h"

#include <stdlib.h>
#include <string.h>

const fuzz_token fuzz_seeds[] = {
    FUZZ_TOKEN("\0the quick brown fox\nthe lazy dog\n"),
    FUZZ_TOKEN("\1caf\xc3\xa9 caf\xe9 \xf0\x9f\x98\x80 \xed\xa0\x80\r\n\n\tx\vy\fz"),
    FUZZ_TOKEN(
        "\2a\0b c\n\xef\xbf\xbd a a a a a a a a a a a a a a a a a a a a a a a a a a a a a\n"),
    FUZZ_TOKEN(" "),
    FUZZ_TOKEN("\n"),
    FUZZ_TOKEN("\r\n"),
    FUZZ_TOKEN("\0"),
    FUZZ_TOKEN("\xef\xbf"),
    FUZZ_TOKEN("\xc3"),
    FUZZ_TOKEN("\xf4\x90\x80\x80"),
    FUZZ_TOKEN("word word word word word word word word word word word word word word word "),
    {NULL, 0},
};

/* A vocabulary is large when it is made, so that one serves many inputs. */
static dcme_vocabulary *renewed(dcme_vocabulary *vocabulary) {
    if (vocabulary && dcme_vocabulary_types(vocabulary) < 300)
        return vocabulary;
    dcme_vocabulary_close(vocabulary);
    return dcme_vocabulary_open(&vocabulary, 1, NULL) == DCME_OK ? vocabulary : NULL;
}

static int separates(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void compact(const uint32_t *ids, int64_t tokens, const uint32_t *map, int64_t types,
                    int newline) {
    dcme_renumbering state;
    uint32_t *to = malloc((size_t)(tokens + 1) * sizeof *to);
    dcme_renumber_start(&state);
    if (to) {
        int64_t written = dcme_renumber(&state, to, ids, tokens, map, newline);
        FUZZ_REQUIRE(written >= 0 && written <= tokens + 1);
        for (int64_t i = 0; i < written; i++)
            FUZZ_REQUIRE((int64_t)(to[i] & ~DCME_SENTENCE_END) < types);
    }
    free(to);
}

/* All words in the table must be valid text: UTF-8 without NUL or separators. */
static void absorb(const dcme_vocabulary *from, const uint32_t *ids, int64_t tokens, int newline,
                   dcme_encoding_errors errors) {
    static dcme_vocabulary *to;
    int64_t types = dcme_vocabulary_types(from);
    uint32_t *map = malloc((size_t)(types + 1) * sizeof *map);
    dcme_repairs repairs = {0};
    to = renewed(to);
    if (map && to &&
        dcme_vocabulary_merge(to, from, 0, types, errors, map, &repairs, NULL) == DCME_OK)
        compact(ids, tokens, map, dcme_vocabulary_types(to), newline);
    free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static dcme_vocabulary *vocabulary;
    dcme_encoded block;
    if (size < 2)
        return 0;
    dcme_refusal refuse = (dcme_refusal)(data[0] % 3);
    const char *text = (const char *)data + 1;
    int64_t length = (int64_t)size - 1;
    uint32_t *ids = malloc((size_t)(length + 1) / 2 * sizeof *ids);
    vocabulary = renewed(vocabulary);
    if (ids && vocabulary) {
        dcme_status status = dcme_encode(vocabulary, text, length, refuse, ids, &block, NULL);
        FUZZ_REQUIRE(status == DCME_OK || status == DCME_BAD_ENCODING);
        FUZZ_REQUIRE(block.tokens <= (length + 1) / 2);
        FUZZ_REQUIRE((status == DCME_OK) == (block.bad < 0) && block.bad < length);
        if (status == DCME_BAD_ENCODING)
            FUZZ_REQUIRE(refuse != DCME_REFUSE_NONE && !separates((uint8_t)text[block.bad]));
        for (int64_t i = 0; i < block.tokens; i++)
            FUZZ_REQUIRE((int64_t)(ids[i] & ~DCME_SENTENCE_END) <
                         dcme_vocabulary_types(vocabulary));
        absorb(vocabulary, ids, block.tokens, block.newline_first,
               data[0] & 4 ? DCME_REPLACE : DCME_SKIP);
    }
    free(ids);
    return 0;
}
