"""Writes word vectors for other programs: TensorFlow's Embedding Projector, safetensors.

Called by `dcme-w2v convert --to`; these files are not read back.

projector    OUT, lines of numbers separated by tabs, and OUT without its suffix and with
             .metadata.tsv, a word a line, for https://projector.tensorflow.org.
safetensors  one file with the tensors ``vectors`` (F32, n by d), ``words`` (U8, the words as UTF-8,
             each with a line end) and, if they are known, ``counts`` (I64, n).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import UsageError
from dcme_w2v.files import atomic_write, is_stream
from dcme_w2v.paths import Sidecar
from dcme_w2v.words.vectors import Vectors
from dcme_w2v.words.vectors_io import blocks_of, check_before_writing

TARGETS = ("projector", "safetensors")
_DTYPES = {"float32": "F32", "uint8": "U8", "int64": "I64"}


def exported_with(path: str, to: str) -> list[Sidecar]:
    """Return the files that are written beside a target, whose name is checked."""
    if to != "projector" or not path:
        return []
    if is_stream(path):
        raise UsageError(f"{path}: is a stream, and projector needs two files; give a file")
    return [Sidecar(str(_metadata(path)), lambda _: Path(path).exists())]


def export(path: str, vectors: Vectors, to: str) -> None:
    """Write vectors in a format of `TARGETS`; the write is atomic.

    Raises
    ------
    FormatError
        A number is not finite, or a word cannot be written; the target is unchanged.
    """
    check_before_writing(path, vectors.words, vectors.vectors)
    (_write_projector if to == "projector" else _write_safetensors)(path, vectors)


def _metadata(path: str) -> Path:
    return Path(path).with_suffix(".metadata.tsv")


def _write_projector(path: str, vectors: Vectors) -> None:
    with contextlib.ExitStack() as stack:
        numbers = stack.enter_context(atomic_write(path))
        words = stack.enter_context(atomic_write(_metadata(path)))
        for _, block in blocks_of(vectors.vectors):
            for row in block:
                numbers.write(b"\t".join(b"%.7g" % number for number in row.tolist()) + b"\n")
        words.writelines(f"{word}\n".encode() for word in vectors.words)


def _write_safetensors(path: str, vectors: Vectors) -> None:
    text = "".join(f"{word}\n" for word in vectors.words).encode()
    tensors: dict[str, NDArray[np.generic]] = {"vectors": vectors.vectors}
    if vectors.counts is not None:
        tensors["counts"] = vectors.counts
    tensors["words"] = np.frombuffer(text, dtype=np.uint8)
    header, end = {}, 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        kind = _DTYPES[tensor.dtype.name]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [start, end]}
    about = json.dumps(header).encode()
    about += b" " * (-len(about) % 8)  # tensors are aligned
    with atomic_write(path) as file:
        file.write(len(about).to_bytes(8, "little") + about)
        for tensor in tensors.values():
            for piece in _pieces(tensor):
                file.write(piece)


def _pieces(tensor: NDArray[np.generic], rows: int = 1 << 14) -> Iterator[bytes]:
    for first in range(0, len(tensor), rows):
        yield tensor[first : first + rows].tobytes()
