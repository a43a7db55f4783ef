"""Bindings of csrc/text, which convert bytes to IDs and counts without the GIL.

An object whose memory changes without the GIL has a lock, which every method that uses this memory
holds.
"""

import os
import threading

import numpy as np

from dcme_w2v._core.csrc cimport *

LAST = DCME_SENTENCE_END
RUN_MAX, ROLE_SIDE = DCME_RUN_MAX, DCME_ROLE_SIDE
REFUSE_NUL, REFUSE_BROKEN = DCME_REFUSE_NUL, DCME_REFUSE_BROKEN
NONE = DCME_NONE


cdef int check_ids(const uint32_t[::1] ids, int64_t limit) except -1 nogil:
    """Raise ValueError unless all IDs are below a limit, ignoring the sentence-end bit."""
    cdef const uint32_t *numbers = &ids[0]
    cdef uint32_t largest = 0, last = DCME_SENTENCE_END
    cdef int64_t i, n = ids.shape[0]
    for i in range(n):
        largest = max(largest, numbers[i] & ~last)
    if n and largest >= limit:
        raise ValueError("an id is out of range")
    return 0


cdef class Table:
    """Distinct words with counts, numbered by first appearance; see csrc/text/text.h."""

    cdef dcme_vocabulary *vocabulary
    cdef object lock

    def __cinit__(self):
        self.lock = threading.Lock()
        dcme_vocabulary_open(&self.vocabulary, int.from_bytes(os.urandom(8), "little"))

    def __dealloc__(self):
        dcme_vocabulary_close(self.vocabulary)

    def __len__(self):
        return dcme_vocabulary_types(self.vocabulary)

    def clear(self):
        """Remove all words, but keep the memory."""
        with self.lock, nogil:
            dcme_vocabulary_clear(self.vocabulary)

    def add(self, const uint8_t[::1] text, const int64_t[::1] offsets, const int64_t[::1] counts):
        """Add concatenated words with their counts."""
        cdef int64_t i
        cdef uint32_t number
        check_starts(offsets, counts.shape[0], text.shape[0])
        with self.lock, nogil:
            for i in range(counts.shape[0]):
                dcme_vocabulary_add(self.vocabulary, chars(text) + offsets[i],
                                    offsets[i + 1] - offsets[i], counts[i], &number)

    def find(self, list words not None):
        """Return the IDs of the given words (bytes), without words that are not in the table."""
        cdef list found = []
        cdef int64_t number
        cdef bytes word
        with self.lock:
            for word in words:
                number = dcme_vocabulary_find(self.vocabulary, word, len(word))
                if number >= 0:
                    found.append(number)
        return found

    def encode(self, const uint8_t[::1] text, int refuse, uint32_t[::1] ids=None):
        """Count the words of a block; return tokens, newlines, newline first, bad offset or -1."""
        cdef dcme_encoded block
        cdef uint32_t *to = NULL
        if ids is not None:
            if 2 * ids.shape[0] < text.shape[0]:
                raise ValueError("the array `ids` is too small: it does not fit the block")
            to = &ids[0]
        with self.lock, nogil:
            dcme_encode(self.vocabulary, chars(text), text.shape[0], <dcme_refusal>refuse, to, &block)
        return block.tokens, block.newlines, bool(block.newline_first), block.bad

    def count_grams(self, const uint8_t[::1] text, const int64_t[::1] offsets, int64_t lead,
                    int64_t everywhere, int64_t longest):
        """Count the words and n-grams of texts that are in the table; return sparse rows."""
        cdef int64_t i, most = 0, n = offsets.shape[0] - 1
        cdef dcme_gram_lengths lengths = dcme_gram_lengths(lead, everywhere, longest)
        check_starts(offsets, n, text.shape[0])
        for i in range(n):
            most += dcme_grams_most(&lengths, offsets[i + 1] - offsets[i])
        cdef int64_t[::1] starts = np.empty(n + 1, np.int64)
        cdef int32_t[::1] columns = np.empty(most, np.int32)
        cdef float[::1] counts = np.empty(most, np.float32)
        with self.lock, nogil:
            dcme_count_grams(self.vocabulary, &lengths, chars(text), &offsets[0], n, &starts[0],
                             &columns[0], &counts[0])
        most = starts[n]
        return np.asarray(starts), np.array(columns[:most]), np.array(counts[:most])

    def merge(self, Table other, int64_t first, int64_t last, int errors, uint32_t[::1] map):
        """Add words from another table and map their IDs; return tokens replaced and skipped."""
        cdef dcme_repairs repairs = dcme_repairs(0, 0)
        cdef Table one, two
        if other is self:
            raise ValueError("a table does not fit together with itself; use another table")
        one, two = sorted((self, other), key=id)  # the fixed order prevents a deadlock
        with one.lock, two.lock:
            if not 0 <= first <= last <= min(len(other), map.shape[0]):
                raise ValueError("first, last and map do not fit the other table")
            with nogil:
                dcme_vocabulary_merge(self.vocabulary, other.vocabulary, first, last,
                                      <dcme_encoding_errors>errors, &map[0], &repairs)
        return repairs.replaced, repairs.skipped

    def bytes(self, int64_t extra):
        """Return the peak memory of the table in bytes while this many words are added."""
        with self.lock:
            return dcme_vocabulary_bytes(self.vocabulary, extra)

    def counts(self):
        """Return the count of each word, by ID."""
        cdef int64_t types
        with self.lock:
            types = len(self)
            if types == 0:
                return np.zeros(0, np.int64)
            return np.array(<int64_t[:types]>dcme_vocabulary_counts(self.vocabulary))

    def words(self, const int64_t[::1] order):
        """Concatenate the words with the IDs in `order`; return the text and each start."""
        cdef int64_t i, n = order.shape[0]
        cdef int64_t[::1] offsets = np.empty(n + 1, np.int64)
        cdef char[::1] text
        with self.lock:
            for i in range(n):
                if not 0 <= order[i] < dcme_vocabulary_types(self.vocabulary):
                    raise IndexError("order names words that the table does not have")
            dcme_vocabulary_offsets(self.vocabulary, &order[0], n, &offsets[0])
            text = np.empty(offsets[n], np.uint8)
            dcme_vocabulary_copy(self.vocabulary, &order[0], n, &text[0])
        return np.asarray(text), np.asarray(offsets)

    def ngrams(self, const uint8_t[::1] text, const int64_t[::1] offsets, int shortest,
               int longest, int64_t most, bint learns):
        """Return the IDs of the character n-grams of words in angle brackets.

        Characters after the first `most` of a word are ignored. The IDs for word i are at starts[i]
        .. starts[i + 1] - 1 of the second array. Unless `learns` is set, n-grams that are not in the
        table are omitted.
        """
        cdef dcme_ngrams ngrams = dcme_ngrams(shortest, longest, 1)
        cdef int64_t n = offsets.shape[0] - 1, i, count = 0
        cdef int64_t[::1] starts = np.zeros(n + 1, np.int64)
        cdef int32_t[::1] ids
        cdef int64_t length, room = 3
        check_starts(offsets, n, text.shape[0])
        if not 1 <= shortest <= longest:
            raise ValueError("the shortest and longest n-gram lengths do not fit together")
        for i in range(n):
            room = max(room, offsets[i + 1] - offsets[i] + 3)
        cdef char[::1] word = np.empty(room, np.uint8)
        count = offsets[n] - offsets[0] + 3 * n
        ids = np.empty(count * (longest - shortest + 1) + 1, np.int32)
        with self.lock, nogil:
            for i in range(n):
                length = dcme_mark_word(chars(text) + offsets[i], offsets[i + 1] - offsets[i], most,
                                        &word[0])
                dcme_ngrams_number(self.vocabulary, &ngrams, &word[0], length, &word[0] + room,
                                   learns, &ids[starts[i]], &count)
                starts[i + 1] = starts[i] + count
        return np.asarray(starts), np.asarray(ids)[: starts[n]].copy()


