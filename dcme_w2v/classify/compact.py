"""Encode the arrays of compressed models: signed levels, idf values, words, sorted integers.

All arrays are compressed with zlib. Ascending numbers are stored as differences, and each word is
stored without the prefix that it shares with the previous word.
"""

from __future__ import annotations

import contextlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dcme_w2v._core import codec as core
from dcme_w2v.errors import FormatError
from dcme_w2v.formats.artifact import Model
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, I64, U8, Array
from dcme_w2v.numeric.sparse_rows import CompressedRows

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CODES = 255  # number of intervals between the 256 levels to which idf values are quantized
MAX_ROWS = 2**31 - 2
# Maximum number of bytes in the prefix that a word shares with the previous word.
LONGEST_SHARED = 255
MEMORY = 9  # with this memory level, zlib uses its largest hash table


@dataclass(frozen=True)
class Steps:
    """Numbers quantized to 256 steps between their minimum and maximum."""

    codes: U8
    lowest: float
    step: float

    @classmethod
    def of(cls, numbers: F32) -> Steps:
        """Quantize each number to the nearest of 256 steps."""
        lowest = float(numbers.min()) if len(numbers) else 1.0
        step = (float(numbers.max(initial=1.0)) - lowest) / CODES or 1.0
        return cls(np.rint((numbers - lowest) / step).astype(np.uint8), lowest, step)

    def numbers(self) -> F32:
        """Return the numbers that the steps represent."""
        return (self.lowest + self.step * self.codes).astype(np.float32)


def pack_levels(levels: csr_matrix | CompressedRows, kinds: U8) -> tuple[U8, U8]:
    """Pack a matrix of signed levels into arrays of positions and values.

    Features with the same entry in `kinds`, the quantized idf, are stored side by side, because
    their levels are similar.
    """
    rows = levels[np.argsort(kinds, kind="stable")]
    first = np.repeat(np.arange(levels.shape[0]) * levels.shape[1], np.diff(rows.indptr))
    return pack_ascending(first + rows.indices), pack(rows.data)


def unpack_levels(model: Model, kinds: U8, classes: int, entries: int) -> CompressedRows:
    """Unpack the levels from a model file, shape (features, classes)."""
    shape = len(kinds), classes
    places = unpack_ascending(model, "places", entries, len(kinds) * classes)
    levels = unpack(model, "levels", np.int8, entries)
    rows, columns = np.divmod(places, classes)
    starts = np.append(0, np.cumsum(np.bincount(rows, minlength=len(kinds))))
    place = np.empty(len(kinds), dtype=np.int64)
    place[np.argsort(kinds, kind="stable")] = np.arange(len(kinds))
    return CompressedRows((levels, columns.astype(np.int32), starts), shape)[place]


def pack_words(words: Words) -> U8:
    """Pack each word as the prefix length shared with the previous word and the remaining bytes."""
    text, starts, lengths = words.text, words.offsets[:-1], np.diff(words.offsets)
    shared = np.zeros(len(words), dtype=np.int64)
    near = np.arange(1, len(words))  # indices of words that match the previous word so far
    most = np.minimum(np.minimum(lengths[1:], lengths[:-1]), LONGEST_SHARED)
    while len(near := near[most[near - 1] > shared[near]]):
        places = shared[near]
        near = near[text[starts[near] + places] == text[starts[near - 1] + places]]
        shared[near] += 1
    places = np.arange(len(text)) - np.repeat(starts, lengths)
    rests = text[places >= np.repeat(shared, lengths)]
    ended = np.insert(rests, np.cumsum(lengths - shared), 0)
    return pack(np.concatenate([shared.astype(np.uint8), ended]), zlib.Z_DEFAULT_STRATEGY)


def unpack_words(model: Model, count: int) -> Words:
    """Unpack the words from a model file."""
    length = int(model.number("words_length", 0, MAX_ROWS))
    data = _decompressed(model, "words", 2 * count + length)
    try:
        words = Words(*core.unpack_words(np.frombuffer(data, dtype=np.uint8), count, length))
    except (ValueError, FormatError) as error:
        raise model.fault("words", f"the compressed words are damaged ({error})") from None
    return model.checked_words(words)


def pack(numbers: Array, strategy: int = zlib.Z_RLE) -> U8:
    """Compress numbers by byte plane: the lowest bytes of all numbers come first.

    By default, zlib does not search for repeated strings, because that helps only with words.
    """
    little = np.ascontiguousarray(numbers, dtype=numbers.dtype.newbyteorder("<"))
    planes = little.view(np.uint8).reshape(-1, numbers.itemsize).T
    packer = zlib.compressobj(memLevel=MEMORY, strategy=strategy)
    return np.frombuffer(packer.compress(planes.tobytes()) + packer.flush(), dtype=np.uint8)


def unpack(model: Model, name: str, dtype: type[np.generic], count: int) -> Array:
    """Decompress `count` numbers from a model file."""
    kind = np.dtype(dtype).newbyteorder("<")
    data = _decompressed(model, name, count * kind.itemsize)
    if len(data) != count * kind.itemsize:
        raise model.fault(name, f"the compressed bytes do not contain {count} numbers")
    planes = np.frombuffer(data, dtype=np.uint8).reshape(kind.itemsize, count)
    return np.ascontiguousarray(planes.T).view(kind).reshape(count).astype(dtype)


def pack_ascending(numbers: I64) -> U8:
    """Compress the differences between ascending numbers."""
    return pack(np.diff(numbers, prepend=0))


def unpack_ascending(model: Model, name: str, count: int, below: int) -> I64:
    """Decompress ascending numbers from a model file, and check that they are below a limit."""
    found = np.cumsum(unpack(model, name, np.int64, count))
    if ((found < 0) | (found >= below)).any() or (np.diff(found) <= 0).any():
        raise model.fault(name, f"must ascend and stay below {below}")
    return found


def _decompressed(model: Model, name: str, most: int) -> bytes:
    """Decompress an array from a model file; raise an error if it exceeds `most` bytes."""
    unpacker, packed = zlib.decompressobj(), model.array(name, "uint8", None).tobytes()
    with contextlib.suppress(zlib.error):
        data = unpacker.decompress(packed, most + 1)
        if unpacker.eof and not unpacker.unused_data:  # zlib has verified the checksum
            return data
    raise model.fault(name, "the compressed bytes are damaged")
