"""Arrays of a small model: levels, words and numbers in few bytes, and back.

Coding is csrc/fused/coder.c's: each bit costs -log2 of the probability that what came before gives
it. Called by `dcme_w2v.small_models.shrink`.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v._core import fused as core
from dcme_w2v.few_labels.options import MAX_LEVELS
from dcme_w2v.formats.model_entries import Model
from dcme_w2v.formats.model_folder import words_arrays
from dcme_w2v.formats.word_list import Words

CODES = 255  # idf is one of so many steps
FALSE_MATCHES = 1000  # an unknown word has the hash value of a known one once in so many
MAX_ROWS = 2**31 - 2
_WIDEST = 1 << 31

Bytes = NDArray[np.uint8]


# ---- levels ----


def pack_levels(levels: csr_matrix, kinds: Bytes, coding: str) -> dict[str, NDArray[Any]]:
    """Return signed levels, int8 of shape (features, classes), as arrays.

    Parameters
    ----------
    levels : csr_matrix
    kinds : ndarray of uint8, shape (features,)
        What the levels of a feature may depend on: the steps of its idf.
    coding : {"entropy", "packed", "plain"}
    """
    starts = levels.indptr.astype(np.int64)
    columns, data = levels.indices.astype(np.int32), levels.data.astype(np.int8)
    if coding == "entropy":
        return {"levels": core.pack_levels(starts, columns, data, kinds // 8, levels.shape[1])}
    if coding == "packed":
        highest = int(np.abs(data.astype(np.int64)).max(initial=1))
        bits = _bits_of(highest)
        numbers = (levels.toarray().astype(np.int64).ravel() + highest).astype(np.uint8)
        whole = np.unpackbits(numbers[:, None], axis=1)[:, 8 - bits :]
        return {"levels_packed": np.packbits(whole)}
    return {"levels_data": data, "levels_indices": columns, "levels_indptr": starts}


def unpack_levels(
    model: Model, kinds: Bytes, features: int, classes: int, entries: int
) -> csr_matrix:
    """Return the levels of a model."""
    if "levels" in model.arrays:
        data = np.asarray(model.array("levels", "uint8", None))
        try:
            parts = core.unpack_levels(data, kinds // 8, classes, entries)
        except ValueError as error:
            raise model.fault("levels", str(error)) from None
        starts, columns, levels = parts
        return csr_matrix((levels, columns, starts), shape=(features, classes))
    if "levels_packed" in model.arrays:
        return _unpacked(model, features, classes)
    names = ("levels_indptr", "levels_indices", "levels_data")
    return model.rows(names, features, classes, "int8")


def _unpacked(model: Model, features: int, classes: int) -> csr_matrix:
    highest = int(model.number("highest_level", 1, MAX_LEVELS))
    bits, cells = _bits_of(highest), features * classes
    data = model.array("levels_packed", "uint8", (cells * bits + 7) // 8)
    whole = np.zeros((cells, 8), dtype=np.uint8)
    whole[:, 8 - bits :] = np.unpackbits(np.asarray(data))[: cells * bits].reshape(cells, bits)
    numbers = np.packbits(whole, axis=1).ravel().astype(np.int64) - highest
    if (numbers > highest).any():
        raise model.fault("levels_packed", f"has a level above {highest}")
    return csr_matrix(numbers.astype(np.int8).reshape(features, classes))


def _bits_of(highest: int) -> int:
    """Return how many bits a level from -highest to highest takes: 4 up to 7, 5 up to 15."""
    return (2 * highest).bit_length()


# ---- idf ----


@dataclass(frozen=True)
class Steps:
    """Numbers as one of 256 steps from the lowest to the highest."""

    codes: Bytes
    lowest: float
    step: float

    @classmethod
    def of(cls, numbers: NDArray[np.float32]) -> Steps:
        """Return the nearest steps."""
        lowest, highest = (float(f(numbers, initial=1.0)) for f in (np.min, np.max))
        lowest = float(numbers.min()) if len(numbers) else lowest
        step = (highest - lowest) / CODES or 1.0
        return cls(np.rint((numbers - lowest) / step).astype(np.uint8), lowest, step)

    def numbers(self) -> NDArray[np.float32]:
        """Return what the steps stand for."""
        found: NDArray[np.float32] = (self.lowest + self.step * self.codes).astype(np.float32)
        return found


def pack_bytes(codes: Bytes) -> Bytes:
    """Return bytes in fewer."""
    return core.pack_numbers(codes.astype(np.uint32), 8)


def unpack_bytes(model: Model, name: str, count: int) -> Bytes:
    """Return so many bytes of an array of a model."""
    data = np.asarray(model.array(name, "uint8", None))
    return core.unpack_numbers(data, count, 8).astype(np.uint8)


# ---- words ----


def sorted_places(words: Words) -> NDArray[np.int64]:
    """Return the places of words in the order of their bytes."""
    text, ends = words.text.tobytes(), words.offsets.tolist()
    found = sorted(range(len(words)), key=lambda i: text[ends[i] : ends[i + 1]])
    return np.array(found, dtype=np.int64)


def shuffled_words(words: Words, places: NDArray[np.int64]) -> Words:
    """Return some words in another order."""
    text, ends = words.text.tobytes(), words.offsets.tolist()
    return Words.from_words(text[ends[i] : ends[i + 1]] for i in places.tolist())


def pack_words(words: Words, form: str) -> dict[str, NDArray[Any]]:
    """Return sorted words as arrays: front-coded or plain."""
    if form == "plain":
        return words_arrays(words)
    return {"words": core.pack_words(words.text, words.offsets)}


def unpack_words(model: Model, count: int) -> Words:
    """Return the words of a model."""
    if "words" not in model.arrays:
        return model.words()
    data = np.asarray(model.array("words", "uint8", None))
    length = int(model.number("words_length", 0, float(255 * (len(data) + 1) * 8)))
    try:
        text, offsets = core.unpack_words(data, count, length)
    except ValueError as error:
        raise model.fault("words", str(error)) from None
    return model.checked_words(Words(text, offsets), "words")


# ---- hash values ----


def width_for(words: int) -> int:
    """Return how many hash values there are for so many words: a power of two."""
    return int(min(_WIDEST, 1 << max(8, (FALSE_MATCHES * words - 1).bit_length())))


def buckets_of(words: Words, width: int) -> NDArray[np.int64]:
    """Return the hash value of each word, below `width`."""
    text, ends = words.text.tobytes(), words.offsets.tolist()
    found = [zlib.crc32(text[ends[i] : ends[i + 1]]) % width for i in range(len(words))]
    return np.array(found, dtype=np.int64)


def pack_numbers(numbers: NDArray[np.int64]) -> Bytes:
    """Return ascending numbers below 2^31 by their differences."""
    return core.pack_numbers(np.diff(numbers, prepend=0).astype(np.uint32), 0)


def unpack_numbers(model: Model, name: str, count: int, below: int) -> NDArray[np.int64]:
    """Return the ascending numbers of a model."""
    data = np.asarray(model.array(name, "uint8", None))
    found = np.cumsum(core.unpack_numbers(data, count, 0).astype(np.int64))
    if count and (found[-1] >= below or (np.diff(found) <= 0).any()):
        raise model.fault(name, f"does not ascend below {below}")
    return found
