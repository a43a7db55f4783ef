"""Guards for the standard streams, so that no run fails because of a message.

Messages that cannot be written are dropped, and the run continues. Results that cannot be written
are an error that names standard output. A closed stream remains unusable, but its file descriptor
is reserved, so that messages are not written to a file that is opened later. On a terminal, control
characters of words, paths and labels are shown as escapes and never obeyed; commands need not do
anything for it.
"""

import codecs
import contextlib
import errno
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable
from typing import Any, TextIO

import click

from dcme_w2v import platform
from dcme_w2v.files.atomic import STANDARD, OutputFile

# Opened in the opposite mode, so that reading or writing still fails.
_CLOSED_MODES = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)

# Characters that a terminal obeys: C0 without tab, line feed and carriage return (which draws
# progress bars), DEL, and C1 as UTF-8.
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
_C1_LEAD = b"\xc2"


class _Shown:
    """Escapes control characters in output to a terminal.

    The first byte of a character that was split between two writes is kept for the next one.
    """

    def __init__(self, number: int) -> None:
        self._is_terminal = os.isatty(number)
        self._kept = b""

    def write(self, data: Any, write: Callable[[Any], int | None]) -> int | None:
        """Write bytes with `write`, escaped if the file is a terminal."""
        if not self._is_terminal:
            return write(data)
        text = self._kept + bytes(data)
        self._kept = _C1_LEAD if text.endswith(_C1_LEAD) else b""
        rest = escaped(text.removesuffix(self._kept))
        while rest and (written := write(rest)):
            rest = rest[written:]
        return len(data)


def escaped(text: bytes) -> bytes:
    r"""Return UTF-8 with control characters as ``\x1b`` or ``\u009b``."""

    def spelled(found: re.Match[bytes]) -> bytes:
        code = ord(found[0].decode())
        return b"\\x%02x" % code if code < 0x80 else b"\\u%04x" % code

    return _CONTROL.sub(spelled, text)


class _Messages(io.FileIO):
    """Standard error: drops data that cannot be written."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self._shown = _Shown(number)

    def write(self, data: Any) -> int:
        """Write some bytes, or drop all of them."""
        written = None
        with contextlib.suppress(OSError):
            # None if a non-blocking pipe is full
            written = self._shown.write(data, super().write)
        return len(data) if written is None else written


class _Output(OutputFile):
    """Standard output: errors name it; see `ignore_broken_pipe`."""

    ignores_broken_pipe = False

    def __init__(self, number: int) -> None:
        super().__init__(number, "standard output", closefd=False)
        self._shown = _Shown(number)

    def write(self, data: Any) -> int:
        """Write some bytes."""
        try:
            return self._shown.write(data, super().write)  # type: ignore[return-value]
        except OSError as error:
            if not platform.is_broken_pipe(error):
                raise
            if not self.ignores_broken_pipe:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
            return len(data)


def prepare_streams() -> None:
    """Guard the standard streams; call once, before any file is opened."""
    for number, mode in enumerate(_CLOSED_MODES):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)  # the lowest free number
    sys.stdout = _text(sys.stdout, _Output(1))
    sys.stderr = _text(sys.stderr, _Messages(2))
    sys.stderr.reconfigure(line_buffering=True)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)))


def ignore_broken_pipe(*targets: str | None) -> None:
    """Continue after the reader of standard output, such as `head`, closes the pipe.

    Commands that also write files call this; others end when the pipe is closed.
    """
    given = {target for target in targets if target is not None}
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Output):
        raw.ignores_broken_pipe = STANDARD in given and given != {STANDARD}


def print_json(value: Any, indent: int | None = None) -> None:
    """Print a value as JSON in one line, or indented; NaN and infinity become null."""
    click.echo(json.dumps(_plain(value), indent=indent, allow_nan=False, default=str))


def print_figures(figures: dict[str, Any], line: str, as_json: bool) -> None:
    """Print figures as a line on stderr, and as JSON on stdout if it is wanted."""
    if as_json:
        print_json(figures)
    click.echo(line.format_map(figures), err=True)


def _plain(value: Any) -> Any:
    """Return a value with numpy's numbers as Python's, and None for what JSON cannot hold."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def drop_output() -> None:
    """Drop pending and later output to standard output."""
    number = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(number, sys.stdout.fileno())
    os.close(number)


def _text(stream: TextIO | None, raw: io.FileIO) -> io.TextIOWrapper:
    """Return a text stream on `raw` with the encoding of the stream that it replaces.

    Bytes of arguments and paths that are not UTF-8 are written as they were given. An ASCII stream
    becomes UTF-8, as click would make it, which would replace such bytes.
    """
    encoding = getattr(stream, "encoding", "utf-8")
    errors = getattr(stream, "errors", "backslashreplace")
    is_ascii = codecs.lookup(encoding).name == "ascii"
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if is_ascii else encoding,
        errors="surrogateescape" if is_ascii or errors == "strict" else errors,
        newline="\n",
        line_buffering=getattr(stream, "line_buffering", False),
        write_through=getattr(stream, "write_through", False),
    )
