/* Lines "word count": the file format in which vocabularies are kept and exchanged. */
#include "text/text.h"

#include "common/integer.h"
#include "text/utf8.h"

static int64_t last_space(const char *line, int64_t length) {
    while (length > 0 && line[length - 1] != ' ')
        length--;
    return length - 1;
}

static dcme_status parse_line(dcme_vocabulary *v, const char *line, int64_t length, int64_t number,
                              dcme_error *error) {
    int64_t types = dcme_vocabulary_types(v), space = last_space(line, length);
    int64_t count = dcme_read_integer(line + space + 1, line + length);
    uint32_t id;
    if (space < 1 || count < 1 || dcme_first_separator(line, space) < space ||
        memchr(line, 0, space))
        return dcme_fail(error, DCME_BAD_FORMAT, number,
                         "%lld: is not a word, a space and a count; give what vocab writes",
                         (long long)number);
    if (dcme_utf8_valid(line, space) < space)
        return dcme_fail(error, DCME_BAD_FORMAT, number, "%lld: the word is not UTF-8",
                         (long long)number);
    if (space == 4 && memcmp(line, "</s>", 4) == 0)
        return DCME_OK;
    dcme_status status = dcme_vocabulary_add(v, line, space, count, &id, error);
    if (status == DCME_OK && dcme_vocabulary_types(v) == types)
        return dcme_fail(error, DCME_BAD_FORMAT, number, "%lld: the word has been listed before",
                         (long long)number);
    return status;
}

dcme_status dcme_counts_parse(dcme_vocabulary *v, const char *text, int64_t length,
                              dcme_error *error) {
    const char *end = text + length;
    dcme_status status = DCME_OK;
    for (int64_t number = 1; text < end && status == DCME_OK; number++) {
        const char *newline = memchr(text, '\n', (end - text));
        const char *stop = newline ? newline : end;
        int64_t carriage_return = stop > text && stop[-1] == '\r';
        status = parse_line(v, text, stop - text - carriage_return, number, error);
        text = stop + 1;
    }
    return status;
}

int64_t dcme_counts_format(const char *text, const int64_t *offsets, const int64_t *counts,
                           int64_t n, char *lines) {
    char *to = lines;
    for (int64_t i = 0; i < n; i++) {
        int64_t length = offsets[i + 1] - offsets[i];
        memcpy(to, text + offsets[i], length);
        to += length;
        *to++ = ' ';
        to = dcme_write_integer(to, counts[i]);
        *to++ = '\n';
    }
    return to - lines;
}
