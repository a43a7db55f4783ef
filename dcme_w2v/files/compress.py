"""Outputs that are compressed because of their name, as X.txt.gz, and names of unsupported formats.

`dcme_w2v.files.atomic.atomic_write` writes through `compressing`, so that every command that writes
text, vectors or rows compresses them. `dcme_w2v.files.opening` reads, and detects the format from
the content.
"""

import bz2
import contextlib
import functools
import gzip
import importlib.util
import io
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, BinaryIO, cast

from dcme_w2v.errors import UsageError
from dcme_w2v.platform import PathLike

_BUFFER_BYTES = 1 << 20

# What other programs write, which none of our files is.
UNSUPPORTED = {
    ".kv", ".parquet", ".feather", ".arrow", ".h5", ".hdf5", ".pkl", ".pickle", ".joblib", ".pt",
    ".pth", ".onnx", ".zip", ".tar", ".tgz", ".7z", ".rar", ".lz4", ".docx", ".xlsx", ".sqlite",
    ".mat", ".magnitude",
}  # fmt: skip


def _zstd(file: Any) -> Any:
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)


COMPRESSORS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": functools.partial(lzma.LZMAFile, mode="wb"),
    ".zst": _zstd,
}


def compression_of(path: PathLike) -> str | None:
    """Return the suffix of a compressed file, in lower case; None for any other."""
    suffix = PurePath(path).suffix.lower()
    return suffix if suffix in COMPRESSORS else None


def uncompressed_name(path: PathLike) -> PurePath:
    """Return a name without the suffix of a compressed file."""
    return PurePath(path) if compression_of(path) is None else PurePath(path).with_suffix("")


def check_suffix(path: PathLike) -> None:
    """Raise `UsageError` for a name of a format that is not supported, or not installed."""
    suffix = uncompressed_name(path).suffix.lower()
    if suffix in UNSUPPORTED:
        raise UsageError(
            f"{os.fspath(path)}: {suffix} files are not supported; name another (vectors: .txt, "
            ".bin or .npy; rows: .npz or .svm; compressed: .gz, .bz2, .xz or .zst behind it)"
        )
    if compression_of(path) == ".zst" and importlib.util.find_spec("zstandard") is None:
        raise UsageError(
            f"{os.fspath(path)}: pip install zstandard to write it, or name a .gz file"
        )


class _Target(io.RawIOBase):
    """Passes bytes on to a file until `dropping` is set."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.dropping = False

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write some bytes."""
        return memoryview(data).nbytes if self.dropping else self._file.write(data)


@contextlib.contextmanager
def compressing(path: PathLike, file: BinaryIO) -> Iterator[BinaryIO]:
    """Compress output to `file` if its suffix names a compression.

    If the block raises an exception, the end of the compressed data is not written.
    """
    suffix = compression_of(path)
    if suffix is None:
        yield file
        return
    target = _Target(file)
    compressor = COMPRESSORS[suffix](target)
    buffered = io.BufferedWriter(compressor, _BUFFER_BYTES)
    try:
        yield cast(BinaryIO, buffered)
        buffered.flush()
    except BaseException:
        target.dropping = True
        raise
    finally:
        buffered.close()
