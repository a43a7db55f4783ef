"""Read and write fastText models (`.bin`): words, n-grams, and input and output tables.

All numbers are little-endian and packed. In this order::

    int32     793712314, then the version, 12 (11: classifiers have no n-grams)
    12 int32  dimension, window, epochs, minimum count, negative samples, n-grams of words, loss,
              model, hash buckets, shortest and longest n-gram of characters, update interval
    double    subsampling threshold
    3 int32   entries, words, labels
    2 int64   tokens of the corpus; entries of the table of pruned n-grams, -1 without
    entries   the bytes of a word, 0x00, int64 count, int8 0: word, 1: label
    input     byte 1 if quantized; int64 rows, int64 columns, float32 rows: words, then buckets
    output    the same for the context vectors

`dcme_w2v.words.vectors.Vectors.load` reads such files; `write_fasttext` writes them.
"""

import os
import struct
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dcme_w2v.errors import FormatError, UsageError, warn
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.files.opening import MAGIC, open_regular
from dcme_w2v.numeric.arrays import F32, I64, infinite_row
from dcme_w2v.platform import PathLike

from ..artifact import contents
from ..vocabulary import Words
from .subwords import Subwords
from .tables import T, WordTables, blocks_of
from .vectors_reader import FAULT_NAMES, MAX_DIM, word_faults

VERSION, WITHOUT_NGRAMS = 12, 11
NEGATIVE_SAMPLING = 2
MODELS = {1: "cbow", 2: "skipgram", 3: "supervised"}
LONGEST = 100  # maximum length of an n-gram in characters
_DEFAULTS = {"model": "skipgram", "window": 5, "epochs": 5, "negative": 5, "sample": 1e-4}
_ENCODING = FAULT_NAMES.index("invalid UTF-8 in a word")

FIELDS = (
    "magic", "version", "dim", "window", "epochs", "min_count", "negative", "word_ngrams", "loss",
    "model", "buckets", "shortest", "longest", "update_interval", "sample", "entries", "words",
    "labels", "tokens", "pruned",
)  # fmt: skip
HEAD = struct.Struct("<14id3i2q")
# In the dictionary, a count and a type follow each word and its NUL byte.
ENTRY = struct.Struct("<qb")
MATRIX = struct.Struct("<bqq")


@dataclass(frozen=True)
class FastTextModel:
    """The contents of a fastText model file; large tables are memory-mapped.

    Attributes
    ----------
    header : dict
        The numbers of the header by name.
    words : Words
    counts : ndarray of int64, shape (words,)
    input : ndarray of float32, shape (words + buckets, d)
    output : ndarray of float32, shape (rows, d)
        One row per word, or in a classifier one row per label.
    """

    header: dict[str, Any]
    words: Words
    counts: I64
    input: F32 = field(repr=False)
    output: F32 = field(repr=False)

    @property
    def subwords(self) -> Subwords | None:
        """The n-gram vectors, or None if the model has none."""
        if not self.header["longest"] or not self.header["buckets"]:
            return None
        rows = self.input[len(self.words) :]
        return Subwords(self.header["shortest"], self.header["longest"], rows)


def open_model(path: PathLike) -> FastTextModel:
    """Open a fastText model; large tables are memory-mapped.

    Raises
    ------
    FormatError
        The file is not a fastText model, is quantized, or is corrupt.
    """
    name = os.fspath(path)
    with open_regular(path) as file:
        whole = contents(file, path)
    data = getattr(whole, "_mmap", None) or whole.tobytes()
    try:
        header = dict(zip(FIELDS, HEAD.unpack_from(data), strict=True))
        _check(name, header)
        words, counts, at = _dictionary(name, data, header)
        input, at = _matrix(name, whole, at, header)
        output, at = _matrix(name, whole, at, header)
    except struct.error:
        raise _corrupt(name, "is truncated") from None
    if len(input) != len(words) + header["buckets"] or at != len(data):
        raise _corrupt(name, f"{len(input)} rows, {len(data) - at} extra bytes at the end")
    return FastTextModel(header, words, counts, input, output)


def read_fasttext(
    path: PathLike, limit: int | None, mmap: bool, manifest: dict[str, Any] | None, make: type[T]
) -> T:
    """Read a model's n-gram vectors and its word vectors, which are means of n-gram vectors."""
    model, name = open_model(path), os.fspath(path)
    words, counts = model.words[:limit], model.counts[:limit]
    own, found = model.input[: len(words)], model.subwords or Subwords(1, 1, model.input[:0])
    matrix = found.vectors_of(words, own)
    if (row := infinite_row(matrix)) is not None:
        raise _corrupt(name, f"the vector of word {row + 1} is NaN or infinite")
    words, context = _as_utf8(words, name), None
    if len(model.output) == len(model.words) and model.header["loss"] == NEGATIVE_SAMPLING:
        context = make(words, kept(model.output[: len(words)], mmap), counts)
    subwords = None
    if model.subwords is not None:
        subwords = replace(found, rows=kept(found.rows, mmap), own=kept(own, mmap))
    return make(words, matrix, counts, context=context, subwords=subwords, manifest=manifest)


def kept(rows: F32, mmap: bool) -> F32:
    """Return memory-mapped rows themselves if `mmap` is true, or otherwise a copy of the rows."""
    return rows if mmap else np.array(rows)


def _corrupt(path: str, what: str) -> FormatError:
    return FormatError(
        f"{path}: this fastText model is corrupt: {what}; copy or train the model again"
    )


