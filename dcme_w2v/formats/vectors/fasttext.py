"""Models of fastText, `.bin`: words, n-grams and both tables in one file.

All numbers are little-endian and packed. In this order::

    int32     793712314, then the version, 12 (11: models of classes have no n-grams)
    12 int32  dimension, window, epochs, minimum count, negative samples, n-grams of words, loss,
              model, hash buckets, shortest and longest n-gram of characters, update interval
    double    subsampling threshold
    3 int32   entries, words, labels
    2 int64   tokens of the corpus; entries of the table of pruned n-grams, -1 without
    entries   the bytes of a word, 0x00, int64 count, int8 0: word, 1: label
    input     byte 1 if quantized; int64 rows, int64 columns, float32 rows: words, then buckets
    output    the same for the context vectors

`dcme_w2v.words.vectors.Vectors.load` reads such files; training writes them by `save_model`.
"""

import mmap
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.errors import FormatError, UsageError, warn
from dcme_w2v.files.atomic import atomic_write, compression_of
from dcme_w2v.files.opening import FASTTEXT
from dcme_w2v.numeric.arrays import F32, I64
from dcme_w2v.options import SubwordOptions
from dcme_w2v.platform import PathLike

from ..vocabulary import Vocabulary, Words
from .manifest import write_manifest
from .subwords import Subwords
from .vectors_io import blocks_of
from .vectors_reader import FAULT_NAMES, MAX_DIM, word_faults

VERSION, WITHOUT_NGRAMS = 12, 11
NEGATIVE_SAMPLING = 2
MODELS = {1: "cbow", 2: "skipgram", 3: "supervised"}
LONGEST = 100  # characters of an n-gram
_ENCODING = FAULT_NAMES.index("invalid UTF-8 in a word")

HEAD = struct.Struct("<14id")
SIZES = struct.Struct("<3i2q")
ENTRY = struct.Struct("<qb")  # behind a word and its NUL
MATRIX = struct.Struct("<bqq")
NAMES = ("dim", "window", "epochs", "min_count", "negative", "word_ngrams", "loss", "model",
          "buckets", "shortest", "longest", "update_interval")  # fmt: skip


@dataclass(frozen=True)
class FastTextModel:
    """A model as its file has it; the tables are mapped.

    Attributes
    ----------
    header : dict
        The numbers of the header by name.
    words : Words
    counts : ndarray of int64, shape (words,)
    input : ndarray of float32, shape (words + buckets, d)
    output : ndarray of float32, shape (rows, d)
        A row for each word; for each label of a model of classes.
    """

    header: dict[str, Any]
    words: Words
    counts: I64
    input: F32 = field(repr=False)
    output: F32 = field(repr=False)

    @property
    def subwords(self) -> Subwords | None:
        """The n-grams' vectors; None if the model has none."""
        if not self.header["longest"] or not self.header["buckets"]:
            return None
        rows = self.input[len(self.words) :]
        return Subwords(self.header["shortest"], self.header["longest"], rows)


def open_model(path: PathLike) -> FastTextModel:
    """Open a model; the tables are mapped.

    Raises
    ------
    FormatError
        It is not a model of fastText, is quantized, or is corrupt.
    """
    with Path(path).open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        return _Reader(os.fspath(path), data).model()
    except struct.error:
        raise _corrupt(os.fspath(path), "is truncated") from None


def load_words(model: FastTextModel, path: PathLike, limit: int | None) -> tuple[Words, F32, I64]:
    """Return the first words of a model, their vectors and their counts."""
    words = model.words[:limit]
    subwords = model.subwords or Subwords(1, 1, model.input[:0])
    matrix = subwords.vectors_of(words, model.input[: len(words)])
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise _corrupt(os.fspath(path), f"the vector of word {row + 1} is NaN or infinite")
    return _as_utf8(words, os.fspath(path)), matrix, model.counts[:limit]


def _corrupt(path: str, what: str) -> FormatError:
    return FormatError(
        f"{path}: is a model of fastText, but corrupt: {what}; copy or train it again"
    )


