/* Read, write and check word vectors as bytes: numbers, rows and words.
 *
 * The functions work on blocks of memory that the caller reads and writes, so that several threads
 * can process blocks in parallel, and a file need not fit in memory. Floats are IEEE 754 binary32.
 */
#pragma once

#include <stdbool.h>

#include "dcme.h"

/* Maximum length of a number in text, including its separator. */
#define DCME_NUMBER_BYTES 20

/* The possible faults of a row. Their names are in dcme_w2v/formats/vectors/vectors_reader.py. */
typedef enum {
    DCME_FAULT_DIMENSION, /* the number of values is not the file's dimension */
    DCME_FAULT_NUMBER,    /* something that is not a number */
    DCME_FAULT_FINITE,    /* NaN or infinite */
    DCME_FAULT_EMPTY,     /* an empty word */
    DCME_FAULT_ENCODING,  /* a word that is not UTF-8 */
    DCME_FAULT_SEPARATOR, /* a word that contains a space, \t \n \r \v or \f */
    DCME_FAULT_NUL,       /* a word that contains a NUL byte */
    DCME_FAULT_DUPLICATE, /* a word that occurs in an earlier row */
    DCME_FAULT_COUNT,     /* a word's count is missing or not an integer */
    DCME_FAULT_LENGTH,    /* the numbers are finite, but the squared length of the vector is not */
    DCME_FAULTS,          /* number of kinds */
    DCME_NO_FAULT = -1
} dcme_fault_kind;

/* The rows in a block that have one kind of fault. */
typedef struct {
    int64_t count;
    int64_t row;    /* index in the block of the first such row */
    int64_t offset; /* offset of that row in the block, in bytes */
} dcme_fault;

/* A block of rows to read. */
typedef struct {
    const char *bytes;
    int64_t size;
    int64_t dim;
} dcme_block;

/* The destination of rows. If `step` is `dim`, rows are stored in `matrix`; reading stops at the
 * first faulty row unless `skips` is set. If `step` is 0, every row is checked but none is stored,
 * and the word of a faulty row becomes empty. If reading does not stop, a vector whose length is
 * not finite is also a fault. `text` must have the block's size; `offsets` (where each word starts
 * in `text`, and where the last one ends) must have one more item than there are rows, and `counts`
 * (filled only by dcme_read_counts, with -1 for a missing count) one item per row. */
typedef struct {
    float *matrix;
    int64_t step;
    bool skips;
    char *text;
    int64_t *offsets;
    int64_t *counts;
    dcme_fault *faults; /* DCME_FAULTS of them */
    int64_t count;      /* number of rows that were stored or, if `step` is 0, read */
} dcme_rows;

/* dcme_write_number writes the shortest decimal that is read back as the same float, or the nearest
 * of several that are equally short, and returns its length; the value must be finite.
 * dcme_read_number reads a decimal number (or nan, inf), rounds it to the nearest float (ties to
 * even), and returns where the number ends, or NULL if there is none. Neither depends on the
 * locale. */
int dcme_write_number(char *out, float value);
const char *dcme_read_number(const char *start, const char *end, float *value);

/* Write rows first .. last - 1, where `matrix` starts at row `first`; return the number of
 * bytes. */
int64_t dcme_write_rows(bool binary, char *out, const float *matrix, int64_t dim, const char *text,
                        const int64_t *offsets, int64_t first, int64_t last);

/* Return the number of complete rows (at most `limit`) at the start of a block; *end becomes their
 * size in bytes. In text, `final` means that the last row need not end in a newline, and that blank
 * lines at the end are ignored. */
int64_t dcme_cut_text(const dcme_block *block, int64_t limit, bool final, int64_t *end);
int64_t dcme_cut_binary(const dcme_block *block, int64_t limit, int64_t *end);

/* Read the `limit` complete rows that a block contains. dcme_read_counts reads lines of the form
 * "word" or "word count". */
void dcme_read_text(const dcme_block *block, int64_t limit, dcme_rows *rows);
void dcme_read_binary(const dcme_block *block, int64_t limit, dcme_rows *rows);
void dcme_read_counts(const dcme_block *block, int64_t limit, dcme_rows *rows);

/* Append the word of a row of the block as the next word, or record its fault; return false if
 * reading stops there. */
bool dcme_keep_word(const dcme_block *block, dcme_rows *rows, int64_t row, dcme_fault_kind kind,
                    const char *word, int64_t size);

/* Four functions: record a fault of a row; return the fault of one word, or DCME_NO_FAULT; record
 * the faults of all words in a list; record the words that occur twice. Empty words are not
 * compared. `seed` is used as in a vocabulary. */
void dcme_note_fault(dcme_fault *faults, dcme_fault_kind kind, int64_t row, int64_t offset);
dcme_fault_kind dcme_check_word(const char *word, int64_t size);
void dcme_check_words(const char *text, const int64_t *offsets, int64_t count, dcme_fault *faults);
dcme_status dcme_find_duplicates(const char *text, const int64_t *offsets, int64_t count,
                                 uint64_t seed, dcme_fault *faults, dcme_error *error);

/* Write the indices of `count` distinct words to `order`, in ascending order of their bytes. */
dcme_status dcme_byte_order(const char *text, const int64_t *offsets, int64_t count, int64_t *order,
                            dcme_error *error);

/* Unpack `count` words into `text` (length) and `offsets` (count + 1). Word i begins with the first
 * shared[i] bytes of the previous word; the rest of each word is in `rests` (size), followed by
 * NUL. If the sizes do not match exactly, return DCME_BAD_FORMAT with the index of the word. */
dcme_status dcme_unpack_words(const uint8_t *shared, const char *rests, int64_t size, int64_t count,
                              char *text, int64_t length, int64_t *offsets, dcme_error *error);
