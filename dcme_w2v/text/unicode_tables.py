"""Build the Unicode tables of the C core's tokenizer from Python's module `unicodedata`.

Every character is of one kind: a separator, a part of a token, a token of its own, removed, or a
joiner. The options of `dcme_w2v.text.tokenizer` only change which kind a character is of.
"""

import functools
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.numeric.arrays import I32, I64, U16

SEPARATOR, WORD, SINGLE, REMOVED, JOINER = range(5)
UNSTABLE = 8  # flag of characters that may change in Unicode normalization
PAGE = 256
# Above ASSIGNED_END, there are only variation selectors, tags and private-use characters.
ASSIGNED_END = 0x40000
# The code points of most alphabets and common punctuation are below ALPHABETS_END.
# Building the tables for characters below ALPHABETS_END takes only milliseconds.
# In UTF-8, the first byte of a character at or above ALPHABETS_END is at least LATER_BYTE.
ALPHABETS_END, LATER_BYTE = 0x3000, 0xE3
# Zero-width characters that are part of words in Persian and in Indic scripts.
JOINERS = range(0x200C, 0x200E)
# Variation selectors are removed, because they only select a glyph for the preceding character.
VARIATION_SELECTORS = (
    range(0x180B, 0x180E), range(0x180F, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0)
)  # fmt: skip
HANGUL_SYLLABLES = range(0xAC00, 0xD7A4)
# Hangul vowels and final consonants are combined with the preceding character by arithmetic.
HANGUL_SECONDS = (range(0x1161, 0x1176), range(0x11A8, 0x11C3))
# Each ideograph is a separate token; exported tokenizer.json files contain the same ranges.
IDEOGRAPHS = (
    range(0x3400, 0x4DC0), range(0x4E00, 0xA000), range(0xF900, 0xFB00), range(0x20000, 0x40000)
)  # fmt: skip
# Characters without case, decomposition or combining class, whose kind depends only on the range.
# PLAIN contains ideographs (except compatibility ideographs), Hangul and private-use characters.
PLAIN = (
    range(0x3400, 0x4DC0), range(0x4E00, 0xA000), HANGUL_SYLLABLES, range(0xE000, 0xF900),
    range(0x20000, 0x2F800), range(0x2FA20, 0x40000)
)  # fmt: skip

Paged = tuple[U16, I32]


@dataclass(frozen=True)
class UnicodeTables:
    """The fields of `dcme_unicode` in csrc/text/tokenize.h, with the same element types."""

    properties: Paged
    mapping: Paged
    decompositions: Paged
    combining: Paged
    sequences: I32
    pairs: NDArray[np.uint64]
    composites: I32
    normalize: bool


@functools.cache
def unicode_tables(
    form: str,
    lowercase: bool,
    strip_accents: bool,
    digits: str,
    punctuation: str,
    end: int = ASSIGNED_END,
) -> UnicodeTables:
    """Build the tables for the given options, which takes a few tenths of a second.

    Parameters
    ----------
    form : {"NFC", "NFKC", ""}
        The normal form; empty to leave text as it is.
    lowercase, strip_accents, digits, punctuation
        See `dcme_w2v.text.tokenizer.TokenizerOptions`.
    end : {ASSIGNED_END, ALPHABETS_END}
        The text has only characters below.
    """
    is_plain = np.zeros(end, dtype=np.bool_)
    for plain in PLAIN:
        is_plain[plain.start : plain.stop] = True
    numbers = np.flatnonzero(~is_plain)
    characters = [*map(chr, numbers.tolist())]
    sequences: list[int] = [0]  # sequences are identified by negative positions, so 0 is unused
    decompose: Any = form.replace("C", "D")
    decomposed = {
        ord(c): unicodedata.normalize(decompose, c)
        for c in (characters if form else [])
        if unicodedata.decomposition(c) and unicodedata.normalize(decompose, c) != c
    }
    classes = np.zeros(end, dtype=np.int32)
    classes[numbers] = [*map(unicodedata.combining, characters)]
    pairs = _pairs(decomposed) if form else {}
    # After normalization, convert characters to lowercase and digits to 0 if the options request
    # it.
    mapped = {ord(c): c.lower() for c in characters if c.lower() != c} if lowercase else {}
    if digits == "zero":
        decimal = (ord(c) for c in characters if unicodedata.category(c) == "Nd")
        mapped |= {c: "0" for c in decimal if c != ord("0")}
    results = {ord(one) for text in (*decomposed.values(), *mapped.values()) for one in text}
    is_known = np.zeros(sys.maxunicode + 1, dtype=np.bool_)
    for known in (numbers, [*VARIATION_SELECTORS[-1]], [*results]):
        is_known[known] = True
    properties = _kinds(np.flatnonzero(is_known), strip_accents, digits, punctuation)
    if form:
        removed = set(np.flatnonzero(properties == REMOVED).tolist())
        unstable = {c for c in decomposed if _normal(chr(c), form, removed) != chr(c)}
        unstable.update(np.flatnonzero(classes).tolist(), (pair & 0xFFFFFFFF for pair in pairs))
        properties[[*unstable, *HANGUL_SECONDS[0], *HANGUL_SECONDS[1]]] |= UNSTABLE
        if removed:
            properties[[*removed]] |= UNSTABLE
    return UnicodeTables(
        properties=_paged(properties),
        mapping=_paged(_entries(mapped, sequences)),
        decompositions=_paged(_entries(decomposed, sequences)),
        combining=_paged(classes),
        sequences=np.array(sequences, dtype=np.int32),
        # The maximum value marks the end of the pairs.
        pairs=np.array([*sorted(pairs), 2**64 - 1], dtype=np.uint64),
        composites=np.array([*(pairs[pair] for pair in sorted(pairs)), 0], dtype=np.int32),
        normalize=bool(form),
    )