cdef class Renumbering:
    """Replaces provisional IDs by final IDs, block by block; see csrc/text/text.h."""

    cdef dcme_renumbering state
    cdef object lock

    def __cinit__(self):
        self.lock = threading.Lock()
        dcme_renumber_start(&self.state)

    @property
    def lines(self):
        """Number of lines with at least one token, kept or dropped."""
        return self.state.lines

    def add(self, const uint32_t[::1] ids, const uint32_t[::1] map, bint newline,
            uint32_t[::1] to):
        """Renumber the next block of IDs, all in the map; return how many were written."""
        cdef int64_t written = 0
        if to.shape[0] <= ids.shape[0]:
            raise ValueError("the array `to` is too small: it does not fit the IDs")
        with self.lock, nogil:
            check_ids(ids, map.shape[0])
            written = dcme_renumber(&self.state, &to[0], &ids[0], ids.shape[0], &map[0], newline)
        return written


cdef class Pairs:
    """A table of pairs of adjacent words, to be counted or joined; see csrc/text/phrases.h."""

    cdef dcme_pairs *pairs
    cdef object lock

    def __cinit__(self, int64_t size, int bits=0, uint64_t value=0):
        self.lock = threading.Lock()
        dcme_pairs_open(&self.pairs, size, bits, value)

    def __dealloc__(self):
        dcme_pairs_close(self.pairs)

    @property
    def bits(self):
        """Number of low hash bits that all pairs in this table share."""
        return dcme_pairs_bits(self.pairs)

    def count(self, const uint32_t[::1] ids, const uint8_t[::1] roles):
        """Count the pairs in the next piece of text."""
        with self.lock, nogil:
            check_ids(ids, roles.shape[0])
            dcme_pairs_count(self.pairs, &ids[0], ids.shape[0], &roles[0])

    def counted(self, int64_t least):
        """Return left words, right words, runs and counts of the pairs with at least this count."""
        cdef int64_t n
        cdef uint32_t[:, ::1] sides
        cdef int64_t[::1] counts
        with self.lock:
            n = dcme_pairs_counted(self.pairs, least, NULL, NULL, NULL, NULL)
            sides, counts = np.empty((3, n), np.uint32), np.empty(n, np.int64)
            dcme_pairs_counted(
                self.pairs, least, &sides[0, 0], &sides[1, 0], &sides[2, 0], &counts[0])
        return *np.asarray(sides), np.asarray(counts)

    def add(self, const uint32_t[::1] left, const uint32_t[::1] right, const uint32_t[::1] runs,
            const uint32_t[::1] joined):
        """Add pairs, each with the ID of the word into which it will be joined."""
        cdef int64_t i
        if not left.shape[0] == right.shape[0] == runs.shape[0] == joined.shape[0]:
            raise ValueError("the arrays of pairs differ in length: they do not fit together")
        with self.lock:
            for i in range(left.shape[0]):
                dcme_pairs_add(self.pairs, left[i], right[i], runs[i], joined[i])

    def join(self, const uint32_t[::1] ids, const uint8_t[::1] roles, bint last=False):
        """Return the next piece of text with pairs joined; `last` means that no piece follows."""
        cdef uint32_t[::1] to = np.empty(ids.shape[0] + DCME_RUN_MAX + 1, np.uint32)
        cdef int64_t written = 0
        with self.lock, nogil:
            check_ids(ids, roles.shape[0])
            written = dcme_pairs_join(self.pairs, &ids[0], ids.shape[0], &roles[0], last, &to[0])
        return np.asarray(to)[:written]


