"""Writing files so that a target is either the old file or the whole new one."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from dcme_w2v.errors import ResourceError, UsageError

STANDARD = "-"
PART = ".part"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to be written whole: it takes `path`'s place only when the block ends well.

    The bytes go to a private file beside the target, which is flushed to the disk and renamed at
    the end, and removed when the block raises; where a process was killed, by the next that writes
    the same target. ``-`` is standard output.

    Raises
    ------
    ResourceError
        The file cannot be written; the target has not been touched.
    """
    if os.fspath(path) == STANDARD:
        with blaming("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    target = Path(path)
    _remove_abandoned(target)
    with blaming(target):
        number, aside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=PART)
    try:
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)  # ours, while we live
        with io.BufferedWriter(Blaming(number, target)) as file:
            yield cast(BinaryIO, file)
            file.flush()
            with blaming(target):
                os.fsync(number)
                Path(aside).chmod(_mode_of(target))
                Path(aside).replace(target)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


class Blaming(io.FileIO):
    """A descriptor whose errors name what is written by it: a target, or standard output."""

    def __init__(
        self, number: int, target: str | os.PathLike[str], *, closefd: bool = True
    ) -> None:
        super().__init__(number, "w", closefd)
        self._target = target

    def write(self, data: Any) -> int:
        """Write some bytes."""
        with blaming(self._target):
            return super().write(data)


@contextlib.contextmanager
def blaming(target: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the system into a `ResourceError` that names what was to be written."""
    try:
        yield
    except (ResourceError, BrokenPipeError):  # the reader of a pipe has had enough: no failure
        raise
    except OSError as error:
        raise ResourceError(
            f"{os.fspath(target)}: cannot be written: {error.strerror or error}; "
            "make room or name another"
        ) from error


def _remove_abandoned(target: Path) -> None:
    """Remove what processes that were killed left of their tries to write a target."""
    with contextlib.suppress(OSError):
        for left in target.parent.glob(f".{_literally(target.name)}.*{PART}"):
            with left.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where the writer lives
                left.unlink()


def _literally(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "[?*" else letter for letter in name)


def sync_folder(folder: Path) -> None:
    """Flush a folder's names to the disk, where its file system can."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise now, before any work, if `replacing` could not write `path` later."""
    if os.fspath(path) == STANDARD:
        check_standard_output()
        return
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{target}: is a folder; name a file")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: there is no folder {target.parent}; make it first")
    with blaming(target), tempfile.TemporaryFile(dir=target.parent):
        pass


def check_standard_output() -> None:
    """Raise now, before any work, if nothing could be written to standard output later."""
    if not _is_open_for(sys.stdout, os.O_WRONLY):
        raise UsageError("standard output: is closed; redirect it, or name a file")


def standard_input() -> BinaryIO:
    """Return the bytes of standard input.

    Raises
    ------
    UsageError
        It is closed.
    """
    if not _is_open_for(sys.stdin, os.O_RDONLY):
        raise UsageError("standard input: is closed; redirect it, or name a file")
    return sys.stdin.buffer


def _is_open_for(stream: TextIO | None, mode: int) -> bool:
    if stream is None:
        return False
    try:
        flags = fcntl.fcntl(stream.fileno(), fcntl.F_GETFL)
    except (OSError, ValueError, AttributeError):  # no file of the system is behind it
        return not getattr(stream, "closed", False)
    return flags & os.O_ACCMODE in (mode, os.O_RDWR)


def _mode_of(target: Path) -> int:
    """Return the permissions that the target has, or that a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    return new_mode(0o666)


def new_mode(mode: int) -> int:
    """Return the permissions that this process gives to what it makes with `mode`."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask
