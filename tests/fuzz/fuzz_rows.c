/* Rows of word2vec's text and binary files: cut, read, checked, as
 * formats/vectors/vectors_reader.py does. */
#include "fuzz.h"
#include "vectors/vectors.h"

#include <stdlib.h>
#include <string.h>

const fuzz_token fuzz_seeds[] = {
    FUZZ_TOKEN("\4the 1 -2.5 3e-5\nof 0.1 nan 2\n"),
    FUZZ_TOKEN("\5a \0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\nb \0\0\0\0\0\0\0\0\0\0\0\0\n"),
    FUZZ_TOKEN("\2x 1e38 1.17549435e-38\r\ny 340282346638528859811704183484516925440 -0\n"),
    FUZZ_TOKEN("\1a \0\0\x80\x7f"
               "a \0\0\xc0\x7f"),
    FUZZ_TOKEN(" "),
    FUZZ_TOKEN("\n"),
    FUZZ_TOKEN("\r\n"),
    FUZZ_TOKEN("1e99"),
    FUZZ_TOKEN("nan"),
    FUZZ_TOKEN("-inf"),
    FUZZ_TOKEN("1e-46"),
    FUZZ_TOKEN("0x1p3"),
    FUZZ_TOKEN("\xff"),
    FUZZ_TOKEN("\0"),
    FUZZ_TOKEN("\t"),
    FUZZ_TOKEN("a 1 2 3\n"),
    FUZZ_TOKEN("2.2250738585072011e-308"),
    {NULL, 0},
};

static void read(const dcme_block *block, int64_t count, int binary, int keep, int skips) {
    int64_t fitting = block->size / (2 * block->dim) + 1;
    int64_t room = keep && count > fitting ? fitting : count;
    float *matrix = malloc((size_t)((keep ? room : 1) * block->dim) * sizeof *matrix);
    char *text = malloc((size_t)block->size + 1);
    int64_t *offsets = malloc((size_t)(count + 1) * sizeof *offsets);
    dcme_fault faults[DCME_FAULTS] = {0};
    dcme_rows rows = {.matrix = matrix,
                      .step = keep ? block->dim : 0,
                      .skips = skips,
                      .text = text,
                      .offsets = offsets,
                      .faults = faults};
    if (matrix && text && offsets) {
        (binary ? dcme_read_binary : dcme_read_text)(block, count, &rows);
        FUZZ_REQUIRE(rows.count <= count && offsets[rows.count] <= block->size);
        dcme_check_words(text, offsets, rows.count, faults);
        FUZZ_REQUIRE(dcme_find_duplicates(text, offsets, rows.count, 1, faults, NULL) == DCME_OK);
    }
    free(matrix), free(text), free(offsets);
}

/* The file of words of an npy file. */
static void read_lines(const char *text, int64_t length) {
    dcme_block block = {text, length, 1};
    int64_t end = 0, count = dcme_cut_text(&block, INT64_MAX, 1, &end);
    FUZZ_REQUIRE(count >= 0 && end >= 0 && end <= length);
    char *words = malloc((size_t)length);
    int64_t *offsets = malloc((size_t)(count + 1) * sizeof *offsets);
    int64_t *counts = malloc((size_t)(count + 1) * sizeof *counts);
    dcme_fault faults[DCME_FAULTS] = {0};
    if (words && offsets && counts) {
        dcme_rows rows = {.text = words, .offsets = offsets, .counts = counts, .faults = faults};
        dcme_read_counts(&block, count, &rows);
        FUZZ_REQUIRE(offsets[count] <= length);
    }
    free(words), free(offsets), free(counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    int binary = data[0] & 1, keep = !(data[0] & 0x80);
    dcme_block block = {(const char *)data + 1, (int64_t)size - 1, 1 + (data[0] & 0x7f) / 2};
    int64_t end = 0, limit = 1000;
    int64_t count = binary ? dcme_cut_binary(&block, limit, &end)
                           : dcme_cut_text(&block, limit, size & 1, &end);
    FUZZ_REQUIRE(count >= 0 && count <= limit && end >= 0 && end <= block.size);
    block.size = end;
    if (count > 0)
        for (int skips = 0; skips < 2; skips++)
            read(&block, count, binary, keep, skips);
    read_lines((const char *)data + 1, (int64_t)size - 1);
    return 0;
}
