"""Binding of csrc/text: bytes and arrays in, ids and counts out, without the GIL.

Offsets of words are checked. Ids are not: they come from these functions and belong to the arrays
that are given with them.
"""

import secrets

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from dcme_w2v._core.status cimport (
    DCME_BAD_ENCODING,
    check,
    dcme_error,
    dcme_release_freed,
    dcme_status,
)


cdef extern from "text/ngrams.h" nogil:
    ctypedef struct dcme_ngrams:
        int64_t shortest
        int64_t longest
        uint32_t buckets

    int64_t dcme_ngrams_of(const dcme_ngrams *ngrams, const char *word, int64_t length,
                           int32_t *out)


cdef extern from "text/text.h" nogil:
    const uint32_t DCME_SENTENCE_END
    const uint32_t DCME_NONE
    const int DCME_COUNT_MAX

    ctypedef enum dcme_encoding_errors:
        DCME_STRICT

    ctypedef enum dcme_refusal:
        DCME_REFUSE_NONE
        DCME_REFUSE_NUL
        DCME_REFUSE_BROKEN

    ctypedef struct dcme_vocabulary:
        pass

    ctypedef struct dcme_repairs:
        int64_t replaced
        int64_t skipped

    ctypedef struct dcme_encoded:
        int64_t tokens
        int64_t newlines
        int32_t newline_first
        int64_t bad

    ctypedef struct dcme_renumbering:
        int64_t lines

    dcme_status dcme_vocabulary_open(
        dcme_vocabulary **vocabulary, uint64_t seed, dcme_error *error
    )
    void dcme_vocabulary_close(dcme_vocabulary *vocabulary)
    void dcme_vocabulary_clear(dcme_vocabulary *vocabulary)
    int64_t dcme_vocabulary_types(const dcme_vocabulary *vocabulary)
    const int64_t *dcme_vocabulary_counts(const dcme_vocabulary *vocabulary)
    int64_t dcme_vocabulary_bytes(const dcme_vocabulary *vocabulary, int64_t extra)
    dcme_status dcme_vocabulary_add(
        dcme_vocabulary *vocabulary, const char *word, int64_t length, int64_t count,
        uint32_t *id, dcme_error *error
    )
    void dcme_vocabulary_offsets(
        const dcme_vocabulary *vocabulary, const int64_t *order, int64_t n, int64_t *offsets
    )
    void dcme_vocabulary_copy(
        const dcme_vocabulary *vocabulary, const int64_t *order, int64_t n, char *text
    )
    dcme_status dcme_vocabulary_merge(
        dcme_vocabulary *vocabulary, const dcme_vocabulary *other, int64_t first, int64_t last,
        dcme_encoding_errors errors, uint32_t *map, dcme_repairs *repairs, dcme_error *error
    )
    dcme_status dcme_encode(
        dcme_vocabulary *vocabulary, const char *text, int64_t length, dcme_refusal refuse,
        uint32_t *ids, dcme_encoded *block, dcme_error *error
    )
    void dcme_renumber_start(dcme_renumbering *state)
    int64_t dcme_renumber(
        dcme_renumbering *state, uint32_t *to, const uint32_t *ids, int64_t n,
        const uint32_t *map, int32_t newline
    )
    int64_t dcme_counts_format(
        const char *text, const int64_t *offsets, const int64_t *counts, int64_t n, char *lines
    )


cdef extern from "text/phrases.h" nogil:
    const int DCME_RUN_MAX
    const int DCME_ROLE_SIDE

    ctypedef struct dcme_pairs:
        pass

    dcme_status dcme_pairs_open(
        dcme_pairs **pairs, int64_t size, int32_t bits, uint64_t value, dcme_error *error
    )
    void dcme_pairs_close(dcme_pairs *pairs)
    int64_t dcme_pairs_bits(const dcme_pairs *pairs)
    dcme_status dcme_pairs_count(
        dcme_pairs *pairs, const uint32_t *ids, int64_t n, const uint8_t *roles, dcme_error *error
    )
    int64_t dcme_pairs_counted(
        const dcme_pairs *pairs, int64_t least, uint32_t *left, uint32_t *right, uint32_t *runs,
        int64_t *counts
    )
    dcme_status dcme_pairs_add(
        dcme_pairs *pairs, uint32_t left, uint32_t right, uint32_t run, uint32_t joined,
        dcme_error *error
    )
    int64_t dcme_pairs_join(
        dcme_pairs *pairs, const uint32_t *ids, int64_t n, const uint8_t *roles, int32_t last,
        uint32_t *to
    )
    int64_t dcme_ids_text(
        const uint32_t *ids, int64_t n, const char *words, const int64_t *offsets, char *text
    )


