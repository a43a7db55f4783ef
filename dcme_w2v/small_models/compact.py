"""Arrays of a small model in few bytes: signed levels, steps of idf, words and ascending numbers.

The coder in csrc/fused/coder.c gives each bit -log2 of its probability after the preceding bits.
Words in order are front-coded, then compressed by LZMA.
"""

from __future__ import annotations

import lzma
import os
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v._core import codec as core
from dcme_w2v.formats.artifact import Model
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, I64, U8

CODES = 255  # idf is one of so many steps
MAX_ROWS = 2**31 - 2
LONGEST_SHARED = 255  # bytes of a common beginning
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]


@dataclass(frozen=True)
class Steps:
    """Numbers as one of 256 steps from the lowest to the highest."""

    codes: U8
    lowest: float
    step: float

    @classmethod
    def of(cls, numbers: F32) -> Steps:
        """Return the nearest steps."""
        lowest = float(numbers.min()) if len(numbers) else 1.0
        step = (float(numbers.max(initial=1.0)) - lowest) / CODES or 1.0
        return cls(np.rint((numbers - lowest) / step).astype(np.uint8), lowest, step)

    def numbers(self) -> F32:
        """Return the numbers of the steps."""
        return (self.lowest + self.step * self.codes).astype(np.float32)


def pack_levels(levels: csr_matrix, kinds: U8) -> U8:
    """Return signed levels, int8 of shape (features, classes), entropy-coded.

    The probability of a level may depend on the feature's entry of `kinds`: the step of its idf.
    """
    starts = levels.indptr.astype(np.int64)
    columns = levels.indices.astype(np.int32, copy=False)
    data = levels.data.astype(np.int8, copy=False)
    return core.pack_levels(starts, columns, data, kinds // 8, levels.shape[1])


def unpack_levels(model: Model, kinds: U8, classes: int, entries: int) -> csr_matrix:
    """Return the levels of a model, shape (features, classes)."""
    data = model.array("levels", "uint8", None)
    try:
        starts, columns, levels = core.unpack_levels(data, kinds // 8, classes, entries)
    except ValueError as error:
        raise model.fault("levels", str(error)) from None
    return csr_matrix((levels, columns, starts), shape=(len(kinds), classes))


def in_byte_order(words: Words, rows: I64) -> tuple[Words, I64]:
    """Return the words of some rows in the order of their bytes, and their rows."""
    text, ends = words.text.tobytes(), words.offsets.tolist()
    order = sorted(rows.tolist(), key=lambda i: text[ends[i] : ends[i + 1]])
    chosen = Words.from_words(text[ends[i] : ends[i + 1]] for i in order)
    return chosen, np.array(order, dtype=np.int64)


def pack_words(words: Words) -> U8:
    """Return words in the order of their bytes: lengths of common beginnings, then the rest."""
    shared, rests, before = bytearray(), bytearray(), b""
    for word in map(words.raw, range(len(words))):
        length = len(os.path.commonprefix((before, word[:LONGEST_SHARED])))
        shared.append(length)
        rests += word[length:] + b"\0"
        before = word
    data = lzma.compress(shared + rests, lzma.FORMAT_RAW, filters=FILTERS)
    return np.frombuffer(data, dtype=np.uint8)


def unpack_words(model: Model, count: int) -> Words:
    """Return the words of a model."""
    data = model.array("words", "uint8", None)
    length = int(model.number("words_length", 0, MAX_ROWS))
    try:
        words = _words_in(data.tobytes(), count, length)
    except (lzma.LZMAError, ValueError) as error:
        raise model.fault("words", f"the coded words are damaged ({error})") from None
    return model.checked_words(words)


def _words_in(data: bytes, count: int, length: int) -> Words:
    coder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=FILTERS)
    found = coder.decompress(data, 2 * count + length + 1)
    rests, words, word = found[count:].split(b"\0"), list[bytes](), b""
    for shared, rest in zip(found[:count], rests, strict=False):
        word = word[:shared] + rest
        words.append(word)
    if len(rests) != count + 1 or rests[count] or sum(map(len, words)) != length:
        raise ValueError("they have another length")
    return Words.from_words(words)


def pack_numbers(numbers: I64) -> U8:
    """Return ascending numbers below 2^31 by their differences."""
    return core.pack_numbers(np.diff(numbers, prepend=0).astype(np.uint32), 0)


def unpack_numbers(model: Model, name: str, count: int, below: int) -> I64:
    """Return the ascending numbers of a model."""
    data = model.array(name, "uint8", None)
    found = np.cumsum(core.unpack_numbers(data, count, 0).astype(np.int64))
    if count and (found[-1] >= below or (np.diff(found) <= 0).any()):
        raise model.fault(name, f"does not ascend below {below}")
    return found
