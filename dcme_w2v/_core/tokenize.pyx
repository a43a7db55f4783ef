"""Binding of csrc/text/tokenize.h: raw text in, tokens separated by spaces out, without the GIL."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

from dcme_w2v._core.status cimport check, dcme_error, dcme_status


cdef extern from "text/tokenize.h" nogil:
    ctypedef struct dcme_character_table:
        const uint16_t *pages
        const int32_t *values

    ctypedef struct dcme_unicode:
        dcme_character_table properties
        dcme_character_table mapping
        dcme_character_table decompositions
        dcme_character_table combining
        const int32_t *sequences
        const uint64_t *pairs
        const int32_t *composites
        int64_t n_pairs
        int32_t normalize
        int32_t remove_marks

    ctypedef struct dcme_tokenizer:
        pass

    dcme_status dcme_tokenizer_open(
        dcme_tokenizer **tokenizer, const dcme_unicode *unicode, dcme_error *error
    )
    void dcme_tokenizer_close(dcme_tokenizer *tokenizer)
    dcme_status dcme_tokenize(
        dcme_tokenizer *tokenizer, const char *text, int64_t length, const char **out,
        int64_t *out_length, int64_t *bad, dcme_error *error
    )


cdef dcme_character_table table(arrays):
    cdef dcme_character_table made
    cdef const uint16_t[::1] pages = arrays[0]
    cdef const int32_t[::1] values = arrays[1]
    made.pages, made.values = &pages[0], &values[0]
    return made


cdef class Tokenizer:
    """A tokenizer for one thread at a time; `tables` are `dcme_w2v.text.unicode_tables.Tables`."""

    cdef dcme_tokenizer *tokenizer
    cdef object tables  # keeps the arrays alive

    def __cinit__(self, tables):
        cdef dcme_unicode unicode
        cdef dcme_error error
        cdef const int32_t[::1] sequences = tables.sequences, composites = tables.composites
        cdef const uint64_t[::1] pairs = tables.pairs
        self.tables = tables
        unicode.properties = table(tables.properties)
        unicode.mapping = table(tables.mapping)
        unicode.decompositions = table(tables.decompositions)
        unicode.combining = table(tables.combining)
        unicode.sequences, unicode.pairs = &sequences[0], &pairs[0]
        unicode.composites, unicode.n_pairs = &composites[0], pairs.shape[0]
        unicode.normalize, unicode.remove_marks = tables.normalize, tables.remove_marks
        check(dcme_tokenizer_open(&self.tokenizer, &unicode, &error), &error)

    def __dealloc__(self):
        dcme_tokenizer_close(self.tokenizer)

    def tokenize(self, const uint8_t[::1] text):
        """Return tokens with a space before each, the line feeds, and the first bad byte or -1."""
        cdef const char *out
        cdef int64_t length, bad, n = text.shape[0]
        cdef const char *bytes = <const char *>&text[0] if n else NULL
        cdef dcme_error error
        if n == 0:
            return b"", -1
        with nogil:
            check(dcme_tokenize(self.tokenizer, bytes, n, &out, &length, &bad, &error), &error)
        return out[:length], bad