LAST = DCME_SENTENCE_END
RUN_MAX, ROLE_SIDE = DCME_RUN_MAX, DCME_ROLE_SIDE
REFUSE_NONE, REFUSE_NUL, REFUSE_BROKEN = DCME_REFUSE_NONE, DCME_REFUSE_NUL, DCME_REFUSE_BROKEN
NONE = DCME_NONE


cdef int check_offsets(const int64_t[::1] offsets, int64_t count, int64_t end) except -1:
    """Raise unless there are offsets for `count` words, one after the other, in `end` bytes."""
    cdef int64_t i
    if offsets.shape[0] != count + 1 or offsets[0] < 0 or offsets[count] > end:
        raise ValueError("words and offsets do not fit together")
    for i in range(count):
        if offsets[i] > offsets[i + 1]:
            raise ValueError("offsets do not ascend")
    return 0


cdef class Table:
    """Distinct words with counts, numbered by first appearance; see csrc/text/text.h."""

    cdef dcme_vocabulary *vocabulary

    def __init__(self):
        cdef dcme_error error
        cdef uint64_t seed = secrets.randbits(64)
        check(dcme_vocabulary_open(&self.vocabulary, seed, &error), &error)

    def __dealloc__(self):
        dcme_vocabulary_close(self.vocabulary)

    def __len__(self):
        return dcme_vocabulary_types(self.vocabulary)

    def clear(self):
        """Remove all words and keep the memory."""
        with nogil:
            dcme_vocabulary_clear(self.vocabulary)

    def add(self, const uint8_t[::1] text, const int64_t[::1] offsets, const int64_t[::1] counts):
        """Add concatenated words with their counts."""
        cdef dcme_error error
        cdef int64_t i
        cdef uint32_t number
        check_offsets(offsets, counts.shape[0], text.shape[0])
        cdef const char *block = <const char *>&text[0]
        with nogil:
            for i in range(counts.shape[0]):
                check(dcme_vocabulary_add(
                    self.vocabulary, block + offsets[i], offsets[i + 1] - offsets[i], counts[i],
                    &number, &error), &error)

    def encode(self, const uint8_t[::1] text, int refuse, uint32_t[::1] ids=None):
        """Count the words of a block; returns tokens, newlines, newline first, bad offset or -1."""
        cdef dcme_error error
        cdef dcme_encoded block
        cdef dcme_status status
        cdef uint32_t *to = NULL
        if ids is not None:
            if ids.shape[0] < (text.shape[0] + 1) // 2 or ids.shape[0] == 0:
                raise ValueError("ids has no room for the words of the block")
            to = &ids[0]
        if text.shape[0] == 0:
            return 0, 0, False, -1
        with nogil:
            status = dcme_encode(self.vocabulary, <const char *>&text[0], text.shape[0],
                                 <dcme_refusal>refuse, to, &block, &error)
        if status != DCME_BAD_ENCODING:
            check(status, &error)
        return block.tokens, block.newlines, bool(block.newline_first), block.bad

    def merge(self, Table other, int64_t first, int64_t last, int errors, uint32_t[::1] map):
        """Add some words of another table, map its ids; returns tokens replaced and skipped."""
        cdef dcme_error error
        cdef dcme_repairs repairs
        if not 0 <= first <= last <= len(other) or map.shape[0] < last:
            raise ValueError("first, last and map do not fit the table")
        if first == last:
            return 0, 0
        repairs.replaced = repairs.skipped = 0
        with nogil:
            check(dcme_vocabulary_merge(
                self.vocabulary, other.vocabulary, first, last, <dcme_encoding_errors>errors,
                &map[0], &repairs, &error), &error)
        return repairs.replaced, repairs.skipped

    def bytes(self, int64_t extra):
        """Return the memory that the table takes while so many more words are added."""
        return dcme_vocabulary_bytes(self.vocabulary, extra)

    def counts(self):
        """Return the count of each word, by id."""
        cdef int64_t types = len(self)
        if types == 0:
            return np.zeros(0, dtype=np.int64)
        return np.array(<int64_t[:types]>dcme_vocabulary_counts(self.vocabulary))

    def words(self, const int64_t[::1] order):
        """Return the words of the ids in `order`, concatenated, and where each starts."""
        cdef int64_t n = order.shape[0]
        cdef int64_t[::1] offsets = np.zeros(n + 1, dtype=np.int64)
        cdef uint8_t[::1] text
        if n == 0:
            return np.zeros(0, dtype=np.uint8), np.asarray(offsets)
        if np.min(order) < 0 or np.max(order) >= len(self):
            raise IndexError("order names words that the table does not have")
        dcme_vocabulary_offsets(self.vocabulary, &order[0], n, &offsets[0])
        text = np.empty(offsets[n], dtype=np.uint8)
        dcme_vocabulary_copy(self.vocabulary, &order[0], n, <char *>&text[0])
        return np.asarray(text), np.asarray(offsets)


