"""Open files from disk, standard input or a URL, and decompress the data if necessary.

Formats are detected from magic bytes, not from file names.
"""

from __future__ import annotations

import bz2
import contextlib
import io
import itertools
import json
import lzma
import math
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dcme_w2v.errors import CorpusError, FormatError, UnreadableError
from dcme_w2v.platform import READ, PathLike, path_name

from .atomic import STANDARD, standard_input

PACKED_BYTES = 64 << 10  # compressed data is read in chunks of this size
PIECE_BYTES = 1 << 20  # maximum number of bytes that a call decompresses
JSON_BYTES = 1 << 30  # maximum size of a JSON file in bytes
LONGEST_INTEGER = 20  # maximum number of characters in a 64-bit integer
LINE_BYTES = 8 << 20  # maximum length of a line in bytes
# Limits that protect against decompression bombs.
# Data of more than ALWAYS_DECODED bytes may be at most MOST_EXPANDED times its compressed size.
MOST_EXPANDED, ALWAYS_DECODED = 100, 64 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
STALL_SECONDS = 60.0  # maximum time in seconds to wait for data from a server
# Maps each URL scheme to the package that reads it.
ADDRESSES = {"s3": "boto3", "http": "requests", "https": "requests"}

# Plain text can also begin with "BZh1", but only bzip2 files continue with one of these markers.
BZIP2 = tuple(b"BZh%d" % i + mark for i in range(1, 10) for mark in (b"1AY&SY", b"\x17rE8P\x90"))
# Files from parallel zstd compressors begin with a skippable frame.
ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes([0x50 + i]) + b"*M\x18" for i in range(16)))
LONGEST_HEADER = 100_000_000  # maximum size of a safetensors header in bytes
MAGIC: dict[str, tuple[bytes, ...]] = {
    "gzip": (b"\x1f\x8b\x08",),
    "bzip2": BZIP2,
    "xz": (b"\xfd7zXZ\x00",),
    "zstd": ZSTD,
    "zip": (b"PK\x03\x04",),
    "7z": (b"7z\xbc\xaf\x27\x1c",),
    "rar": (b"Rar!\x1a\x07",),
    "Parquet": (b"PAR1",),
    "Arrow": (b"ARROW1",),
    "an Arrow stream": (b"\xff\xff\xff\xff",),
    "npy": (b"\x93NUMPY",),
    "fasttext": ((793712314).to_bytes(4, "little"),),
    "pickle": tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6)),
    "HDF5": (b"\x89HDF\r\n\x1a\n",),
    "SQLite": (b"SQLite format 3\0",),
}
ARCHIVES = "zip", "7z", "rar", "tar"
TAR, TAR_AT = b"ustar", 257
HEAD_BYTES = TAR_AT + len(TAR)


def sniff(head: bytes) -> str | None:
    """Detect a file's format from its first bytes; return None for text or an unknown format."""
    if head[TAR_AT:HEAD_BYTES] == TAR:
        return "tar"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < LONGEST_HEADER:
        return "safetensors"
    if head.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"{"):
        return "JSON lines"
    return next((kind for kind, starts in MAGIC.items() if head.startswith(starts)), None)


def _is_text(head: bytes) -> bool:
    """Return whether a file's first bytes contain a whole line and are not in a binary format."""
    starts = itertools.chain.from_iterable(MAGIC.values())
    is_open = any(start.startswith(head) for start in starts)
    return b"\n" in head and not is_open and sniff(head) in (None, "JSON lines")


def _zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()


# Maps a compression method to its decompressor, arguments of `decompress`, and bytes per call.
# The zstd decompressor gets few bytes per call, because its output size cannot be limited.
METHODS: dict[str, tuple[Callable[[], Any], tuple[int, ...], int]] = {
    "gzip": (lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), (PIECE_BYTES,), PACKED_BYTES),
    "bzip2": (bz2.BZ2Decompressor, (PIECE_BYTES,), PACKED_BYTES),
    "xz": (lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), (PIECE_BYTES,), PACKED_BYTES),
    "zstd": (_zstd, (), 512),
}


class ArchiveError(CorpusError):
    """Raised for an archive, such as a .zip or .tar file, because it can contain many files."""