def text_of(const uint32_t[::1] ids, const uint8_t[::1] words, const int64_t[::1] offsets):
    """Return the text of IDs, with a space after each word and a newline after each line."""
    cdef int64_t n = ids.shape[0], count = offsets.shape[0] - 1
    check_starts(offsets, count, words.shape[0])
    check_ids(ids, count)
    cdef char[::1] text = np.empty(
        dcme_ids_text(&ids[0], n, chars(words), &offsets[0], NULL), np.uint8)
    with nogil:
        dcme_ids_text(&ids[0], n, chars(words), &offsets[0], &text[0])
    return np.asarray(text)


def release_freed():
    """Return freed memory to the operating system."""
    dcme_release_freed()


def format_counts(const uint8_t[::1] text, const int64_t[::1] offsets, const int64_t[::1] counts):
    """Return lines of the form "word count" as an array of bytes."""
    cdef int64_t n = counts.shape[0], length
    check_starts(offsets, n, text.shape[0])
    cdef char[::1] lines = np.empty(offsets[n] - offsets[0] + n * DCME_COUNT_MAX, np.uint8)
    with nogil:
        length = dcme_counts_format(chars(text), &offsets[0], &counts[0], n, &lines[0])
    return np.asarray(lines)[:length]


def ngrams_of(const uint8_t[::1] text, const int64_t[::1] offsets, int shortest, int longest,
              int64_t buckets):
    """Return the buckets of the character n-grams of words.

    The n-grams of word i are at starts[i] .. starts[i + 1] - 1 of the second array.
    """
    cdef dcme_ngrams ngrams = dcme_ngrams(shortest, longest, buckets)
    cdef int64_t n = offsets.shape[0] - 1, i
    cdef int64_t[::1] starts = np.zeros(n + 1, np.int64)
    cdef int32_t[::1] numbers
    check_starts(offsets, n, text.shape[0])
    with nogil:
        for i in range(n):
            starts[i + 1] = starts[i] + dcme_ngrams_of(
                &ngrams, chars(text) + offsets[i], offsets[i + 1] - offsets[i], NULL)
    numbers = np.empty(starts[n], np.int32)
    with nogil:
        for i in range(n):
            dcme_ngrams_of(&ngrams, chars(text) + offsets[i], offsets[i + 1] - offsets[i],
                           &numbers[starts[i]])
    return np.asarray(starts), np.asarray(numbers)