cdef class Renumbering:
    """Final ids take the place of provisional ones, block by block; see csrc/text/text.h."""

    cdef dcme_renumbering state

    def __init__(self):
        dcme_renumber_start(&self.state)

    @property
    def lines(self):
        """Lines that had a token, kept or not."""
        return self.state.lines

    def add(self, const uint32_t[::1] ids, const uint32_t[::1] map, bint newline,
            uint32_t[::1] to):
        """Continue with a block whose ids are all in the map; returns how many were written to `to`."""
        cdef const uint32_t *first = &ids[0]
        cdef const uint32_t *numbers = &map[0]
        cdef int64_t written
        if to.shape[0] <= ids.shape[0]:
            raise ValueError("to has no room for the ids and the one before")
        with nogil:
            written = dcme_renumber(
                &self.state, &to[0], first, ids.shape[0], numbers, newline)
        return written


cdef class Pairs:
    """Pairs of adjacent words, to be counted or joined; see csrc/text/phrases.h.

    Ids must be below the length of `roles`.
    """

    cdef dcme_pairs *pairs

    def __init__(self, int64_t size, int bits=0, uint64_t value=0):
        cdef dcme_error error
        check(dcme_pairs_open(&self.pairs, size, bits, value, &error), &error)

    def __dealloc__(self):
        dcme_pairs_close(self.pairs)

    @property
    def bits(self):
        """Number of low bits of the hash that are the same in all pairs of this table."""
        return dcme_pairs_bits(self.pairs)

    def count(self, const uint32_t[::1] ids, const uint8_t[::1] roles):
        """Count the pairs of the next piece of the text."""
        cdef dcme_error error
        if ids.shape[0] == 0:
            return
        with nogil:
            check(dcme_pairs_count(self.pairs, &ids[0], ids.shape[0], &roles[0], &error), &error)

    def counted(self, int64_t least):
        """Return left sides, right sides, runs and counts of pairs counted at least so often."""
        cdef int64_t n = dcme_pairs_counted(self.pairs, least, NULL, NULL, NULL, NULL)
        cdef uint32_t[:, ::1] sides = np.empty((3, max(n, 1)), dtype=np.uint32)
        cdef int64_t[::1] counts = np.empty(max(n, 1), dtype=np.int64)
        if n:
            dcme_pairs_counted(
                self.pairs, least, &sides[0, 0], &sides[1, 0], &sides[2, 0], &counts[0])
        found = np.asarray(sides)[:, :n]
        return found[0], found[1], found[2], np.asarray(counts)[:n]

    def add(self, const uint32_t[::1] left, const uint32_t[::1] right, const uint32_t[::1] runs,
            const uint32_t[::1] joined):
        """Add pairs and the ids of the words that they become."""
        cdef dcme_error error
        cdef int64_t i
        for i in range(left.shape[0]):
            check(dcme_pairs_add(self.pairs, left[i], right[i], runs[i], joined[i], &error), &error)

    def join(self, const uint32_t[::1] ids, const uint8_t[::1] roles, bint last=False):
        """Return the next piece of the text with pairs joined; `last`: no piece follows."""
        cdef uint32_t[::1] to = np.empty(ids.shape[0] + DCME_RUN_MAX + 1, dtype=np.uint32)
        cdef const uint32_t *first = &ids[0]
        cdef const uint8_t *role = &roles[0]
        cdef int64_t written
        with nogil:
            written = dcme_pairs_join(self.pairs, first, ids.shape[0], role, last, &to[0])
        return np.asarray(to)[:written]


