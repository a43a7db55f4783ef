"""Guards for the standard streams, so that no run fails because of a message.

Messages that cannot be written are dropped, and the run continues. Results that cannot be written
are an error that names standard output. A closed stream remains unusable, but its file descriptor
is reserved, so that messages are not written to a file that is opened later.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any, TextIO

from dcme_w2v.files.atomic import STANDARD, OutputFile

# Opened in the opposite mode, so that reading or writing still fails.
_CLOSED_MODES = (os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)


class _Messages(io.FileIO):
    """Standard error: drops data that cannot be written."""

    def write(self, data: Any) -> int:
        """Write some bytes, or drop all of them."""
        written = None
        with contextlib.suppress(OSError):
            written = super().write(data)  # None if a non-blocking pipe is full
        return len(data) if written is None else written


class _Output(OutputFile):
    """Standard output: errors name it; see `ignore_broken_pipe`."""

    ignores_broken_pipe = False

    def write(self, data: Any) -> int:
        """Write some bytes."""
        try:
            return super().write(data)
        except BrokenPipeError:
            if not self.ignores_broken_pipe:
                raise
            return len(data)


def prepare_streams() -> None:
    """Guard the standard streams; call once, before any file is opened."""
    _reserve_closed()
    sys.stdout = _text(sys.stdout, _Output(1, "standard output", closefd=False))
    sys.stderr = _text(sys.stderr, _Messages(2, "w", closefd=False))
    sys.stderr.reconfigure(line_buffering=True)
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)))


def ignore_broken_pipe(*targets: str | None) -> None:
    """Continue after the reader of standard output, such as `head`, closes the pipe.

    For commands that also write files; others end when the pipe is closed.
    """
    given = {target for target in targets if target is not None}
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Output):
        raw.ignores_broken_pipe = STANDARD in given and given != {STANDARD}


def drop_output() -> None:
    """Drop pending and later output to standard output."""
    number = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):
        os.dup2(number, sys.stdout.fileno())
    os.close(number)


def _reserve_closed() -> None:
    for number, mode in enumerate(_CLOSED_MODES):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, mode), True)  # the lowest free number


def _text(stream: TextIO | None, raw: io.FileIO) -> io.TextIOWrapper:
    """Return a text stream on `raw` with the encoding of the stream that it replaces."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(stream, "encoding", "utf-8"),
        errors=getattr(stream, "errors", "backslashreplace"),
        line_buffering=getattr(stream, "line_buffering", False),
        write_through=getattr(stream, "write_through", False),
    )
