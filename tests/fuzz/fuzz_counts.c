/* Lines "word count": a file of a vocabulary. */
#include "fuzz.h"
#include "text/text.h"

const fuzz_token fuzz_seeds[] = {
    FUZZ_TOKEN("the 100\nof 50\n</s> 7\ncaf\xc3\xa9 3\n"),
    FUZZ_TOKEN("a\nb\nc 1\r\n"),
    FUZZ_TOKEN("x 9223372036854775807\ny 999999999999999999\n"),
    FUZZ_TOKEN(" 1\n"),
    FUZZ_TOKEN("\n"),
    FUZZ_TOKEN("\r"),
    FUZZ_TOKEN("</s> 1\n"),
    FUZZ_TOKEN("\0"),
    FUZZ_TOKEN("\xff"),
    FUZZ_TOKEN(" -1\n"),
    FUZZ_TOKEN("99999999999999999999"),
    {NULL, 0},
};

static void parse(const char *text, int64_t length) {
    static dcme_vocabulary *vocabulary; /* large when it is made: one serves many inputs */
    dcme_error error = {0};
    if (vocabulary && dcme_vocabulary_types(vocabulary) > 10000) {
        dcme_vocabulary_close(vocabulary);
        vocabulary = NULL;
    }
    if (vocabulary || dcme_vocabulary_open(&vocabulary, 1, NULL) == DCME_OK) {
        dcme_status status = dcme_counts_parse(vocabulary, text, length, &error);
        FUZZ_REQUIRE(status == DCME_OK || (status == DCME_BAD_FORMAT && error.message[0]));
        const int64_t *counts = dcme_vocabulary_counts(vocabulary);
        for (int64_t i = 0; i < dcme_vocabulary_types(vocabulary); i++)
            FUZZ_REQUIRE(counts[i] >= 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 0)
        parse((const char *)data, (int64_t)size);
    return 0;
}