def check_expansion(place: str, stored: int, decoded: int) -> None:
    """Raise `CorpusError` if the decoded data is far larger than the stored data."""
    if decoded > max(ALWAYS_DECODED, MOST_EXPANDED * stored):
        raise CorpusError(
            f"{place}: {stored:,} bytes decompress to at least {decoded:,} bytes, which is over "
            f"{MOST_EXPANDED} times as many; if you trust the file, decompress it first"
        )


class CorpusFile(io.RawIOBase):
    """A file whose data is decompressed while it is read.

    Parameters
    ----------
    path : str
        A file, ``-`` for standard input, or a URL (s3, http, https).
    begins : bool
        Whether only the beginning is read, so that the end of compressed data may be missing.
    begin, end : int, optional
        Read only this range of bytes; the file must not be compressed.

    Attributes
    ----------
    bytes_read : int
        Bytes of the stored file read so far.
    packed : bool
        Whether the file is compressed.

    Raises
    ------
    CorpusError
        The file cannot be opened or, later, cannot be read, is corrupt or truncated.
    """

    _raw: Any = None
    _pieces: Iterator[bytes] = iter(())
    _piece = memoryview(b"")

    def __init__(
        self,
        path: str,
        begins: bool = False,
        begin: int = 0,
        end: int | None = None,
    ) -> None:
        self.path = path
        self._left: int | None = None  # bytes left in the range
        self._begins = begins
        self.bytes_read = 0
        try:
            if path == STANDARD:
                self._raw = standard_input()
            elif is_address(path):
                self._raw = _open_address(path)
            else:
                try:
                    self._raw = Path(path).open("rb", buffering=0)  # noqa: SIM115
                except OSError as error:
                    reason = error.strerror or error
                    raise UnreadableError(
                        f"{path} cannot be opened: {reason}; check the path and its permissions"
                    ) from error
            self._piece = memoryview(head := self._take(HEAD_BYTES, _is_text))
            kind = self._sniffed(head)
            self.packed = kind in METHODS
            if kind in METHODS:
                self._piece, self._pieces = memoryview(b""), self._unpack(kind, head)
            if begin or end is not None:
                self._seek(begin, end)
        except BaseException:
            self.close()
            raise

    def readable(self) -> bool:
        """Return True, as `io.BufferedReader` requires."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer; return the number of bytes, or 0 at the end of the file."""
        view = memoryview(buffer)
        if self.packed or self._piece:
            while not self._piece and (piece := next(self._pieces, None)) is not None:
                self._piece = memoryview(piece)
            n = min(len(view), len(self._piece))
            view[:n] = self._piece[:n]
            self._piece = self._piece[n:]
            return n
        n = self._read_raw(view[: self._left])
        if self._left is not None:
            self._left -= n
        return n

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self._raw and self.path != STANDARD:
            self._raw.close()
        super().close()

    def _seek(self, begin: int, end: int | None) -> None:
        if self.packed:
            raise CorpusError(
                f"{self.path} was compressed while it was being read; do not change input files "
                "during a run"
            )
        self._raw.seek(begin)
        self._piece, self.bytes_read = memoryview(b""), 0
        self._left = None if end is None else end - begin

    def _read_raw(self, view: memoryview) -> int:
        try:
            if self.path == STANDARD:  # read the bytes that have arrived, without waiting for more
                found = self._raw.read1(len(view))
                view[: (n := len(found))] = found
            else:
                n = self._raw.readinto(view) or 0
        except Exception as error:
            if not (isinstance(error, OSError) or is_address(self.path)):
                raise
            stalled = _stalled(error) if is_address(self.path) else None
            reason = f" cannot be read: {getattr(error, 'strerror', None) or error}"
            reason += "; try again, or copy the file"
            raise UnreadableError(f"{self.path}{stalled or reason}") from error
        self.bytes_read += n
        return n

    def _take(self, size: int, is_enough: Callable[[bytes], bool] = lambda _: False) -> bytes:
        """Return the next `size` stored bytes, or fewer bytes if `is_enough` accepts them."""
        buffer = memoryview(bytearray(size))
        filled = 0
        while filled < size and (n := self._read_raw(buffer[filled:])):
            filled += n
            if is_enough(bytes(buffer[:filled])):
                break
        return bytes(buffer[:filled])

    def _sniffed(self, head: bytes) -> str | None:
        if (kind := sniff(head)) in ARCHIVES:
            raise ArchiveError(
                f"{self.path} is a {kind} archive; unpack it, and use the extracted files"
            )
        return kind

    def _unpack(self, method: str, data: bytes) -> Iterator[bytes]:
        """Decompress all members of a compressed file; skip the zero padding after each member."""
        make, limit, step = METHODS[method]
        is_start = True
        while data := data.lstrip(b"\0") or self._take(PACKED_BYTES):
            if not data.strip(b"\0"):
                continue
            with self._advising(method):
                member = make()
            while not member.eof:
                wanting = not data and getattr(member, "needs_input", True)
                if wanting:
                    data = self._take(PACKED_BYTES)
                with self._advising(method):
                    piece = bytes(member.decompress(data[:step], *limit))
                if piece:
                    if is_start:
                        self._sniffed(piece)
                        is_start = False
                    yield piece
                elif wanting and not data and not member.eof:
                    if self._begins:
                        return
                    raise CorpusError(
                        f"{self.path}: the {method} data is truncated at byte {self.bytes_read} "
                        "of the compressed file; download or copy the file again"
                    )
                data = getattr(member, "unconsumed_tail", b"") + data[step:]
            data = member.unused_data + data

    @contextlib.contextmanager
    def _advising(self, method: str) -> Iterator[None]:
        """Convert decompression errors to a `CorpusError` that tells the user what to do."""
        try:
            yield
        except ImportError:
            raise CorpusError(
                f"{self.path}: reading {method} data requires the package zstandard; run: pip "
                "install zstandard"
            ) from None
        except Exception as error:  # each decompression library raises its own exceptions
            raise CorpusError(
                f"{self.path}: the {method} data is corrupt before byte {self.bytes_read} "
                f"of the compressed file ({error}); download or copy the file again"
            ) from error