class _Reader:
    """Reads the parts of a file one after the other."""

    def __init__(self, path: str, data: mmap.mmap) -> None:
        self._path, self._data, self._at = path, data, 0

    def _take(self, form: struct.Struct) -> tuple[Any, ...]:
        values = form.unpack_from(self._data, self._at)
        self._at += form.size
        return values

    def model(self) -> FastTextModel:
        _, version, *numbers, sample = self._take(HEAD)
        header = {**dict(zip(NAMES, numbers, strict=True)), "sample": sample}
        if version not in (VERSION, WITHOUT_NGRAMS):
            raise FormatError(
                f"{self._path}: is a model of fastText of version {version}; give one of version "
                f"{VERSION}, as fastText 0.9 writes it"
            )
        if version == WITHOUT_NGRAMS and MODELS.get(header["model"]) == "supervised":
            header["longest"] = 0
        entries, words, labels, tokens, pruned = self._take(SIZES)
        self._check(header, entries, words, labels)
        header |= {"labels": labels, "tokens": tokens}
        found, counts = self._dictionary(entries, words)
        if pruned > 0 or self._data[self._at : self._at + 1] == b"\1":
            raise self._quantized()
        expected = words + header["buckets"]
        input = self._matrix("input", expected, header["dim"])
        output = self._matrix("output", None, header["dim"])
        if self._at != len(self._data):
            raise _corrupt(self._path, f"{len(self._data) - self._at} extra bytes at the end")
        return FastTextModel(header, found, counts, input, output)

    def _check(self, header: dict[str, Any], entries: int, words: int, labels: int) -> None:
        if not 1 <= header["dim"] <= MAX_DIM or header["buckets"] < 0:
            raise _corrupt(
                self._path, f"{header['dim']} dimensions and {header['buckets']} buckets"
            )
        if not 0 <= header["longest"] <= LONGEST or header["shortest"] < 0:
            raise _corrupt(
                self._path, f"n-grams of {header['shortest']} to {header['longest']} characters"
            )
        if words < 1 or labels < 0 or entries != words + labels:
            raise _corrupt(self._path, f"{entries} entries of {words} words and {labels} labels")

    def _quantized(self) -> FormatError:
        return FormatError(
            f"{self._path}: is a quantized model of fastText (.ftz), whose vectors are codes; give "
            "the .bin file that it was made from"
        )

    def _dictionary(self, entries: int, words: int) -> tuple[Words, I64]:
        texts, counts = [], []
        find, unpack = self._data.find, ENTRY.unpack_from
        position = self._at
        for number in range(entries):
            end = find(b"\0", position)
            if end < 0:
                raise _corrupt(self._path, f"ends within its {entries} entries")
            count, kind = unpack(self._data, end + 1)
            if kind != (number >= words) or count < 0:
                raise _corrupt(self._path, f"entry {number + 1} is neither a word nor a label")
            if number < words:
                texts.append(self._data[position:end])
                counts.append(count)
            position = end + 1 + ENTRY.size
        self._at = position
        return self._checked(Words.from_words(texts)), np.array(counts, dtype=np.int64)

    def _checked(self, words: Words) -> Words:
        faults = word_faults(words)
        for kind in np.flatnonzero(faults[:, 0]):
            if kind != _ENCODING:
                raise _corrupt(self._path, f"{FAULT_NAMES[kind]} in entry {faults[kind, 1] + 1}")
        return words

    def _matrix(self, name: str, expected: int | None, dim: int) -> F32:
        quantized, rows, columns = self._take(MATRIX)
        if quantized:
            raise self._quantized()
        if rows < 0 or columns != dim or (expected is not None and rows != expected):
            raise _corrupt(self._path, f"{name} of shape ({rows}, {columns})")
        start, size = self._at, 4 * rows * columns
        if start + size > len(self._data):
            raise _corrupt(self._path, "is truncated")
        self._at += size
        # not aligned: words have any length
        return np.ndarray((rows, columns), "<f4", self._data, start)


def _as_utf8(words: Words, path: str) -> Words:
    """Return words with bytes that are not UTF-8 escaped, after a warning."""
    count = int(word_faults(words)[_ENCODING, 0])
    if not count:
        return words
    warn(f"{path}: {count} words are not UTF-8; their bytes are escaped, as \\xff")
    texts = map(words.raw, range(len(words)))
    escaped = Words.from_words(text.decode("utf-8", "backslashreplace") for text in texts)
    if word_faults(escaped).any():
        raise _corrupt(path, "two words are equal after escaping")
    return escaped


_UPDATE_INTERVAL = 100  # fastText's default; has no effect on a trained model


def check_model_name(path: str) -> None:
    """Raise `UsageError` if a model could not be read again under this name."""
    if compression_of(path) is not None:
        raise UsageError(f"{path}: models of fastText are not compressed; name a .bin file")


def save_model(
    path: str,
    vocabulary: Vocabulary,
    tables: tuple[Sequence[F32], Sequence[F32]],
    options: Any,
    subwords: SubwordOptions,
    tokens: int,
    manifest: Mapping[str, Any] | None = None,
) -> None:
    """Write a model, atomically, and how it was made to PATH.json.

    Parameters
    ----------
    path : str
    vocabulary : Vocabulary
    tables : two sequences of ndarray of float32
        The input vectors, of the words and then of n-grams, and the context vectors.
    options : TrainOptions
        Resolved.
    subwords : SubwordOptions
    tokens : int
        Tokens of the corpus.
    manifest : mapping, optional
    """
    words = len(vocabulary)
    with atomic_write(path) as file:
        file.write(_head(options, subwords, vocabulary, sum(map(len, tables[0])) - words))
        file.write(SIZES.pack(words, words, 0, tokens, -1))
        file.writelines(_entries(vocabulary))
        for parts in tables:
            file.write(MATRIX.pack(0, sum(map(len, parts)), options.dim))
            for part in parts:
                for _, block in blocks_of(part):
                    file.write(block.astype("<f4", copy=False).data.cast("B"))
    write_manifest(manifest, path)


def _head(options: Any, subwords: SubwordOptions, vocabulary: Vocabulary, buckets: int) -> bytes:
    shortest, longest = subwords.lengths
    numbers = {
        "dim": options.dim,
        "window": options.window,
        "epochs": options.epochs,
        "min_count": int(np.min(vocabulary.counts)),
        "negative": options.negative,
        "word_ngrams": 1,
        "loss": NEGATIVE_SAMPLING,
        "model": next(number for number, name in MODELS.items() if name == options.model),
        "buckets": buckets,
        "shortest": shortest,
        "longest": longest,
        "update_interval": _UPDATE_INTERVAL,
    }
    magic = int.from_bytes(FASTTEXT, "little")
    return HEAD.pack(magic, VERSION, *(numbers[name] for name in NAMES), options.sample)


def _entries(vocabulary: Vocabulary) -> Iterator[bytes]:
    text, ends = vocabulary.text.tobytes(), vocabulary.offsets.tolist()
    for number, count in enumerate(vocabulary.counts.tolist()):
        yield text[ends[number] : ends[number + 1]] + b"\0" + ENTRY.pack(count, 0)