def _check(path: str, header: dict[str, Any]) -> None:
    """Check a header, and set the n-gram length of old classifiers, which lack n-grams, to 0."""
    version = header["version"]
    if version not in (VERSION, WITHOUT_NGRAMS):
        raise FormatError(
            f"{path} has fastText format version {version}; use a model of version {VERSION}, "
            "which fastText 0.9 writes"
        )
    if version == WITHOUT_NGRAMS and MODELS.get(header["model"]) == "supervised":
        header["longest"] = 0
    limits = {"dim": (1, MAX_DIM), "longest": (0, LONGEST), "words": (1, header["entries"])}
    for name in ("buckets", "shortest", "labels"):
        limits[name] = 0, 1 << 31
    for name, (low, high) in limits.items():
        if not low <= header[name] <= high:
            raise _corrupt(path, f"{name} of {header[name]}")
    if header["entries"] != header["words"] + header["labels"]:
        raise _corrupt(path, f"{header['entries']} entries is not the sum of words and labels")


def _quantized(path: str) -> FormatError:
    return FormatError(
        f"{path} is a quantized fastText model (.ftz), which has no exact vectors; use the "
        "original .bin file"
    )


def _dictionary(path: str, data: Any, header: dict[str, Any]) -> tuple[Words, I64, int]:
    """Return the words and counts of a model, and the file offset at which they end."""
    texts, counts, at = [], [], HEAD.size
    for number in range(header["entries"]):
        end = data.find(b"\0", at)
        if end < 0:
            raise _corrupt(path, f"ends within its {header['entries']} entries")
        count, kind = ENTRY.unpack_from(data, end + 1)
        if kind != (number >= header["words"]) or count < 0:
            raise _corrupt(path, f"entry {number + 1} is neither a word nor a label")
        if not kind:
            texts.append(data[at:end])
            counts.append(count)
        at = end + 1 + ENTRY.size
    words = Words.from_words(texts)
    faults = word_faults(words)
    faults[_ENCODING] = 0  # invalid UTF-8 is allowed here, because `_as_utf8` escapes it
    for kind in np.flatnonzero(faults[:, 0]):
        raise _corrupt(path, f"{FAULT_NAMES[kind]} in entry {faults[kind, 1] + 1}")
    if header["pruned"] > 0:
        raise _quantized(path)
    return words, np.array(counts, dtype=np.int64), at


def _matrix(path: str, data: Any, at: int, header: dict[str, Any]) -> tuple[F32, int]:
    """Return the table that starts at a file offset, and the offset at which the table ends."""
    quantized, rows, columns = MATRIX.unpack_from(data, at)
    start = at + MATRIX.size
    end = start + 4 * rows * columns
    if quantized:
        raise _quantized(path)
    if rows < 0 or columns != header["dim"] or end > len(data):
        raise _corrupt(path, f"a table of shape ({rows}, {columns}), or is truncated")
    # The table is at an unaligned file offset, because words of varying length precede it.
    return np.ndarray((rows, columns), "<f4", data, start), end


def _as_utf8(words: Words, path: str) -> Words:
    """Replace invalid UTF-8 bytes in words with escapes, and warn about the affected words."""
    count = int(word_faults(words)[_ENCODING, 0])
    if not count:
        return words
    warn(
        f"{path}: {count} words are not UTF-8; their invalid bytes were replaced by escapes such "
        "as \\xff"
    )
    texts = map(words.raw, range(len(words)))
    escaped = Words.from_words(text.decode("utf-8", "backslashreplace") for text in texts)
    if word_faults(escaped).any():
        raise _corrupt(path, "two words are equal after escaping")
    return escaped


_UPDATE_INTERVAL = 100  # fastText's default, which has no effect after training


def write_fasttext(path: PathLike, tables: WordTables, header: bool) -> None:
    """Write a fastText model atomically; take the settings in its header from the manifest."""
    name, words, counts = os.fspath(path), tables.words, tables.counts
    if counts is None or tables.context is None:
        raise UsageError(
            f"{name}: a fastText model requires word counts and context vectors; to write an "
            "ordinary .bin file, omit --format=fasttext"
        )
    made, subwords = tables.manifest or {}, tables.subwords
    options = {**_DEFAULTS, **made.get("options", {})}
    own = tables.vectors if subwords is None or subwords.own is None else subwords.own
    inputs = [own] if subwords is None else [own, subwords.rows]
    values = {
        **{name: options[name] for name in ("window", "epochs", "negative", "sample")},
        "dim": tables.vectors.shape[1],
        "magic": int.from_bytes(MAGIC["fasttext"][0], "little"),
        "version": VERSION,
        "min_count": int(np.min(counts, initial=1 << 30)),
        "word_ngrams": 1,
        "loss": NEGATIVE_SAMPLING,
        "model": next(number for number, name in MODELS.items() if name == options["model"]),
        "buckets": 0 if subwords is None else len(subwords.rows),
        "shortest": 0 if subwords is None else subwords.shortest,
        "longest": 0 if subwords is None else subwords.longest,
        "update_interval": _UPDATE_INTERVAL,
        "entries": len(words),
        "words": len(words),
        "labels": 0,
        "tokens": made.get("tokens", {}).get("corpus", int(counts.sum())),
        "pruned": -1,
    }
    with atomic_write(path) as file:
        file.write(HEAD.pack(*map(values.__getitem__, FIELDS)))
        for number, count in enumerate(counts.tolist()):
            file.write(words.raw(number) + b"\0" + ENTRY.pack(count, 0))
        for parts in (inputs, [tables.context.vectors]):
            file.write(MATRIX.pack(0, sum(map(len, parts)), values["dim"]))
            for part in parts:
                for _, block in blocks_of(part):
                    file.write(block.astype("<f4", copy=False).data.cast("B"))