# ---- raw text ----


cdef dcme_character_table characters(arrays) except *:
    """Return a character table after checking that all of its pages exist."""
    cdef const uint16_t[::1] pages = arrays[0]
    cdef const int32_t[::1] values = arrays[1]
    if pages.shape[0] != DCME_PAGES or np.max(pages) >= values.shape[0] // DCME_PAGE:
        raise ValueError("the pages and values of a character table do not fit together")
    return dcme_character_table(&pages[0], &values[0])


cdef class Tokenizer:
    """A tokenizer of raw text; `tables` is `dcme_w2v.text.unicode_tables.Tables`."""

    cdef dcme_tokenizer *tokenizer
    cdef object tables  # keeps the arrays alive
    cdef object lock

    def __cinit__(self, tables):
        cdef const int32_t[::1] sequences = tables.sequences, composites = tables.composites
        cdef const uint64_t[::1] pairs = tables.pairs
        cdef dcme_unicode unicode = dcme_unicode(
            characters(tables.properties), characters(tables.mapping),
            characters(tables.decompositions), characters(tables.combining), &sequences[0],
            &pairs[0], &composites[0], pairs.shape[0], tables.normalize)
        self.tables, self.lock = tables, threading.Lock()
        dcme_tokenizer_open(&self.tokenizer, &unicode)

    def __dealloc__(self):
        dcme_tokenizer_close(self.tokenizer)

    def tokenize(self, const uint8_t[::1] text):
        """Return tokens and line feeds as bytes, and the offset of the first bad byte (or -1)."""
        cdef const char *out = NULL
        cdef int64_t length, bad
        with self.lock:
            with nogil:
                dcme_tokenize(self.tokenizer, chars(text), text.shape[0], &out, &length, &bad)
            return out[:length], bad