def stored_size(path: PathLike) -> int | None:
    """Return the stored size of a file in bytes, or None if it is not a regular file."""
    name, is_in_memory = os.fspath(path), getattr(path, "rows", None) is not None
    if is_in_memory or name == STANDARD or is_address(name):
        return None
    status = Path(name).stat()
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def fill(file: Any, view: memoryview) -> int:
    """Read until a buffer is full or the file ends; return the number of bytes read."""
    filled = 0
    while filled < len(view) and (n := file.readinto(view[filled:])):
        filled += n
    return filled


def arriving_lines(read: Callable[[int], bytes], longest: int) -> Iterator[list[bytes]]:
    """Yield batches of lines from standard input; a batch contains all lines that have arrived.

    Parameters
    ----------
    read : callable
        Takes a maximum number of bytes and returns those that have arrived; b"" at the end.
    longest : int
        Maximum bytes of a line.
    """
    rest = b""
    while data := read(PACKED_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > longest:
            raise CorpusError(
                f"standard input: a line is longer than {longest:,} bytes; split the line"
            )
        if lines:
            yield lines
    if rest:
        yield [rest]


def open_regular(path: PathLike, largest: int | None = None) -> io.BufferedReader:
    """Open a regular file; raise an error for pipes and devices, because reading may never end.

    Parameters
    ----------
    path : path
    largest : int, optional
        Maximum size in bytes.

    Raises
    ------
    FormatError
        The path is not a regular file, or the file is larger.
    OSError
        The file cannot be opened.
    """
    wrong = FormatError(
        f"{path_name(path)} is not a regular file; use a file instead of a folder, pipe or device"
    )
    try:
        number = os.open(path, READ)
    except PermissionError:  # Windows raises PermissionError if the path is a folder
        if Path(path).is_dir():
            raise wrong from None
        raise
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise wrong
        if largest is not None and found.st_size > largest:
            raise FormatError(
                f"{os.fspath(path)} has {found.st_size:,} bytes, but at most {largest:,} bytes "
                "can be read; use a smaller file"
            )
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def read_regular(path: PathLike, largest: int = JSON_BYTES) -> bytes:
    """Open a regular file with `open_regular`, and return its contents."""
    with open_regular(path, largest) as file:
        return file.read()


def read_json(path: PathLike, advice: str) -> dict[str, Any]:
    """Read a JSON object from a file; raise an error if it contains NaN or infinity.

    Raises
    ------
    FormatError
        The file contains anything else; the message ends with `advice`.
    """
    text = read_regular(path)
    try:
        found = parsed_json(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not valid JSON ({error!s:.80}); {advice}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path} is not a JSON object; {advice}")
    return found


def parsed_json(text: str | bytes) -> Any:
    """Parse JSON; reject repeated names, NaN, infinity, and numbers that exceed 64 bits.

    Raises
    ------
    ValueError, RecursionError
        The text is rejected. Python's parser accepts NaN, 1e999 and integers of any length.
    """
    return json.loads(
        text if isinstance(text, str) else text.decode(),
        object_pairs_hook=distinct, parse_constant=_finite, parse_float=_finite, parse_int=_integer,
    )  # fmt: skip


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Convert the pairs of a JSON object to a dict; raise ValueError if a name is repeated."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.40} occurs twice")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"the number {text:.40} is not finite")
    return number