def _kinds(numbers: I64, strip_accents: bool, digits: str, punctuation: str) -> I32:
    """Return the kind of each character; characters that are not in `numbers` are separators."""
    categories = np.array([unicodedata.category(chr(c)) for c in numbers.tolist()])
    major = categories.astype("U1")
    kinds = np.zeros(sys.maxunicode + 1, dtype=np.int32)
    kinds[numbers[np.isin(major, ["L", "M"] if digits == "drop" else ["L", "M", "N"])]] = WORD
    kinds[HANGUL_SYLLABLES.start : HANGUL_SYLLABLES.stop] = WORD
    if punctuation == "keep":
        kinds[numbers[np.isin(major, ["P", "S"])]] = SINGLE
    for ideographs in IDEOGRAPHS:
        kinds[ideographs.start : ideographs.stop] = SINGLE
    kinds[JOINERS.start : JOINERS.stop] = JOINER
    if strip_accents:
        kinds[numbers[categories == "Mn"]] = REMOVED
    for selectors in VARIATION_SELECTORS:
        kinds[selectors.start : selectors.stop] = REMOVED
    return kinds


def _pairs(decomposed: Mapping[int, str]) -> dict[int, int]:
    """Map each pair of characters (first << 32 | second) to the character composed from it."""
    pairs = {}
    for c in decomposed:
        parts = unicodedata.decomposition(chr(c)).split()
        canonical = len(parts) == 2 and not parts[0].startswith("<")
        if canonical and unicodedata.normalize("NFC", chr(c)) == chr(c):
            pairs[int(parts[0], 16) << 32 | int(parts[1], 16)] = c
    return pairs


def _normal(text: str, form: Any, removed: set[int]) -> str:
    """Return a text in normal form, without the characters in `removed`."""
    if not removed:
        return unicodedata.normalize(form, text)
    parts = unicodedata.normalize(form.replace("C", "D"), text)
    return unicodedata.normalize("NFC", "".join(part for part in parts if ord(part) not in removed))


def _entries(mapped: Mapping[int, str], sequences: list[int]) -> I32:
    """Return each character's replacement: a character, a negated sequence position, or 0."""
    entries = np.zeros((max(mapped, default=0) // PAGE + 1) * PAGE, dtype=np.int32)
    for c, text in mapped.items():
        if len(text) == 1:
            entries[c] = ord(text)
        else:
            entries[c] = -len(sequences)
            sequences += [len(text), *map(ord, text)]
    return entries


def _paged(values: I32) -> Paged:
    """Split a table into pages, store equal pages once, and pad the page list with a zero page."""
    numbers: dict[bytes, int] = {}
    pages = [numbers.setdefault(page.tobytes(), len(numbers)) for page in values.reshape(-1, PAGE)]
    absent = (sys.maxunicode + 1) // PAGE - len(pages)
    pages += absent * [numbers.setdefault(bytes(4 * PAGE), len(numbers))] if absent else []
    return np.array(pages, dtype=np.uint16), np.frombuffer(b"".join(numbers), dtype=np.int32)