def text_of(const uint32_t[::1] ids, const uint8_t[::1] words, const int64_t[::1] offsets):
    """Return the text of ids: a space after each word, a newline at the end of each line."""
    cdef const char *spelled = <const char *>&words[0]
    cdef uint8_t[::1] text
    cdef int64_t n = ids.shape[0]
    check_offsets(offsets, offsets.shape[0] - 1, words.shape[0])
    if n == 0:
        return np.zeros(0, dtype=np.uint8)
    text = np.empty(dcme_ids_text(&ids[0], n, spelled, &offsets[0], NULL), dtype=np.uint8)
    with nogil:
        dcme_ids_text(&ids[0], n, spelled, &offsets[0], <char *>&text[0])
    return np.asarray(text)


def release_freed():
    """Give memory that was freed back to the system."""
    dcme_release_freed()


def format_counts(const uint8_t[::1] text, const int64_t[::1] offsets, const int64_t[::1] counts):
    """Return lines "word count" as an array of bytes."""
    cdef int64_t n = counts.shape[0], length
    cdef uint8_t[::1] lines
    check_offsets(offsets, n, text.shape[0])
    if n == 0:
        return np.zeros(0, dtype=np.uint8)
    lines = np.empty(offsets[n] - offsets[0] + n * DCME_COUNT_MAX, dtype=np.uint8)
    with nogil:
        length = dcme_counts_format(
            <const char *>&text[0], &offsets[0], &counts[0], n, <char *>&lines[0])
    return np.asarray(lines)[:length]


def ngrams_of(const uint8_t[::1] text, const int64_t[::1] offsets, int shortest, int longest,
              int64_t buckets):
    """Return the buckets of the character n-grams of words.

    The n-grams of word i are at starts[i] .. starts[i + 1] - 1 of the second array.
    """
    cdef dcme_ngrams ngrams
    cdef int64_t n = offsets.shape[0] - 1, i, total = 0
    cdef int64_t[::1] begin
    cdef int32_t[::1] out
    cdef const char *bytes
    check_offsets(offsets, n, text.shape[0])
    ngrams.shortest, ngrams.longest, ngrams.buckets = shortest, longest, buckets
    starts = np.zeros(n + 1, dtype=np.int64)
    if text.shape[0] == 0:
        return starts, np.empty(0, dtype=np.int32)
    begin, bytes = starts, <const char *>&text[0]
    with nogil:
        for i in range(n):
            begin[i + 1] = begin[i] + dcme_ngrams_of(
                &ngrams, bytes + offsets[i], offsets[i + 1] - offsets[i], NULL
            )
    total = begin[n]
    numbers = np.empty(total, dtype=np.int32)
    if total == 0:
        return starts, numbers
    out = numbers
    with nogil:
        for i in range(n):
            if begin[i + 1] > begin[i]:
                dcme_ngrams_of(&ngrams, bytes + offsets[i], offsets[i + 1] - offsets[i],
                               &out[begin[i]])
    return starts, numbers