def _integer(text: str) -> int:
    if len(text) > LONGEST_INTEGER or not -(1 << 63) <= (number := int(text)) < 1 << 64:
        raise ValueError(f"the number {text:.40} does not fit in 64 bits")
    return number


def plain(value: Any) -> Any:
    """Convert numpy numbers to Python numbers, and replace values that JSON lacks with None."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def split_lines(reader: io.BufferedReader[Any], path: str) -> Iterator[tuple[int, bytes]]:
    r"""Yield the number (from 1) and the bytes of each line, without a byte order mark.

    Each line includes its ``\n``. A stream without line ends, such as /dev/zero, fails after
    `LINE_BYTES` instead of filling the memory.
    """
    number = 0
    while line := reader.readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            hint = (
                "the file has NUL bytes and looks binary; use a text file"
                if b"\0" in line
                else "split this line into shorter lines"
            )
            raise CorpusError(f"{path}: line {number} is longer than {LINE_BYTES:,} bytes; {hint}")
        yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def read_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Decompress a file, and yield its lines like `split_lines`.

    Raises
    ------
    CorpusError
        The file cannot be read, or a line is longer than `LINE_BYTES`.
    """
    with CorpusFile(path) as file:
        yield from split_lines(io.BufferedReader(file, PIECE_BYTES), path)


def read_text(path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file as text, with line numbers that start at 1."""
    return ((number, decoded(line, f"{path}:{number}")) for number, line in read_lines(path))


def decoded(text: bytes, place: str) -> str:
    """Decode UTF-8; if the bytes are invalid, raise a `CorpusError` that mentions `place`."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{place} is not UTF-8 ({error.reason}); convert the file to UTF-8"
        ) from None


def head_of(path: str) -> bytes:
    """Return at most 4096 bytes from the start of a file, after decompression."""
    with CorpusFile(path, begins=True) as file:
        return io.BufferedReader(file).read(4096)


def read_whole(path: str) -> bytes:
    """Return all decompressed bytes of a text file; no line may exceed `LINE_BYTES` bytes.

    Raises
    ------
    CorpusError
        The file cannot be read, or decompresses to far more bytes than it has.
    """
    text = bytearray()
    with CorpusFile(path) as file:
        for _, line in split_lines(io.BufferedReader(file, PIECE_BYTES), path):
            text += line
            check_expansion(path, file.bytes_read, len(text))
    return bytes(text)


def is_address(path: str) -> bool:
    """Return whether a path is a URL that smart_open reads."""
    return path.partition("://")[0] in ADDRESSES and "://" in path


def _open_address(path: str) -> Any:
    import smart_open

    try:
        # smart_open must not decompress, because this module detects compression from magic bytes.
        known = {"timeout": STALL_SECONDS} if path.startswith("http") else {}
        return smart_open.open(path, "rb", compression="disable", transport_params=known)
    except (ImportError, NotImplementedError):
        package = ADDRESSES[path.partition("://")[0]]
        raise CorpusError(
            f"{path} can be read only with the package {package}; run: pip install {package}"
        ) from None
    except Exception as error:
        reason = _stalled(error) or f" cannot be opened: {error}; check the address"
        raise UnreadableError(f"{path}{reason}") from None


def _stalled(error: Exception) -> str | None:
    """Return an error message (without the URL) if the server has stopped sending, or else None."""
    if "timed out" not in str(error):
        return None
    return f": the server sent nothing for {STALL_SECONDS:g} s; try again, or download the file"


def is_utf8(word: bytes) -> bool:
    """Return whether bytes are valid UTF-8."""
    return word.decode(errors="replace").encode() == word
