"""Word vectors as safetensors: one file of tensors, also with 8 bits per number.

The first 8 bytes are the length of a header in JSON, little-endian; the header has dtype, shape and
position of each tensor, whose bytes follow:

vectors  F32, n by d; or I8 with `scales`
scales   F32, n: row i is ``vectors[i] * scales[i]``
words    U8: the words as UTF-8, each with a line end
counts   I64, n, if they are known

`dcme_w2v.words.exports` writes such files, `dcme_w2v.formats.vectors.vectors_io` reads them.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.errors import FormatError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.files.opening import open_regular
from dcme_w2v.numeric.arrays import F32, I8, I64, Array
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.platform import PathLike

from ..vocabulary import Words
from .vectors_reader import MAX_DIM

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}
_DTYPES |= {"I8": "|i1", "U8": "|u1"}
_NAMES = {np.dtype(kind): name for name, kind in _DTYPES.items()}
_NEWLINE = 10
MAX_HEADER = 100_000_000  # bytes, as in the library of the format


@dataclass(frozen=True)
class Tensors:
    """The contents of a file; `vectors` and the others are mapped.

    Attributes
    ----------
    vectors : ndarray of float32 or int8, shape (n, d)
    scales : ndarray of float32, shape (n,), or None
    words : Words
        As many as `vectors` has rows; not checked otherwise.
    counts : ndarray of int64, shape (n,), or None
    """

    vectors: Array
    scales: F32 | None
    words: Words
    counts: I64 | None

    def rows(self, part: slice) -> F32:
        """Return some of the vectors as float32."""
        if self.scales is None:
            return self.vectors[part]
        return from_int8(self.vectors[part], self.scales[part])


def from_int8(codes: I8, scales: F32) -> F32:
    """Return the rows that codes and scales stand for."""
    matrix = np.empty(codes.shape, dtype=np.float32)
    for rows in blocks_of_rows(len(codes)):
        np.multiply(codes[rows], scales[rows][:, None], out=matrix[rows])
    return matrix


# ---- writing ----


def write_safetensors(
    path: str,
    words: Words,
    matrix: F32,
    counts: I64 | None,
    codes: I8 | None = None,
    scales: F32 | None = None,
) -> None:
    """Write vectors, as int8 if codes and scales are given; the write is atomic."""
    text = "".join(f"{word}\n" for word in words).encode()
    tensors: dict[str, Array] = {"vectors": matrix if codes is None else codes}
    if scales is not None:
        tensors["scales"] = scales
    if counts is not None:
        tensors["counts"] = counts
    tensors["words"] = np.frombuffer(text, dtype=np.uint8)
    with atomic_write(path) as file:
        file.writelines(tensor_pieces(tensors))


def tensor_pieces(tensors: Mapping[str, Array]) -> Iterator[bytes]:
    """Yield the bytes of a safetensors file."""
    # The largest items first, so that each tensor is aligned.
    ordered = sorted(tensors.items(), key=lambda item: -item[1].dtype.itemsize)
    header, end = {}, 0
    for name, tensor in ordered:
        start, end = end, end + tensor.nbytes
        kind = _NAMES[tensor.dtype]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [start, end]}
    about = json.dumps(header).encode()
    about += b" " * (-len(about) % 8)
    yield len(about).to_bytes(8, "little") + about
    for _, tensor in ordered:
        for rows in blocks_of_rows(len(tensor)):
            yield tensor[rows].tobytes()


def open_safetensors(path: PathLike) -> Tensors:
    """Map the tensors of word vectors.

    Raises
    ------
    FormatError
        The file is corrupt, or has other tensors.
    """
    found = open_tensors(path, ("vectors", "scales", "words", "counts"))
    if not {"vectors", "words"} <= found.keys():
        listed = ", ".join(ascii(name) for name in list(_header_of(os.fspath(path))[0])[:5])
        raise FormatError(
            f"{path}: is a safetensors file without the tensors vectors and words, as convert "
            f"writes them (it has {listed or 'none'}); give the folder of a static model, or write "
            "text, one word and its numbers a line"
        )
    vectors, scales = found["vectors"], found.get("scales")
    kind = "int8" if scales is not None else "float32"
    if vectors.dtype != kind or vectors.ndim != 2 or not 1 <= vectors.shape[1] <= MAX_DIM:
        raise _corrupt(path, f"vectors are {vectors.dtype} of shape {vectors.shape}, not {kind}")
    for name, dtype in (("scales", "float32"), ("counts", "int64")):
        if name in found and (found[name].dtype != dtype or found[name].shape != (len(vectors),)):
            raise _corrupt(path, f"{name} are not {len(vectors)} numbers of {dtype}")
    words = _words_of(path, found["words"])
    if len(words) != len(vectors):
        raise _corrupt(path, f"{len(words)} words for {len(vectors)} vectors")
    return Tensors(vectors, scales, words, found.get("counts"))


def open_tensors(path: PathLike, names: Sequence[str]) -> dict[str, Array]:
    """Map the tensors of these names that a file has."""
    header, start = _header_of(os.fspath(path))
    return {name: _mapped(path, name, header[name], start) for name in names if name in header}


def _header_of(path: str) -> tuple[dict[str, Any], int]:
    """Return the entries of the tensors, and where their bytes start."""
    with open_regular(path) as file:
        size = int.from_bytes(file.read(8), "little")
        if size > MAX_HEADER:
            raise _corrupt(path, f"its header would have {size:,} bytes")
        text = file.read(min(size, Path(path).stat().st_size))
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise _corrupt(path, "its header is not JSON") from None
    if not isinstance(header, dict):
        raise _corrupt(path, "its header is not an object")
    header.pop("__metadata__", None)
    return header, 8 + size


def _mapped(path: PathLike, name: str, entry: Any, start: int) -> Array:
    """Map a tensor of an entry, which is checked."""
    try:
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        shape = tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in (*shape, begin, end))
        fits = whole and math.prod(shape) * dtype.itemsize == end - begin
    except (KeyError, TypeError, ValueError):
        fits = False
        if isinstance(entry, dict) and entry.get("dtype") in ("BF16", "F8_E4M3", "F8_E5M2"):
            message = f"{path}: {name} are {entry['dtype']}; convert them to F32, F16 or I8"
            raise FormatError(message) from None
    if not fits:
        raise _corrupt(path, f"the entry of its tensor {name} is not valid")
    if start + end > Path(path).stat().st_size:
        raise _corrupt(path, f"is truncated within {name}")
    if begin == end:
        return np.empty(shape, dtype)
    mapped = np.memmap(path, dtype, "r", start + begin, shape)
    return mapped if (start + begin) % dtype.itemsize == 0 else np.array(mapped)


def _words_of(path: PathLike, lines: Array) -> Words:
    if lines.dtype != np.uint8 or lines.ndim != 1 or (len(lines) and lines[-1] != _NEWLINE):
        raise _corrupt(path, "words are not lines")
    ends = np.flatnonzero(lines == _NEWLINE)
    offsets = np.zeros(len(ends) + 1, dtype=np.int64)
    offsets[1:] = ends - np.arange(len(ends))
    return Words(np.delete(np.asarray(lines), ends), offsets)


def _corrupt(path: PathLike, what: str) -> FormatError:
    return FormatError(f"{os.fspath(path)}: corrupt safetensors file: {what}; write it again")
