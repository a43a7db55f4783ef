"""Guards for standard streams, so that a run does not fail if a message cannot be written.

Messages that cannot be written are dropped, and the run continues. Results that cannot be written
raise an error that names standard output. A closed stream remains unusable, but its file descriptor
is reserved, so that messages are not written to a file that is opened later.
"""

import codecs
import contextlib
import errno
import io
import json
import os
import sys
from typing import Any, TextIO

import click

from dcme_w2v import platform
from dcme_w2v.files.atomic import STANDARD, OutputFile
from dcme_w2v.files.opening import plain

# Closed standard streams are reopened in the opposite mode, so that using them still fails.
_CLOSED_MODES = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)


class _Messages(io.FileIO):
    """A standard-error stream that drops messages if they cannot be written."""

    def write(self, data: Any) -> int:
        """Write bytes; drop the bytes if writing fails."""
        written = None
        with contextlib.suppress(OSError):
            written = super().write(data)  # `write` returns None if a non-blocking pipe is full
        return len(data) if written is None else written


class _Output(OutputFile):
    """A standard-output stream that names itself in errors and can ignore a broken pipe."""

    ignores_broken_pipe = False

    def write(self, data: Any) -> int:
        """Write bytes; return the number of bytes written."""
        try:
            return super().write(data)
        except OSError as error:
            if not platform.is_broken_pipe(error):
                raise
            if not self.ignores_broken_pipe:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
            return len(data)


def prepare_streams() -> None:
    """Guard the standard streams; call this function once, before any file is opened."""
    for number, mode in enumerate(_CLOSED_MODES):
        try:
            os.fstat(number)
        except OSError:
            # The opened file gets the closed stream's descriptor, which is the lowest free one.
            os.set_inheritable(os.open(os.devnull, mode), True)
    sys.stdout = _text(sys.stdout, _Output(1, "standard output", closefd=False))
    sys.stderr = _text(sys.stderr, _Messages(2, "w", closefd=False))
    sys.stderr.reconfigure(line_buffering=True)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(
            io.BufferedReader(io.FileIO(0, "r", closefd=False)), encoding="locale"
        )


def ignore_broken_pipe(*targets: str | None) -> None:
    """Let the program continue after a reader of its output, such as `head`, has exited.

    Commands that also write files call this; other commands end when the pipe is closed.
    """
    given = {target for target in targets if target is not None}
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Output):
        raw.ignores_broken_pipe = STANDARD in given and given != {STANDARD}


def print_json(value: Any, indent: int | None = None) -> None:
    """Print a value as JSON, on one line or indented, with null for NaN and infinity."""
    click.echo(json.dumps(plain(value), indent=indent, allow_nan=False, default=str))


def print_figures(figures: dict[str, Any], line: str, as_json: bool) -> None:
    """Print statistics as a line on stderr and, if `as_json` is set, as JSON on stdout."""
    if as_json:
        print_json(figures)
    click.echo(line.format_map(figures), err=True)


def drop_output() -> None:
    """Discard all pending and future data for standard output."""
    number = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(number, sys.stdout.fileno())
    os.close(number)


def _text(stream: TextIO | None, raw: io.FileIO) -> io.TextIOWrapper:
    """Return a text stream that writes to `raw`, using the encoding of the replaced stream.

    Bytes in arguments and paths that are not UTF-8 are written unchanged. An ASCII stream becomes
    UTF-8, as with click, which would however replace such bytes.
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
