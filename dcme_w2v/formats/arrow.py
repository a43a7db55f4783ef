"""Arrow files and streams: the decoded size of each batch is known before anything is decoded.

A message is a flatbuffer, whose tables name their fields by number (Arrow's Message.fbs, File.fbs).
Each compressed buffer behind it begins with its decoded length.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import Any

from dcme_w2v.files.opening import PIECE_BYTES, PieceReader, check_expansion

_STREAM_MARK = b"\xff\xff\xff\xff"
_DICTIONARY, _BATCH = 2, 3  # MessageHeader


def _number(data: bytes, at: int, kind: str = "I") -> int:
    return int(_unpacked(f"<{kind}", data, at)[0])


def _unpacked(form: str, data: bytes, at: int) -> tuple[Any, ...]:
    if not 0 <= at <= len(data) - struct.calcsize(form):
        raise ValueError("its metadata is damaged")
    return struct.unpack_from(form, data, at)


def _field(table: int, data: bytes, number: int) -> int | None:
    """Return where a field of a table is; None if it has its default."""
    names = table - _number(data, table, "i")
    if 4 + 2 * number >= _number(data, names, "H"):
        return None
    offset = _number(data, names + 4 + 2 * number, "H")
    return table + offset if offset else None


def _below(table: int, data: bytes, number: int) -> int:
    """Return where a table or vector begins that a field refers to."""
    if (at := _field(table, data, number)) is None:
        raise ValueError("its metadata is damaged")
    return at + _number(data, at)


def _structs(table: int, data: bytes, number: int, form: str) -> Iterator[tuple[Any, ...]]:
    if _field(table, data, number) is None:
        return
    vector = _below(table, data, number)
    step = struct.calcsize(form)
    for one in range(_number(data, vector)):
        yield _unpacked(form, data, vector + 4 + one * step)


def _check_batch(path: str, message: bytes, size: int, file: Any, begin: int = 0) -> None:
    """Raise if the buffers of a batch, which begins there, decode to far more than its `size`."""
    root = _number(message, 0)
    kind = _field(root, message, 1)
    header = 0 if kind is None else _number(message, kind, "B")
    if header not in (_DICTIONARY, _BATCH):
        return
    batch = _below(root, message, 2)
    if header == _DICTIONARY:
        batch = _below(batch, message, 1)
    if _field(batch, message, 3) is None:  # not compressed
        return
    decoded = 0
    for offset, length in _structs(batch, message, 2, "<qq"):
        if length:
            file.seek(begin + max(offset, 0))
            decoded += max(_number(file.read(8), 0, "q"), 0)
    check_expansion(path, size, decoded)


def check_file(path: str, file: Any) -> None:
    """Raise if a batch of an Arrow file, which is open, decodes to far more than it has."""
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - 10))
    size = _number(file.read(4), 0)
    file.seek(max(0, end - 10 - size))
    footer = file.read(size)

    for part in (2, 3):
        for begin, length, body in _structs(_number(footer, 0), footer, part, "<qi4xq"):
            file.seek(begin)
            message = file.read(length)
            message = message[8 if message.startswith(_STREAM_MARK) else 4 :]
            _check_batch(path, message, body, file, begin + length)


def checked_stream(path: str, file: Any) -> io.BufferedReader:
    """Return a stream of Arrow whose batches are checked as they are read."""
    reader = PieceReader()
    reader._pieces = _checked_pieces(path, file)
    return io.BufferedReader(reader, PIECE_BYTES)


def _checked_pieces(path: str, file: Any) -> Iterator[bytes]:
    while len(head := file.read(8)) == 8 and (size := _number(head, 4, "i")) > 0:
        message = file.read(size)
        at = _field(_number(message, 0), message, 3)
        left = 0 if at is None else _number(message, at, "q")
        pieces = []
        while left > 0 and (piece := file.read(min(left, PIECE_BYTES))):
            pieces.append(piece)
            left -= len(piece)
        body = b"".join(pieces)
        del pieces
        _check_batch(path, message, len(body), io.BytesIO(body))
        yield head + message
        yield body
    yield head
